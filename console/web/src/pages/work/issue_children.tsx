// The sub-issues of an issue.

import { useRead } from "../../api";
import { useEvents } from "../../live";
import { A } from "../../router";
import type { Issue } from "../../types";
import { Button } from "../../ui/button";
import { PriorityIcon, StatusIcon } from "../../ui/marks";
import { Section } from "../../ui/page";
import { ErrorPanel } from "../../ui/states";
import { pagePath, useNames, wsPath } from "../../workspace";
import { useThrottled } from "../refresh";
import { openQuickCreate } from "./quick_create";

export function IssueChildren({ issue }: { issue: Issue }) {
  const read = useRead<{ issues: Issue[]; nextCursor?: string }>(wsPath(`/issues/${issue.id}/children`));
  const names = useNames();
  const again = useThrottled(read.reload, 1000);
  useEvents(["issue.created", "issue.updated", "issue.deleted", "issue.archived"], (event) => {
    const known = read.data?.issues.some((child) => child.id === event.data?.id);
    if (known || event.data?.parentId === issue.id) again();
  });
  const children = read.data?.issues ?? [];
  const closed = children.filter((c) => c.status === "done" || c.status === "canceled").length;
  return (
    <Section
      title={children.length > 0 ? `Sub-issues, ${closed} of ${children.length} closed` : "Sub-issues"}
      actions={
        <Button small icon="plus" disabled={Boolean(issue.archivedAt)} onClick={() => openQuickCreate({ parentId: issue.id, parentName: issue.identifier ?? undefined, teamId: issue.teamId, ...(issue.projectId ? { projectId: issue.projectId } : {}) })}>
          Add
        </Button>
      }
    >
      {read.error && <ErrorPanel error={read.error} retry={read.reload} />}
      {children.length > 0 && (
        <ul class="lines">
          {children.map((child) => (
            <li key={child.id} class="line">
              <StatusIcon status={child.status} named />
              <PriorityIcon priority={child.priority} named />
              <A href={pagePath("issues/" + (child.identifier ?? child.id))} class="grow clip">
                <span class="identifier">{child.identifier}</span> {child.title}
              </A>
              {child.assigneeId && <span class="muted clip">{names(child.assigneeId)}</span>}
            </li>
          ))}
        </ul>
      )}
      {read.data?.nextCursor && <p class="muted">Only the first 1,000 are shown.</p>}
    </Section>
  );
}
