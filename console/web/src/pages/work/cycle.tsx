// One cycle: its burndown, and its issues.

import { useMemo, useState } from "preact/hooks";
import { api, useRead } from "../../api";
import { useEvents } from "../../live";
import { A, navigate, useRoute } from "../../router";
import type { BurndownSeries, Cycle } from "../../types";
import { Button } from "../../ui/button";
import { LineChart } from "../../ui/chart";
import { confirm } from "../../ui/dialog";
import { Page, Section } from "../../ui/page";
import { Empty, ErrorPanel, Spinner } from "../../ui/states";
import { formatDate } from "../../ui/time";
import { toastFailure } from "../../ui/toast";
import { pagePath, refresh, wsPath } from "../../workspace";
import { useThrottled } from "../refresh";
import { CycleDialog } from "./cycles";
import { IssueTable } from "./issue_table";
import { openQuickCreate } from "./quick_create";

const dayLength = 86_400_000;
const mostDays = 400;

function shortDay(day: string): string {
  return new Date(day + "T00:00:00Z").toLocaleDateString("en", { month: "short", day: "numeric", timeZone: "UTC" });
}

/** The days of the chart: those of the series, and those up to the cycle's end. */
function daysOf(cycle: Cycle, series: BurndownSeries["series"]): string[] {
  const days = series.map((point) => point.date);
  const last = days[days.length - 1];
  if (!cycle.endsAt || !last) return days;
  for (let at = Date.parse(last + "T00:00:00Z") + dayLength; at <= Date.parse(cycle.endsAt) && days.length < mostDays; at += dayLength) {
    days.push(new Date(at).toISOString().slice(0, 10));
  }
  return days;
}

/** Straight from the largest scope to nothing on the last day. */
function idealOf(days: string[], series: BurndownSeries["series"]): number[] {
  const scope = Math.max(0, ...series.map((point) => point.scope));
  const steps = Math.max(1, days.length - 1);
  return days.map((_, i) => scope * (1 - i / steps));
}

export default function CyclePage() {
  const { params } = useRoute();
  const id = params.cycle ?? "";
  const read = useRead<Cycle>(wsPath("/cycles/" + encodeURIComponent(id)));
  const burndown = useRead<BurndownSeries>(wsPath("/issue-analytics/burndown"), { cycleId: id });
  const again = useThrottled(burndown.reload, 3000);
  useEvents(["issue.*"], (event) => {
    if (event.data?.cycleId === id || event.changes?.cycleId) again();
  });
  const [editing, setEditing] = useState(false);
  const active = useMemo(() => ({ cycleId: id }), [id]);
  const cycle = read.data;
  if (!cycle) {
    return read.error ? (
      <Page title="Cycle">
        <ErrorPanel error={read.error} retry={read.reload} />
      </Page>
    ) : (
      <Spinner />
    );
  }
  const remove = async () => {
    if (!(await confirm({ title: `Delete ${cycle.name}?`, text: "Its issues stay, and keep its id.", action: "Delete", danger: true }))) return;
    try {
      await api.send("DELETE", wsPath("/cycles/" + cycle.id));
      refresh("cycles");
      navigate(pagePath("cycles"));
    } catch (error) {
      toastFailure(error, () => void remove());
    }
  };
  const series = burndown.data?.series ?? [];
  const days = daysOf(cycle, series);
  return (
    <Page
      title={cycle.name}
      subtitle={[cycle.startsAt && "From " + formatDate(cycle.startsAt), cycle.endsAt && "to " + formatDate(cycle.endsAt)].filter(Boolean).join(" ")}
      actions={
        <>
          <Button icon="plus" onClick={() => openQuickCreate({ cycleId: cycle.id })}>
            New issue
          </Button>
          <Button icon="edit" onClick={() => setEditing(true)}>
            Change
          </Button>
          <Button kind="danger" icon="trash" onClick={() => void remove()}>
            Delete
          </Button>
        </>
      }
    >
      <Section title="Burndown">
        {burndown.error && <ErrorPanel error={burndown.error} retry={burndown.reload} />}
        {burndown.data && (
          <p class="muted">
            {burndown.data.total} issues now, estimate {burndown.data.totalEstimate}.
          </p>
        )}
        {series.length > 0 ? (
          <LineChart
            label={"Burndown of " + cycle.name}
            at={days.map(shortDay)}
            lines={[
              { name: "Remaining", values: series.map((point) => point.remaining) },
              { name: "Scope", values: series.map((point) => point.scope) },
              ...(cycle.endsAt ? [{ name: "Even pace", values: idealOf(days, series).map((v) => Math.round(v * 10) / 10), dashed: true }] : []),
            ]}
          />
        ) : (
          burndown.data && <Empty title="No day with an issue in this cycle has been recorded yet." icon="cycle" />
        )}
      </Section>
      <Section
        title="Issues"
        actions={
          <A href={pagePath(`issues?view=board&cycleId=${cycle.id}`)} class="button button-plain button-small">
            Show as a board
          </A>
        }
      >
        <div class="cycle-issues">
          <IssueTable active={active} empty="No issue is in this cycle." />
        </div>
      </Section>
      {editing && <CycleDialog cycle={cycle} onClose={() => setEditing(false)} onDone={read.set} />}
    </Page>
  );
}
