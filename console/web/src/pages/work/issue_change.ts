// Changing an issue: shown at once, sent with If-Match, and undone if it is refused.
//
// Where somebody else changed the issue meanwhile, the change is sent again on top of
// theirs, unless it is about the same field: then the person chooses.

import { api, asFailure, Failure, newKey } from "../../api";
import { labelsOf, type Issue, type Priority, type Status } from "../../types";
import { askConflict } from "../../ui/conflict";
import { toast, toastFailure } from "../../ui/toast";
import { wsPath } from "../../workspace";
import { fieldNames, fieldText } from "./field_text";
import type { IssueRow } from "./filters";
import { tellIssue } from "./issue_bus";

export interface IssuePatch {
  title?: string;
  description?: string | null;
  status?: Status;
  priority?: Priority;
  resolution?: string | null;
  assigneeId?: string | null;
  teamId?: string;
  projectId?: string | null;
  cycleId?: string | null;
  labelIds?: string[] | null;
  parentId?: string | null;
  estimate?: number | null;
  isDraft?: boolean;
  snoozedUntil?: string | null;
  externalRef?: string | null;
  repo?: string | null;
  branch?: string | null;
  prUrl?: string | null;
}

export interface Versioned {
  issue: Issue;
  etag: string | null;
}

export function applyPatch<Row extends IssueRow>(row: Row, patch: IssuePatch): Row {
  const { labelIds, ...rest } = patch;
  return { ...row, ...rest, ...(labelIds === undefined ? {} : { labelIds: labelIds && labelIds.length > 0 ? JSON.stringify(labelIds) : null }) } as Row;
}

function sameValue(field: string, a: unknown, b: unknown): boolean {
  if (field === "labelIds") {
    const list = (value: unknown) => (Array.isArray(value) ? value : labelsOf({ labelIds: (value as string | null) ?? null })).join("\n");
    return list(a) === list(b);
  }
  return (a ?? null) === (b ?? null);
}

/** The fields of the patch that somebody else changed to something else since seen. */
function contested(seen: Record<string, unknown>, now: Record<string, unknown>, patch: IssuePatch): string[] {
  return Object.entries(patch)
    .filter(([field, mine]) => field in seen && !sameValue(field, seen[field], now[field]) && !sameValue(field, now[field], mine))
    .map(([field]) => field);
}

function read(id: string): Promise<Versioned> {
  return api.read<Issue>(wsPath("/issues/" + id)).then(({ data, etag }) => ({ issue: data, etag }));
}

/** Changes of this tab that are not answered yet, by issue. */
const pending = new Map<string, { last: Promise<unknown>; patches: IssuePatch[] }>();

/** Shows an issue as the server has it, with the changes on top that are still to be sent. */
function show<Row extends IssueRow>(row: Row): void {
  tellIssue((pending.get(row.id)?.patches ?? []).reduce<Row>(applyPatch, row));
}

/**
 * Changes an issue and returns it, or null if the person kept the other value or decides
 * later. etag is that of the version seen, if it is known. It throws a Failure.
 *
 * Changes of one issue are sent one after another: two of them at once would each find that
 * the other one had changed the issue.
 */
export async function changeIssue(seen: IssueRow | Issue, patch: IssuePatch, etag: string | null = null): Promise<Versioned | null> {
  const before = pending.get(seen.id);
  const patches = [...(before?.patches ?? []), patch];
  const settled = () => {
    const now = pending.get(seen.id);
    if (now) now.patches = now.patches.filter((other) => other !== patch);
  };
  const mine = (before?.last ?? Promise.resolve()).then(
    () => sendChange(seen, patch, before ? null : etag, settled),
    () => sendChange(seen, patch, null, settled),
  );
  pending.set(seen.id, { last: mine, patches });
  tellIssue(applyPatch(seen, patch));
  try {
    return await mine;
  } finally {
    if (pending.get(seen.id)?.last === mine) pending.delete(seen.id);
  }
}

const mostTurns = 4;

/** Sends a change. settled is called before the outcome is shown. */
async function sendChange(seen: IssueRow | Issue, patch: IssuePatch, etag: string | null, settled: () => void): Promise<Versioned | null> {
  let base: Record<string, unknown> = seen as unknown as Record<string, unknown>;
  let tag = etag;
  try {
    for (let turn = 0; turn < mostTurns; turn++) {
      if (tag === null) {
        const now = await read(seen.id);
        const fields = contested(base, now.issue as unknown as Record<string, unknown>, patch);
        if (fields.length > 0) {
          const choice = await askConflict({
            title: now.issue.identifier ?? "The issue",
            fields: fields.map((field) => ({
              name: fieldNames[field] ?? field,
              theirs: fieldText(field, (now.issue as any)[field]),
              yours: fieldText(field, (patch as any)[field]),
            })),
          });
          if (choice !== "yours") {
            settled();
            show(now.issue);
            return choice === "theirs" ? now : null;
          }
        }
        base = now.issue as unknown as Record<string, unknown>;
        tag = now.etag;
      }
      try {
        const { data, etag: next } = await api.send<Issue>("PATCH", wsPath("/issues/" + seen.id), patch, { ifMatch: tag, key: newKey() });
        settled();
        show(data);
        return { issue: data, etag: next };
      } catch (error) {
        if (!(error instanceof Failure) || error.status !== 412) throw error;
        tag = null;
      }
    }
    throw new Failure(412, "PRECONDITION_FAILED", "The issue is being changed all the time.", "Wait a moment, then try again.");
  } catch (error) {
    settled();
    show(seen);
    throw asFailure(error);
  }
}

/** Changes an issue from a list or a menu; failures are shown with a way to try again. */
export async function changeOrTell(seen: IssueRow | Issue, patch: IssuePatch, done?: string): Promise<void> {
  try {
    const changed = await changeIssue(seen, patch);
    if (changed && done) toast(done, { kind: "success" });
  } catch (error) {
    toastFailure(error, () => void changeOrTell(seen, patch, done));
  }
}
