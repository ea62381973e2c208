import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

interface VirtualListProps<Item> {
  items: Item[];
  /** Height of each row in pixels; all rows have the same. */
  rowHeight: number;
  keyOf(item: Item): string;
  render(item: Item, index: number): ComponentChildren;
  /** Called when the end comes near, to load more. */
  onEnd?(): void;
  label: string;
  class?: string;
  /** The row to keep in view. */
  active?: number;
}

/** A list of which only the rows in view are in the document. */
export function VirtualList<Item>({ items, rowHeight, keyOf, render, onEnd, label, class: more, active }: VirtualListProps<Item>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });

  useLayoutEffect(() => {
    const element = box.current!;
    const measure = () =>
      setView((now) => {
        // Rows are added in steps of four, so that most scroll events render nothing.
        const step = rowHeight * 4;
        const top = Math.floor(element.scrollTop / step) * step;
        const height = element.clientHeight;
        return now.top === top && now.height === height ? now : { top, height };
      });
    measure();
    element.addEventListener("scroll", measure, { passive: true });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => {
      element.removeEventListener("scroll", measure);
      observer.disconnect();
    };
  }, [rowHeight]);

  const over = 6;
  const first = Math.max(0, Math.floor(view.top / rowHeight) - over);
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / rowHeight) + over + 4);

  useEffect(() => {
    if (onEnd && last >= items.length - 20) onEnd();
  }, [last, items.length, onEnd]);

  useEffect(() => {
    const element = box.current;
    if (active === undefined || active < 0 || !element) return;
    const top = active * rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight > element.scrollTop + element.clientHeight) element.scrollTop = top + rowHeight - element.clientHeight;
  }, [active, rowHeight]);

  const rows: ComponentChildren[] = [];
  for (let i = first; i < last; i++) {
    const item = items[i]!;
    rows.push(
      <div key={keyOf(item)} role="listitem" class="virtual-row" style={{ top: i * rowHeight, height: rowHeight }} aria-setsize={items.length} aria-posinset={i + 1}>
        {render(item, i)}
      </div>,
    );
  }
  return (
    <div ref={box} class={`virtual-list ${more ?? ""}`} tabIndex={0} role="group" aria-label={label}>
      <div role="list" aria-label={label} class="virtual-body" style={{ height: items.length * rowHeight }}>
        {rows}
      </div>
    </div>
  );
}
