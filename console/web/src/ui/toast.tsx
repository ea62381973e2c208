// Short messages at the lower edge, read out by assistive technology.

import { asFailure } from "../api";
import { makeStore, useStore } from "../store";
import { Button, IconButton } from "./button";
import { Icon } from "./icons";

export interface ToastOptions {
  kind?: "info" | "success" | "error";
  action?: { label: string; run(): void };
  /** Milliseconds; an error with an action stays until it is closed. */
  duration?: number;
}

interface Shown extends ToastOptions {
  id: number;
  text: string;
}

const most = 4;
const shown = makeStore<Shown[]>([]);
let last = 0;

function close(id: number): void {
  shown.update((all) => all.filter((t) => t.id !== id));
}

export function toast(text: string, options: ToastOptions = {}): void {
  const id = ++last;
  shown.update((all) => [...all.filter((t) => t.text !== text), { id, text, ...options }].slice(-most));
  const stays = options.kind === "error" && options.action;
  if (!stays) setTimeout(() => close(id), options.duration ?? (options.kind === "error" ? 10_000 : 5_000));
}

/** Says why something failed, and offers to try it again. */
export function toastFailure(error: unknown, retry?: () => void): void {
  const failure = asFailure(error);
  const wait = failure.status === 429 && failure.retryAfter ? ` Wait ${Math.ceil(failure.retryAfter)} s.` : "";
  toast(`${failure.message} ${failure.hint}${wait}`.trim(), { kind: "error", action: retry ? { label: "Try again", run: retry } : undefined });
}

export function Toasts() {
  const all = useStore(shown);
  return (
    <div class="toasts" role="region" aria-label="Messages">
      <div aria-live="polite" aria-atomic="false">
        {all.map((t) => (
          <div key={t.id} class={`toast toast-${t.kind ?? "info"}`}>
            <Icon name={t.kind === "error" ? "warning" : "check"} />
            <span class="grow">{t.text}</span>
            {t.action && (
              <Button
                small
                onClick={() => {
                  close(t.id);
                  t.action!.run();
                }}
              >
                {t.action.label}
              </Button>
            )}
            <IconButton label="Dismiss" icon="close" onClick={() => close(t.id)} />
          </div>
        ))}
      </div>
    </div>
  );
}
