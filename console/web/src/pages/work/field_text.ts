// The values of an issue's fields in words, for its history and for conflicts.

import { priorityNames, statusNames } from "../../ui/marks";
import { formatMoment } from "../../ui/time";
import { labelsOf, type Priority, type Status } from "../../types";
import { nameOf, peek } from "../../workspace";

export const fieldNames: Record<string, string> = {
  title: "Title",
  description: "Description",
  status: "Status",
  priority: "Priority",
  resolution: "Resolution",
  assigneeId: "Assignee",
  teamId: "Team",
  projectId: "Project",
  cycleId: "Cycle",
  labelIds: "Labels",
  parentId: "Parent",
  estimate: "Estimate",
  isDraft: "Draft",
  snoozedUntil: "Snoozed until",
  externalRef: "External reference",
  repo: "Repository",
  branch: "Branch",
  prUrl: "Pull request",
  prState: "State of the pull request",
  prCheckState: "Checks of the pull request",
  subIssueSortOrder: "Place among the children",
  archivedAt: "Archived",
};

export const resolutionNames: Record<string, string> = {
  resolved: "Resolved",
  duplicate: "Duplicate",
  not_planned: "Not planned",
  intended_behavior: "Intended behavior",
  not_reproducible: "Not reproducible",
  obsolete: "Obsolete",
};

function named(list: { id: string; name: string }[], id: string): string {
  return list.find((entry) => entry.id === id)?.name ?? id;
}

export function fieldText(field: string, value: unknown): string {
  if (value === null || value === undefined || value === "") return field === "assigneeId" ? "nobody" : "nothing";
  const text = String(value);
  switch (field) {
    case "status":
      return statusNames[text as Status] ?? text;
    case "priority":
      return priorityNames[text as Priority] ?? text;
    case "resolution":
      return resolutionNames[text] ?? text;
    case "assigneeId":
      return nameOf(text);
    case "teamId":
      return named(peek("teams"), text);
    case "projectId":
      return named(peek("projects"), text);
    case "cycleId":
      return named(peek("cycles"), text);
    case "labelIds": {
      const ids = Array.isArray(value) ? (value as string[]) : labelsOf({ labelIds: text });
      return ids.map((id) => named(peek("labels"), id)).join(", ") || "nothing";
    }
    case "snoozedUntil":
    case "archivedAt":
      return formatMoment(text);
    case "isDraft":
      return value ? "yes" : "no";
    default:
      return typeof value === "object" ? JSON.stringify(value) : text;
  }
}
