import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useId, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icons";
import { Popup } from "./popup";

export interface MenuItem {
  label: string;
  onSelect(): void;
  icon?: IconName;
  hint?: string;
  danger?: boolean;
  disabled?: boolean;
}

interface MenuProps {
  /** The button's name. It is shown unless children are given. */
  label: string;
  items: MenuItem[];
  icon?: IconName;
  children?: ComponentChildren;
  class?: string;
}

/** A button that opens a list of acts. Arrow keys, Home, End and first letters move in it. */
export function Menu({ label, items, icon, children, class: more }: MenuProps) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  const close = useCallback(() => setOpen(false), []);

  useEffect(() => {
    if (open) list.current?.querySelector<HTMLElement>("[role=menuitem]:not([disabled])")?.focus();
  }, [open]);

  const move = (event: KeyboardEvent) => {
    const all = [...(list.current?.querySelectorAll<HTMLElement>("[role=menuitem]:not([disabled])") ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    let to = -1;
    if (event.key === "ArrowDown") to = (at + 1) % all.length;
    else if (event.key === "ArrowUp") to = (at - 1 + all.length) % all.length;
    else if (event.key === "Home") to = 0;
    else if (event.key === "End") to = all.length - 1;
    else if (event.key.length === 1) to = all.findIndex((item, i) => i > at && item.textContent!.trim().toLowerCase().startsWith(event.key.toLowerCase()));
    if (to < 0) return;
    event.preventDefault();
    all[to]?.focus();
  };

  return (
    <>
      <button
        ref={button}
        type="button"
        class={more ?? (children ? "button button-plain" : "icon-button")}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        aria-label={label}
        title={children ? undefined : label}
        onClick={() => setOpen(!open)}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") {
            event.preventDefault();
            setOpen(true);
          }
        }}
      >
        {children ?? <Icon name={icon ?? "more"} />}
      </button>
      {open && (
        <Popup anchor={button} onClose={close} width={220}>
          <div role="menu" id={id} ref={list} class="menu" aria-label={label} onKeyDown={move}>
            {items.map((item) => (
              <button
                key={item.label}
                type="button"
                role="menuitem"
                tabIndex={-1}
                class={item.danger ? "menu-item menu-danger" : "menu-item"}
                disabled={item.disabled}
                onClick={() => {
                  setOpen(false);
                  button.current?.focus();
                  item.onSelect();
                }}
              >
                {item.icon && <Icon name={item.icon} />}
                <span class="grow">{item.label}</span>
                {item.hint && <kbd>{item.hint}</kbd>}
              </button>
            ))}
          </div>
        </Popup>
      )}
    </>
  );
}
