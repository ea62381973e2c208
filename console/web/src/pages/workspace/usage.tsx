// The usage of agents, by agent, issue, project, model or month, and the budgets for it.

import type { ComponentChildren } from "preact";
import { useRead } from "../../api";
import { useEvents } from "../../live";
import { A, setQuery, useRoute } from "../../router";
import { pagePath, useNames, useProjects, wsPath } from "../../workspace";
import type { Budget, UsageGroup } from "../../types_agents";
import { BarChart, type Column, Empty, ErrorPanel, Field, Page, Section, Select, Spinner, Table, TextInput } from "../../ui";
import { AgentLink, IssueLink } from "../agents/session_links";
import { formatCost, formatCount, tokensOf } from "../agents/session_text";
import { useThrottled } from "../refresh";
import { Budgets } from "./budgets";

const groupings = [
  { value: "agent", label: "Agent" },
  { value: "model", label: "Model" },
  { value: "project", label: "Project" },
  { value: "issue", label: "Issue" },
  { value: "session", label: "Session" },
  { value: "month", label: "Month" },
];

/** So many groups are in the table; the dearest come first. */
const mostRows = 200;
const mostBars = 12;

function GroupName({ by, group }: { by: string; group: string | null }): ComponentChildren {
  const projects = useProjects();
  if (group === null) return <span class="muted">{by === "project" ? "No project" : "Not reported"}</span>;
  switch (by) {
    case "agent":
      return <AgentLink id={group} />;
    case "issue":
      return <IssueLink id={group} />;
    case "project":
      return <span>{projects.find((p) => p.id === group)?.name ?? group}</span>;
    case "session":
      return <A href={pagePath(`sessions/${group}`)}>{`Session …${group.slice(-6)}`}</A>;
  }
  return <span>{group}</span>;
}

function dayStart(day: string | undefined, after: number): string | undefined {
  if (!day) return undefined;
  const at = Date.parse(`${day}T00:00:00Z`);
  return Number.isNaN(at) ? undefined : new Date(at + after * 86_400_000).toISOString();
}

export default function UsagePage() {
  const { query } = useRoute();
  const name = useNames();
  const projects = useProjects();
  const by = groupings.some((g) => g.value === query.by) ? query.by! : "agent";
  const usage = useRead<{ groups: UsageGroup[] }>(wsPath("/usage"), { groupBy: by, from: dayStart(query.from, 0), to: dayStart(query.to, 1) });
  const budgets = useRead<{ budgets: Budget[] }>(wsPath("/budgets"));
  const soon = useThrottled(() => {
    usage.reload();
    budgets.reload();
  }, 10_000);
  useEvents(["session.updated", "session.ended"], (event) => {
    if (event.changes?.usage) soon();
  });

  const groups = usage.data?.groups ?? [];
  const total = groups.reduce((sum, g) => sum + g.costMicros, 0);
  const wordFor = (group: string | null) => {
    if (group === null) return "None";
    if (by === "agent") return name(group);
    if (by === "project") return projects.find((p) => p.id === group)?.name ?? group;
    return group;
  };
  const columns: Column<UsageGroup>[] = [
    { key: "group", title: groupings.find((g) => g.value === by)!.label, render: (g) => <GroupName by={by} group={g.group} /> },
    { key: "cost", title: "Cost", align: "end", render: (g) => formatCost(g.costMicros) },
    { key: "tokens", title: "Tokens", align: "end", render: (g) => formatCount(tokensOf(g)) },
    { key: "input", title: "Input", align: "end", wide: true, render: (g) => formatCount(g.inputTokens) },
    { key: "output", title: "Output", align: "end", wide: true, render: (g) => formatCount(g.outputTokens) },
    { key: "cache", title: "Read from caches", align: "end", wide: true, render: (g) => formatCount(g.cacheReadTokens) },
  ];
  const charted = by === "agent" || by === "model" || by === "project" || by === "month";
  return (
    <Page title="Usage and budgets" subtitle="Costs and tokens that agents report. Days and months are in UTC.">
      <Section title="Usage">
        <div class="filters">
          <Field label="Add up by">
            <Select value={by} onChange={(value) => setQuery({ by: value === "agent" ? null : value })} options={groupings} />
          </Field>
          <Field label="From">
            <TextInput type="date" value={query.from ?? ""} onInput={(from) => setQuery({ from })} />
          </Field>
          <Field label="To">
            <TextInput type="date" value={query.to ?? ""} onInput={(to) => setQuery({ to })} />
          </Field>
          <p class="filters-sum">
            <span class="muted">Cost in all</span> <strong>{formatCost(total)}</strong>
          </p>
        </div>
        {usage.error && !usage.data ? (
          <ErrorPanel error={usage.error} retry={usage.reload} />
        ) : !usage.data ? (
          <Spinner />
        ) : (
          <>
            {charted && total > 0 && <BarChart label="Cost" bars={groups.slice(0, mostBars).map((g) => ({ name: wordFor(g.group), value: Math.round(g.costMicros / 1e4) / 100 }))} />}
            <Table label="Usage" columns={columns} rows={groups.slice(0, mostRows)} rowKey={(g) => g.group ?? ""} empty={<Empty title="Nothing was reported in this time." />} />
            {groups.length > mostRows && <p class="muted">{`The first ${mostRows} of ${groups.length} are shown.`}</p>}
          </>
        )}
      </Section>
      <Budgets budgets={budgets} />
    </Page>
  );
}
