// Dragging a card to another column with the mouse or a pen. A finger scrolls; cards have a
// menu to move them by touch.

import type { JSX, RefObject } from "preact";
import { useCallback, useEffect, useRef } from "preact/hooks";
import type { Status } from "../../types";
import type { IssueRow } from "./filters";

/** The pointer has to move so far before a press becomes a drag. */
const threshold = 6;
const edge = 60;

export function useCardDrag(board: RefObject<HTMLElement>, find: (id: string) => IssueRow | undefined, onDrop: (row: IssueRow, to: Status) => void) {
  const stop = useRef<(() => void) | null>(null);
  useEffect(() => () => stop.current?.(), []);

  return useCallback((event: JSX.TargetedPointerEvent<HTMLElement>) => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    const target = event.target as HTMLElement;
    const card = target.closest<HTMLElement>("[data-card]");
    const row = card && find(card.dataset.card!);
    if (!card || !row || target.closest("button")) return;
    const start = { x: event.clientX, y: event.clientY };
    const rect = card.getBoundingClientRect();
    let ghost: HTMLElement | null = null;
    let over: HTMLElement | null = null;
    let frame = 0;
    let at = start;

    const mark = (next: HTMLElement | null) => {
      if (next === over) return;
      over?.classList.remove("board-over");
      over = next;
      over?.classList.add("board-over");
    };
    const scroll = () => {
      frame = requestAnimationFrame(scroll);
      const box = board.current;
      if (!box) return;
      const { left, right } = box.getBoundingClientRect();
      if (at.x < left + edge) box.scrollLeft -= 12;
      else if (at.x > right - edge) box.scrollLeft += 12;
    };
    const move = (e: PointerEvent) => {
      at = { x: e.clientX, y: e.clientY };
      if (!ghost) {
        if (Math.hypot(at.x - start.x, at.y - start.y) < threshold) return;
        ghost = card.cloneNode(true) as HTMLElement;
        ghost.classList.add("card-ghost");
        ghost.setAttribute("aria-hidden", "true");
        ghost.style.width = rect.width + "px";
        ghost.style.height = rect.height + "px";
        document.body.append(ghost);
        card.classList.add("card-dragged");
        frame = requestAnimationFrame(scroll);
      }
      e.preventDefault();
      ghost.style.transform = `translate(${rect.left + at.x - start.x}px, ${rect.top + at.y - start.y}px)`;
      const below = document.elementFromPoint(at.x, at.y);
      mark(below?.closest<HTMLElement>("[data-status]") ?? null);
    };
    const end = (e: PointerEvent) => {
      const to = over?.dataset.status as Status | undefined;
      const dragged = ghost !== null;
      finish();
      if (!dragged) return;
      // The press was no click on the card's link.
      addEventListener("click", swallow, { capture: true, once: true });
      setTimeout(() => removeEventListener("click", swallow, { capture: true }), 0);
      if (e.type === "pointerup" && to) onDrop(row, to);
    };
    const swallow = (e: MouseEvent) => {
      e.preventDefault();
      e.stopPropagation();
    };
    const key = (e: KeyboardEvent) => {
      if (e.key !== "Escape" || !ghost) return;
      e.preventDefault();
      e.stopPropagation();
      finish();
    };
    const finish = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      removeEventListener("pointercancel", end);
      removeEventListener("keydown", key, true);
      cancelAnimationFrame(frame);
      mark(null);
      ghost?.remove();
      card.classList.remove("card-dragged");
      ghost = null;
      stop.current = null;
    };
    stop.current?.();
    stop.current = finish;
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
    addEventListener("keydown", key, true);
  }, []);
}
