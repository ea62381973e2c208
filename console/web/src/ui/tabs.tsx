import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";

export interface Tab {
  key: string;
  title: string;
  count?: number;
}

interface TabsProps {
  label: string;
  tabs: Tab[];
  active: string;
  onChange(key: string): void;
  /** The content of the active tab. */
  children: ComponentChildren;
}

export function Tabs({ label, tabs, active, onChange, children }: TabsProps) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const at = tabs.findIndex((t) => t.key === active);
    const to = event.key === "ArrowRight" ? at + 1 : event.key === "ArrowLeft" ? at - 1 : event.key === "Home" ? 0 : event.key === "End" ? tabs.length - 1 : null;
    if (to === null) return;
    event.preventDefault();
    event.stopPropagation();
    const next = tabs[(to + tabs.length) % tabs.length]!;
    onChange(next.key);
    list.current?.querySelector<HTMLElement>(`[data-key="${next.key}"]`)?.focus();
  };
  return (
    <div class="tabs">
      <div role="tablist" aria-label={label} class="tab-list" ref={list} onKeyDown={move}>
        {tabs.map((tab) => (
          <button
            key={tab.key}
            type="button"
            role="tab"
            class="tab"
            data-key={tab.key}
            id={`${id}-${tab.key}`}
            aria-selected={tab.key === active}
            aria-controls={tab.key === active ? id + "-panel" : undefined}
            tabIndex={tab.key === active ? 0 : -1}
            onClick={() => onChange(tab.key)}
          >
            {tab.title}
            {tab.count !== undefined && <span class="tab-count">{tab.count}</span>}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={id + "-panel"} class="tab-panel" aria-labelledby={`${id}-${active}`} tabIndex={-1}>
        {children}
      </div>
    </div>
  );
}
