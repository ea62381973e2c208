// The states of a page without content: empty, failed, loading.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Failure } from "../api";
import { Button } from "./button";
import { Icon, type IconName } from "./icons";

export function Empty({ title, children, icon }: { title: string; children?: ComponentChildren; icon?: IconName }) {
  return (
    <div class="empty">
      {icon && <Icon name={icon} size={24} />}
      <p class="empty-title">{title}</p>
      {children && <div class="empty-text">{children}</div>}
    </div>
  );
}

const titles: Record<number, string> = {
  0: "No answer",
  401: "Not signed in",
  403: "Not allowed",
  404: "Not found",
  409: "Conflict",
  412: "Changed meanwhile",
  429: "Too many requests",
  500: "Error of the server",
  503: "Not available now",
};

/** Shows a failure and its remedy. It counts down to the time that the server names for another try. */
export function ErrorPanel({ error, retry }: { error: Failure; retry?: () => void }) {
  const [left, setLeft] = useState(error.retryAfter ?? 0);
  useEffect(() => setLeft(error.retryAfter ?? 0), [error]);
  useEffect(() => {
    if (left <= 0) return;
    const timer = setTimeout(() => setLeft(left - 1), 1000);
    return () => clearTimeout(timer);
  }, [left]);
  const faults: { path: string; message: string }[] = Array.isArray(error.details?.issues) ? error.details.issues : [];
  return (
    <div class="error-panel" role="alert">
      <Icon name="warning" />
      <div class="grow">
        <p class="error-title">{titles[error.status] ?? "This did not work"}</p>
        <p>{error.message}</p>
        {faults.length > 0 && (
          <ul>
            {faults.slice(0, 10).map((fault) => (
              <li key={fault.path + fault.message}>
                <code>{fault.path}</code>: {fault.message}
              </li>
            ))}
          </ul>
        )}
        {error.hint && <p class="muted">{error.hint}</p>}
        {retry && (
          <Button small icon="refresh" onClick={retry} disabled={left > 0}>
            {left > 0 ? `Try again in ${Math.ceil(left)} s` : "Try again"}
          </Button>
        )}
      </div>
    </div>
  );
}

/** Appears after a moment, so that quick answers show no flicker. */
export function Spinner({ label = "Loading" }: { label?: string }) {
  return (
    <div class="spinner" role="status">
      <span class="spinner-ring" aria-hidden="true" />
      <span class="visually-hidden">{label}</span>
    </div>
  );
}
