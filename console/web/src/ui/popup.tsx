// A box that opens under a button and closes on Escape, on a click elsewhere, and when
// the focus leaves it. Menu and Combobox are made of it.

import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

interface PopupProps {
  anchor: RefObject<HTMLElement>;
  onClose(): void;
  children: ComponentChildren;
  width?: number;
}

export function Popup({ anchor, onClose, children, width = 240 }: PopupProps) {
  const box = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState<{ left: number; top?: number; bottom?: number; maxHeight: number } | null>(null);

  useLayoutEffect(() => {
    const rect = anchor.current?.getBoundingClientRect();
    if (!rect) return;
    const margin = 8;
    const left = Math.max(margin, Math.min(rect.left, innerWidth - width - margin));
    const below = innerHeight - rect.bottom - margin * 2;
    const above = rect.top - margin * 2;
    if (below >= 220 || below >= above) setPlace({ left, top: rect.bottom + 4, maxHeight: Math.max(120, below) });
    else setPlace({ left, bottom: innerHeight - rect.top + 4, maxHeight: Math.max(120, above) });
  }, []);

  useEffect(() => {
    const inside = (target: EventTarget | null) => target instanceof Node && (box.current?.contains(target) || anchor.current?.contains(target));
    const outside = (event: Event) => {
      if (!inside(event.target)) onClose();
    };
    document.addEventListener("pointerdown", outside, true);
    document.addEventListener("focusin", outside, true);
    addEventListener("resize", onClose);
    return () => {
      document.removeEventListener("pointerdown", outside, true);
      document.removeEventListener("focusin", outside, true);
      removeEventListener("resize", onClose);
    };
  }, [onClose]);

  const close = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.key !== "Escape") return;
    event.preventDefault();
    onClose();
    anchor.current?.focus();
  };
  // A press of the mouse on a part that takes no focus would give it to the dialog or page
  // around the box, which closes the box before the click comes.
  const keepFocus = (event: MouseEvent) => {
    if (!(event.target instanceof HTMLInputElement)) event.preventDefault();
  };
  // Until it has its place it can't be seen, but it can have the focus.
  return (
    <div ref={box} class="popup" onKeyDown={close} onMouseDown={keepFocus} style={place ? { left: place.left, top: place.top, bottom: place.bottom, maxHeight: place.maxHeight, width } : { opacity: 0, left: 0, top: 0, width }}>
      {children}
    </div>
  );
}
