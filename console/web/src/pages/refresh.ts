// Ways to keep what a page shows up to date.

import { useEffect, useMemo, useRef } from "preact/hooks";

/**
 * Returns a function that calls fn at once, and again at the end of the pause if it was called
 * meanwhile. So a burst of events makes two requests and not one for each.
 */
export function useThrottled(fn: () => void, pause: number): () => void {
  const latest = useRef(fn);
  latest.current = fn;
  const throttled = useMemo(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let again = false;
    const call = () => {
      if (timer !== undefined) {
        again = true;
        return;
      }
      latest.current();
      timer = setTimeout(() => {
        timer = undefined;
        if (again) {
          again = false;
          call();
        }
      }, pause);
    };
    return { call, stop: () => clearTimeout(timer) };
  }, [pause]);
  useEffect(() => throttled.stop, [throttled]);
  return throttled.call;
}

/** Calls fn every pause while the page is visible, and when it becomes visible again. */
export function useEvery(fn: () => void, pause: number): void {
  const latest = useRef(fn);
  latest.current = fn;
  useEffect(() => {
    const tick = () => {
      if (document.visibilityState === "visible") latest.current();
    };
    const timer = setInterval(tick, pause);
    document.addEventListener("visibilitychange", tick);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", tick);
    };
  }, [pause]);
}
