// The filters of a list of issues: all that the API has, as they stand in the address.

import type { Query } from "../../api";
import { labelsOf, priorities, statuses, views, type Issue } from "../../types";
import { priorityNames, statusNames } from "../../ui/marks";

export type FilterKind = "choice" | "list" | "boolean" | "text";

export interface Filter {
  /** Its name in the address. */
  key: string;
  title: string;
  kind: FilterKind;
  /** Its name in the API, where that is another one. */
  api?: string;
  choices?: { value: string; label: string }[];
  /** The list of the workspace that its choices are from. */
  from?: "assignees" | "teams" | "projects" | "cycles" | "labels";
}

const viewNames: Record<(typeof views)[number], string> = {
  all: "All",
  active: "Active",
  backlog: "Backlog",
  triage: "Triage",
  completed: "Completed",
  mine: "Mine",
  unassigned: "Unassigned",
};

export const filters: Filter[] = [
  // The address has "view" for board or list.
  { key: "show", api: "view", title: "Show", kind: "choice", choices: views.map((v) => ({ value: v, label: viewNames[v] })) },
  { key: "status", title: "Status", kind: "choice", choices: statuses.map((s) => ({ value: s, label: statusNames[s] })) },
  { key: "priority", title: "Priority", kind: "choice", choices: priorities.map((p) => ({ value: p, label: priorityNames[p] })) },
  { key: "assigneeId", title: "Assignee", kind: "list", from: "assignees" },
  { key: "labelId", title: "Label", kind: "list", from: "labels" },
  { key: "projectId", title: "Project", kind: "list", from: "projects" },
  { key: "cycleId", title: "Cycle", kind: "list", from: "cycles" },
  { key: "teamId", title: "Team", kind: "list", from: "teams" },
  { key: "ready", title: "Ready", kind: "boolean" },
  { key: "blocked", title: "Blocked", kind: "boolean" },
  { key: "hasParent", title: "Has a parent", kind: "boolean" },
  { key: "isParent", title: "Has children", kind: "boolean" },
  { key: "isDraft", title: "Draft", kind: "boolean" },
  { key: "includeSnoozed", title: "With snoozed", kind: "boolean" },
  { key: "archived", title: "Archived", kind: "boolean" },
  { key: "parentId", title: "Parent's id", kind: "text" },
  { key: "identifier", title: "Identifier", kind: "text" },
  { key: "externalRef", title: "External reference", kind: "text" },
];

/** The filter that the search box sets. */
export const searchKey = "search";

/** The filters that the address has, and no other part of it. */
export function activeFilters(query: Record<string, string>): Record<string, string> {
  const out: Record<string, string> = {};
  for (const filter of filters) if (query[filter.key]) out[filter.key] = query[filter.key]!;
  if (query[searchKey]) out[searchKey] = query[searchKey]!;
  return out;
}

/** The query of the API for the filters of an address. */
export function apiQuery(active: Record<string, string>): Query {
  const out: Query = {};
  for (const filter of filters) if (active[filter.key]) out[filter.api ?? filter.key] = active[filter.key];
  if (active[searchKey]) out.search = active[searchKey];
  return out;
}

const inView: Record<string, (issue: IssueRow, me: string) => boolean> = {
  all: () => true,
  active: (i) => i.status === "todo" || i.status === "in_progress",
  backlog: (i) => i.status === "backlog",
  triage: (i) => i.status === "triage",
  completed: (i) => i.status === "done" || i.status === "canceled",
  mine: (i, me) => i.assigneeId === me,
  unassigned: (i) => i.assigneeId === null,
};

/** An issue in a list. Descriptions are left out, so that long lists stay small in memory. */
export type IssueRow = Omit<Issue, "description">;

export function rowOf(issue: Issue): IssueRow {
  const { description: _, ...row } = issue;
  return row;
}

/** Reports whether an issue belongs into a list with the query; null if only the service knows. */
export function matches(issue: IssueRow, query: Query, me: string): boolean | null {
  const snoozed = issue.snoozedUntil !== null && Date.parse(issue.snoozedUntil) > Date.now();
  if (snoozed && String(query.includeSnoozed) !== "true") return false;
  const archived = Boolean(issue.archivedAt);
  if (archived !== (String(query.archived) === "true")) return query.identifier || query.externalRef ? null : false;
  let unknown = false;
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === "") continue;
    const want = String(value);
    switch (name) {
      case "status":
      case "priority":
      case "assigneeId":
      case "teamId":
      case "projectId":
      case "cycleId":
      case "parentId":
      case "externalRef":
        if (issue[name] !== want) return false;
        break;
      case "labelId":
        if (!labelsOf(issue).includes(want)) return false;
        break;
      case "hasParent":
        if ((issue.parentId !== null) !== (want === "true")) return false;
        break;
      case "isDraft":
        if (issue.isDraft !== (want === "true")) return false;
        break;
      case "view":
        if (!(inView[want]?.(issue, me) ?? true)) return false;
        break;
      case "limit":
      case "includeSnoozed":
      case "archived":
        break;
      default:
        unknown = true; // search, identifier, isParent, ready, blocked
    }
  }
  return unknown ? null : true;
}

/** The fields of a new issue that the filters suggest. */
export function suggested(active: Record<string, string>) {
  return {
    ...(active.assigneeId ? { assigneeId: active.assigneeId } : {}),
    ...(active.teamId ? { teamId: active.teamId } : {}),
    ...(active.projectId ? { projectId: active.projectId } : {}),
    ...(active.cycleId ? { cycleId: active.cycleId } : {}),
    ...(active.labelId ? { labelIds: [active.labelId] } : {}),
  };
}
