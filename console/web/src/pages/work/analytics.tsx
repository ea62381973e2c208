// The issues counted by a field, as bars that lead to the list of each group.

import { useState } from "preact/hooks";
import { useRead } from "../../api";
import { useEvents } from "../../live";
import { priorities, statuses, type IssueGroup } from "../../types";
import { BarChart } from "../../ui/chart";
import { Field, Select } from "../../ui/field";
import { ErrorPanel, Spinner } from "../../ui/states";
import { pagePath, useAgents, useCycles, useMembers, useProjects, useTeams, wsPath } from "../../workspace";
import { useThrottled } from "../refresh";
import { fieldText } from "./field_text";

const fields = [
  { value: "status", label: "Status" },
  { value: "priority", label: "Priority" },
  { value: "assigneeId", label: "Assignee" },
  { value: "teamId", label: "Team" },
  { value: "projectId", label: "Project" },
  { value: "cycleId", label: "Cycle" },
];

const none: Record<string, string> = { assigneeId: "Nobody", projectId: "No project", cycleId: "No cycle" };
const most = 20;

/** Statuses and priorities have an order of their own; other groups come largest first. */
function inOrder(by: string, groups: IssueGroup[]): IssueGroup[] {
  const order: readonly string[] = by === "status" ? statuses : by === "priority" ? priorities : [];
  return order.length === 0 ? groups : [...groups].sort((a, b) => order.indexOf(a.group ?? "") - order.indexOf(b.group ?? ""));
}

export function Analytics() {
  const [by, setBy] = useState("status");
  const read = useRead<{ groups: IssueGroup[] }>(wsPath("/issue-analytics"), { groupBy: by });
  const again = useThrottled(read.reload, 3000);
  useEvents(["issue.*"], again);
  // The names of the groups are from these lists.
  useMembers();
  useAgents();
  useTeams();
  useProjects();
  useCycles();
  const groups = inOrder(by, read.data?.groups ?? []);
  const rest = groups.slice(most).reduce((sum, g) => sum + g.count, 0);
  const linkOf = (group: string | null) => (group === null ? (by === "assigneeId" ? pagePath("issues?view=list&show=unassigned") : undefined) : pagePath(`issues?view=list&${by}=${encodeURIComponent(group)}`));
  return (
    <div class="analytics">
      <div class="analytics-by">
        <Field label="Counted by">
          <Select value={by} onChange={setBy} options={fields} />
        </Field>
      </div>
      {read.error && <ErrorPanel error={read.error} retry={read.reload} />}
      {!read.data && read.loading && <Spinner />}
      {read.data && groups.length === 0 && <p class="muted">There are no issues to count.</p>}
      <BarChart
        label={"Issues by " + fields.find((f) => f.value === by)!.label.toLowerCase()}
        bars={[
          ...groups.slice(0, most).map((g) => ({
            name: g.group === null ? (none[by] ?? "Without") : fieldText(by, g.group),
            value: g.count,
            note: g.estimateTotal > 0 ? `estimate ${g.estimateTotal}` : undefined,
            href: linkOf(g.group),
          })),
          ...(rest > 0 ? [{ name: `${groups.length - most} smaller groups`, value: rest }] : []),
        ]}
      />
    </div>
  );
}
