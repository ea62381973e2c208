// Small marks: avatars, badges, and the icons of status and priority.

import type { ComponentChildren } from "preact";
import type { Priority, Status } from "../types";
import { Icon } from "./icons";

const hues = 8;

function hueOf(id: string): number {
  let sum = 0;
  for (let i = 0; i < id.length; i++) sum = (sum * 31 + id.charCodeAt(i)) >>> 0;
  return sum % hues;
}

export function Avatar({ id, name, agent, size = 20 }: { id: string; name: string; agent?: boolean; size?: number }) {
  const letters = name
    .split(/[\s@._-]+/)
    .filter(Boolean)
    .slice(0, 2)
    .map((word) => word[0]!.toUpperCase())
    .join("");
  return (
    <span class={`avatar hue-${hueOf(id)}${agent ? " avatar-agent" : ""}`} style={{ width: size, height: size, fontSize: size * 0.45 }} title={name} aria-hidden="true" data-letters={agent ? undefined : letters || "?"}>
      {agent && <Icon name="agent" size={size * 0.65} />}
    </span>
  );
}

export type BadgeKind = "neutral" | "info" | "success" | "warning" | "danger" | "accent";

export function Badge({ kind = "neutral", children, title }: { kind?: BadgeKind; children: ComponentChildren; title?: string }) {
  return (
    <span class={`badge badge-${kind}`} title={title}>
      {children}
    </span>
  );
}

/** A label's chip; its colour is a dot, so that the text keeps its contrast. */
export function LabelChip({ name, color }: { name: string; color: string | null }) {
  const known = color !== null && /^#[0-9a-f]{3,8}$|^[a-z]+$/i.test(color);
  return (
    <span class="chip">
      <span class="chip-dot" style={known ? { backgroundColor: color } : undefined} />
      {name}
    </span>
  );
}

export const statusNames: Record<Status, string> = {
  triage: "Triage",
  backlog: "Backlog",
  todo: "To do",
  in_progress: "In progress",
  done: "Done",
  canceled: "Canceled",
};

/** A circle that fills as the work goes on. Its name is read out unless words stand beside it. */
export function StatusIcon({ status, named }: { status: Status; named?: boolean }) {
  const fill = { triage: 0, backlog: 0, todo: 0, in_progress: 0.5, done: 1, canceled: 1 }[status];
  const r = 5.25;
  return (
    <svg class={`status-icon status-${status}`} width="16" height="16" viewBox="0 0 16 16" role={named ? "img" : undefined} aria-label={named ? statusNames[status] : undefined} aria-hidden={named ? undefined : "true"}>
      <circle cx="8" cy="8" r={r} fill={fill === 1 ? "currentColor" : "none"} stroke="currentColor" stroke-width="1.5" stroke-dasharray={status === "backlog" ? "2.2 1.9" : undefined} />
      {fill === 0.5 && <path d="M8 4.9a3.1 3.1 0 0 1 0 6.2z" fill="currentColor" />}
      {status === "triage" && <path d="M8 5.2v3.4M8 10.6v.1" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" />}
      {status === "done" && <path class="status-mark" d="M5.6 8.2 7.3 9.9l3.2-3.5" fill="none" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" />}
      {status === "canceled" && <path class="status-mark" d="M6.2 6.2l3.6 3.6M9.8 6.2 6.2 9.8" stroke-width="1.5" stroke-linecap="round" />}
    </svg>
  );
}

export const priorityNames: Record<Priority, string> = { urgent: "Urgent", high: "High", medium: "Medium", low: "Low" };

export function PriorityIcon({ priority, named }: { priority: Priority; named?: boolean }) {
  const bars = { urgent: 4, high: 3, medium: 2, low: 1 }[priority];
  return (
    <svg class={`priority-icon priority-${priority}`} width="16" height="16" viewBox="0 0 16 16" role={named ? "img" : undefined} aria-label={named ? priorityNames[priority] + " priority" : undefined} aria-hidden={named ? undefined : "true"}>
      {bars === 4 ? (
        <>
          <rect x="2" y="2" width="12" height="12" rx="3" fill="currentColor" />
          <path class="status-mark" d="M8 4.8v3.8M8 11v.1" stroke-width="1.8" stroke-linecap="round" />
        </>
      ) : (
        [0, 1, 2].map((i) => <rect key={i} x={2.5 + i * 4} y={10 - i * 3} width="3" height={4 + i * 3} rx="1" fill="currentColor" opacity={i < bars ? 1 : 0.28} />)
      )}
    </svg>
  );
}
