// The objects of the API that the pages about issues use. docs/api.md describes them.

export const statuses = ["triage", "backlog", "todo", "in_progress", "done", "canceled"] as const;
export type Status = (typeof statuses)[number];

export const priorities = ["urgent", "high", "medium", "low"] as const;
export type Priority = (typeof priorities)[number];

export const resolutions = ["resolved", "duplicate", "not_planned", "intended_behavior", "not_reproducible", "obsolete"] as const;

export const relationTypes = ["blocks", "blocked_by", "duplicates", "duplicated_by", "discovered_from", "led_to", "relates"] as const;
export type RelationType = (typeof relationTypes)[number];

export const views = ["all", "active", "backlog", "triage", "completed", "mine", "unassigned"] as const;

export type ActorType = "user" | "agent" | "system";

export interface Issue {
  id: string;
  organizationId: string;
  externalRef: string | null;
  teamId: string;
  title: string;
  description: string | null;
  status: Status;
  priority: Priority;
  resolution: string | null;
  parentId: string | null;
  subIssueSortOrder: number | null;
  estimate: number | null;
  isDraft: boolean;
  snoozedUntil: string | null;
  assigneeId: string | null;
  projectId: string | null;
  cycleId: string | null;
  /** The JSON text of an array of ids. */
  labelIds: string | null;
  number: number | null;
  identifier: string | null;
  repo: string | null;
  branch: string | null;
  prUrl: string | null;
  prState: string | null;
  prCheckState: string | null;
  createdAt: string;
  updatedAt: string;
  archivedAt?: string | null;
}

export interface PossibleDuplicate {
  id: string;
  identifier: string | null;
  title: string;
  status: Status;
  score: number;
}

export interface CreatedIssue extends Issue {
  possibleDuplicates: PossibleDuplicate[];
}

export interface Comment {
  id: string;
  organizationId: string;
  issueId: string;
  parentId: string | null;
  authorId: string;
  authorType: ActorType;
  body: string;
  createdAt: string;
  updatedAt: string;
}

export interface HistoryEntry {
  id: string;
  issueId: string;
  actorId: string;
  actorType: ActorType;
  field: string;
  from: unknown;
  to: unknown;
  createdAt: string;
}

export interface Relation {
  type: RelationType;
  issueId: string;
  identifier: string | null;
  title: string;
  status: Status;
  createdAt: string;
  createdById: string;
}

export interface GraphNode {
  id: string;
  identifier: string | null;
  title: string;
  status: Status;
  assigneeId: string | null;
  ready: boolean;
}

export interface GraphEdge {
  fromId: string;
  toId: string;
  type: RelationType;
}

export interface IssueGraph {
  nodes: GraphNode[];
  edges: GraphEdge[];
  truncated: boolean;
}

export interface Attachment {
  id: string;
  issueId: string;
  name: string;
  contentType: string;
  size: number;
  sha256: string;
  url: string;
  createdAt: string;
}

export interface SimilarIssue {
  issue: Issue;
  score: number;
}

export interface Member {
  userId: string;
  organizationId: string;
  name: string | null;
  email: string | null;
  role: "owner" | "admin" | "member" | "guest";
  createdAt: string;
  updatedAt: string;
}

export interface Team {
  id: string;
  organizationId: string;
  name: string;
  key: string;
  isDefault: boolean;
  isPublic: boolean;
  ownerId: string;
  triageAssigneeId: string | null;
  defaultTemplateId: string | null;
  parentAutoClose: boolean;
  subIssueAutoClose: boolean;
  createdAt: string;
  updatedAt: string;
}

export interface Label {
  id: string;
  organizationId: string;
  name: string;
  color: string | null;
  description: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface Project {
  id: string;
  organizationId: string;
  name: string;
  description: string | null;
  leadId: string | null;
  startsAt: string | null;
  endsAt: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface Cycle {
  id: string;
  organizationId: string;
  name: string;
  startsAt: string | null;
  endsAt: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface Template {
  id: string;
  name: string;
  title: string | null;
  description: string | null;
  teamId: string | null;
}

export interface Agent {
  id: string;
  organizationId: string;
  name: string;
  provider: string | null;
  model: string | null;
  isDefault: boolean;
  maxConcurrentSessions: number | null;
  concurrencyBy: ("repo" | "branch" | "project")[];
  retry: { maxAttempts: number; backoffSeconds: number; maxBackoffSeconds: number | null; on: string[] } | null;
  createdAt: string;
  updatedAt: string;
}

export interface IssueGroup {
  group: string | null;
  count: number;
  estimateTotal: number;
}

export interface BurndownSeries {
  series: { date: string; remaining: number; scope: number }[];
  total: number;
  totalEstimate: number;
}

/** Ids of an issue's labels, from the JSON text of the API. */
export function labelsOf(issue: { labelIds: string | null }): string[] {
  if (!issue.labelIds) return [];
  try {
    const ids: unknown = JSON.parse(issue.labelIds);
    return Array.isArray(ids) ? ids.filter((id): id is string => typeof id === "string") : [];
  } catch {
    return [];
  }
}
