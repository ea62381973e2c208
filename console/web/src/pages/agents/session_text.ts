// The words and numbers that the pages about agents show: statuses, reasons, amounts.

import type { ActivityType, SessionRow, SessionStatus, Usage, WaitingReason } from "../../types_agents";

export const statusTitle: Record<SessionStatus, string> = {
  created: "Queued",
  running: "Running",
  waiting: "Waiting",
  completed: "Completed",
  failed: "Failed",
  canceled: "Canceled",
};

export const reasonTitle: Record<WaitingReason, string> = {
  preflight: "Preflight check",
  wait_for: "Its conditions",
  queued_after: "Earlier sessions",
  blocked: "Blocked issue",
  not_before: "A time",
  budget: "Budget used up",
  hold: "On hold",
  concurrency: "Concurrency key",
  agent_full: "Agent is full",
  no_claimer: "No agent asks for work",
};

/** A sentence for each reason that says what ends the wait. */
export const reasonHelp: Record<WaitingReason, string> = {
  preflight: "Something was missing at the dispatch. A reply puts the session into the queue.",
  wait_for: "The session reported conditions. It is queued again when they are met.",
  queued_after: "The sessions before it have to be completed first.",
  blocked: "An open issue blocks its issue. The session is queued when that is closed.",
  not_before: "The session can be claimed when its time has come.",
  budget: "Raise the budget or delete it. A monthly budget begins anew with the month.",
  hold: "End the hold, or wait until it ends by itself.",
  concurrency: "Other sessions hold all places of the key.",
  agent_full: "The agent works on as many sessions as its settings allow.",
  no_claimer: "Start a process that claims sessions of this agent.",
};

export const activityTitle: Record<ActivityType, string> = {
  thought: "Thought",
  response: "Reply",
  error: "Error",
  elicitation: "Question",
  action: "Action",
  status: "Status",
  artifact: "Artifact",
};

export function hasEnded(status: SessionStatus): boolean {
  return status === "completed" || status === "failed" || status === "canceled";
}

/**
 * Reports whether a person can answer the session now. A session that waits for other work
 * has needs_input too, but the service refuses replies to most of these.
 */
export function needsAnswer(session: SessionRow): boolean {
  if (session.derivedStatus !== "needs_input" || hasEnded(session.status)) return false;
  const reason = session.waitingFor?.reason;
  return reason === undefined || reason === "preflight";
}

/** Formats a cost of millionths of the currency. */
export function formatCost(micros: number): string {
  const units = micros / 1e6;
  return units.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: units !== 0 && Math.abs(units) < 1 ? 4 : 2 });
}

/** Formats a count in at most four characters, such as 12.3k. */
export function formatCount(n: number): string {
  if (n < 10_000) return n.toLocaleString("en");
  return n.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 });
}

export function formatBytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return `${n.toLocaleString("en", { maximumFractionDigits: n < 10 && i > 0 ? 1 : 0 })} ${units[i]}`;
}

export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function tokensOf(usage: Usage): number {
  return usage.inputTokens + usage.outputTokens;
}

export function plural(n: number, one: string, many = one + "s"): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

/** The beginning of a text, on one line. */
export function firstLine(text: string, max = 140): string {
  const line = text.trim().split("\n", 1)[0] ?? "";
  return line.length > max ? line.slice(0, max - 1) + "…" : line;
}

export function prettyJSON(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "";
}
