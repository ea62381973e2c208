import { useEffect } from "preact/hooks";

/**
 * Moves the focus to an issue's link when it becomes the current one, also when it is shown
 * only now, as after it moved to another column. The focus is taken from other issues and
 * from the page's body. An input elsewhere keeps it.
 */
export function useRowFocus(id: string, focused: boolean): void {
  useEffect(() => {
    if (!focused) return;
    const now = document.activeElement;
    const free = now === null || now === document.body || now.id === "main" || now.hasAttribute("data-issue") || now.classList.contains("check") || now.classList.contains("virtual-list");
    if (free && now?.getAttribute("data-issue") !== id) document.querySelector<HTMLElement>(`[data-issue="${id}"]`)?.focus({ preventScroll: true });
  }, [id, focused]);
}
