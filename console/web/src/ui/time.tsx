import { useEffect } from "preact/hooks";
import { makeStore, useStore } from "../store";

/** One clock for all times on the page, so that "2 minutes ago" stays true. */
const now = makeStore(Date.now());
let users = 0;
let timer: ReturnType<typeof setInterval> | undefined;

export function useNow(): number {
  useEffect(() => {
    if (++users === 1) timer = setInterval(() => now.set(Date.now()), 15_000);
    return () => {
      if (--users === 0) clearInterval(timer);
    };
  }, []);
  return useStore(now);
}

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });
const dayOf = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", year: "numeric" });
const exact = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium" });

const steps: [number, Intl.RelativeTimeFormatUnit][] = [
  [60, "second"],
  [60, "minute"],
  [24, "hour"],
  [7, "day"],
];

export function relativeTime(at: string, from: number): string {
  let amount = (new Date(at).getTime() - from) / 1000;
  if (Number.isNaN(amount)) return at;
  if (Math.abs(amount) < 10) return "just now";
  for (const [size, unit] of steps) {
    if (Math.abs(amount) < size) return relative.format(Math.round(amount), unit);
    amount /= size;
  }
  return dayOf.format(new Date(at));
}

export function formatDate(at: string): string {
  return dayOf.format(new Date(at));
}

export function formatMoment(at: string): string {
  return exact.format(new Date(at));
}

/** A moment in words, with the exact one as its tooltip. */
export function Time({ at, plain }: { at: string | null | undefined; plain?: boolean }) {
  const from = useNow();
  if (!at) return <span class="muted">never</span>;
  return (
    <time dateTime={at} title={formatMoment(at)}>
      {plain ? formatMoment(at) : relativeTime(at, Math.max(from, Date.now()))}
    </time>
  );
}
