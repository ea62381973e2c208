// The objects of the API that the pages about agents use. docs/api.md describes them.

export type SessionStatus = "created" | "running" | "waiting" | "completed" | "failed" | "canceled";

export const sessionStatuses: SessionStatus[] = ["created", "running", "waiting", "completed", "failed", "canceled"];

export type WaitingReason =
  | "preflight" | "wait_for" | "queued_after" | "blocked" | "not_before"
  | "budget" | "hold" | "concurrency" | "agent_full" | "no_claimer";

export const waitingReasons: WaitingReason[] = [
  "preflight", "wait_for", "queued_after", "blocked", "not_before", "budget", "hold", "concurrency", "agent_full", "no_claimer",
];

export interface WaitingFor {
  reason: WaitingReason;
  on: string[];
  hidden?: number;
}

export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  costMicros: number;
}

export interface RetryPolicy {
  maxAttempts: number;
  backoffSeconds: number;
  maxBackoffSeconds: number | null;
  on: string[];
}

export interface PlanStep {
  id: string;
  title: string;
  status: "pending" | "in_progress" | "completed" | "canceled";
}

/** A session as the short list shows it. */
export interface SessionRow {
  id: string;
  organizationId: string;
  issueId: string;
  agentId: string;
  provider: string;
  status: SessionStatus;
  derivedStatus: "stalled" | "needs_input" | null;
  waitingFor: WaitingFor | null;
  label: string | null;
  purpose: string | null;
  effort: string | null;
  branch: string | null;
  prUrl: string | null;
  prState: string | null;
  lastProgressAt: string | null;
  createdAt: string;
  updatedAt: string;
}

/** A session as GET shows it, and as the long list does. */
export interface AgentSession extends SessionRow {
  actorId: string;
  actorType: "user" | "agent";
  concurrencyKeys: string[];
  deadLetteredAt: string | null;
  failureReason: string | null;
  maxDurationMinutes: number | null;
  notBefore: string | null;
  providerSessionId: string | null;
  result: string | null;
  resultSchema: unknown;
  resultSchemaErrors: string[] | null;
  structuredResult: unknown;
  retry: RetryPolicy | null;
  secondaryRepos: string | null;
  url: string | null;
  usage: Usage;
  whenReady: boolean;
  plan?: PlanStep[] | null;
}

export interface SessionPage {
  sessions: SessionRow[];
  nextCursor?: string;
}

export type ActivityType = "thought" | "response" | "error" | "elicitation" | "action" | "status" | "artifact";

export interface Activity {
  id: string;
  sessionId: string;
  type: ActivityType;
  message: string;
  actorId: string | null;
  parentId: string | null;
  payload: unknown;
  createdAt: string;
  startedAt: string | null;
  endedAt: string | null;
  durationMs: number | null;
}

export interface ActivityPage {
  activities: Activity[];
  nextCursor?: string;
}

/** The part of the answer to a poll that the session's page uses. */
export interface PolledSession {
  activities: Activity[];
  budget: LaneBudget | null;
  status: SessionStatus;
}

export interface LaneBudget {
  remainingMicros: number | null;
  remainingTokens: number | null;
  stop: boolean;
}

export interface SessionAttempt {
  number: number;
  claimedAt: string;
  endedAt: string | null;
  end: "completed" | "failed" | "lapsed" | "released" | "canceled" | "waited" | null;
  failureReason: string | null;
  claimerId: string;
  lastActivity: Activity | null;
}

export interface QueueOfAgent {
  agentId: string;
  created: number;
  running: number;
  waiting: number;
  claimersWaiting: number;
  oldestCreatedAt: string | null;
}

export interface QueueOfKey {
  key: string;
  limit: number;
  running: number;
  waiting: number;
}

export interface QueueSummary {
  counts: Record<SessionStatus, number>;
  waitingFor: Record<WaitingReason, number>;
  byAgent: QueueOfAgent[];
  byKey: QueueOfKey[];
  oldestCreatedAt: string | null;
}

export interface Hold {
  scope: string;
  reason: string;
  until: string | null;
  createdById: string;
  createdAt: string;
}

export interface ConcurrencyLimit {
  key: string;
  limit: number;
}

export interface Draft {
  id: string;
  kind: "comment" | "issue_create" | "issue_update";
  status: "pending" | "published" | "discarded";
  payload: Record<string, unknown>;
  issueId: string | null;
  sessionId: string | null;
  entityId: string | null;
  entityType: string;
  createdById: string;
  createdAt: string;
  updatedAt: string;
  publishedCommentId: string | null;
  reviewNote: string | null;
  reviewedAt: string | null;
  reviewedById: string | null;
}

export interface Budget {
  scope: string;
  period: "month" | "total";
  costMicros: number | null;
  tokens: number | null;
  spentMicros: number;
  spentTokens: number;
}

export interface UsageGroup extends Usage {
  group: string | null;
}
