// The cycles of the workspace, and how its issues are spread.

import { useState } from "preact/hooks";
import { api, useRead } from "../../api";
import { useEvents } from "../../live";
import { A, navigate } from "../../router";
import type { Cycle, IssueGroup } from "../../types";
import { Badge } from "../../ui/marks";
import { Button } from "../../ui/button";
import { Field, TextInput } from "../../ui/field";
import { Page, Section } from "../../ui/page";
import { Empty, ErrorPanel } from "../../ui/states";
import { Table } from "../../ui/table";
import { formatDate } from "../../ui/time";
import { pagePath, refresh, useCycles, wsPath } from "../../workspace";
import { useAct } from "../act";
import { FormDialog } from "../form_dialog";
import { useThrottled } from "../refresh";
import { Analytics } from "./analytics";

export function phaseOf(cycle: Cycle, now = Date.now()): "past" | "now" | "planned" | "open" {
  if (cycle.endsAt && Date.parse(cycle.endsAt) < now) return "past";
  if (cycle.startsAt && Date.parse(cycle.startsAt) > now) return "planned";
  return cycle.startsAt ? "now" : "open";
}

const phases = {
  past: { kind: "neutral", words: "Ended" },
  now: { kind: "success", words: "Running" },
  planned: { kind: "info", words: "Planned" },
  open: { kind: "neutral", words: "Without dates" },
} as const;

export default function Cycles() {
  const cycles = useCycles();
  const counts = useRead<{ groups: IssueGroup[] }>(wsPath("/issue-analytics"), { groupBy: "cycleId" });
  const again = useThrottled(counts.reload, 3000);
  useEvents(["issue.*"], again);
  const [making, setMaking] = useState(false);
  const countOf = (id: string) => counts.data?.groups.find((g) => g.group === id)?.count ?? 0;
  return (
    <Page
      title="Cycles"
      actions={
        <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>
          New cycle
        </Button>
      }
    >
      {counts.error && <ErrorPanel error={counts.error} retry={counts.reload} />}
      <Table
        label="Cycles"
        rows={cycles}
        rowKey={(c) => c.id}
        empty={<Empty title="There is no cycle yet." icon="cycle" />}
        columns={[
          { key: "name", title: "Name", render: (c) => <A href={pagePath("cycles/" + c.id)}>{c.name}</A> },
          { key: "phase", title: "State", render: (c) => <Badge kind={phases[phaseOf(c)].kind}>{phases[phaseOf(c)].words}</Badge> },
          { key: "from", title: "From", wide: true, render: (c) => (c.startsAt ? formatDate(c.startsAt) : "") },
          { key: "to", title: "To", wide: true, render: (c) => (c.endsAt ? formatDate(c.endsAt) : "") },
          { key: "count", title: "Issues", align: "end", render: (c) => countOf(c.id) },
        ]}
      />
      <Section title="All issues">
        <Analytics />
      </Section>
      {making && <CycleDialog onClose={() => setMaking(false)} onDone={(cycle) => navigate(pagePath("cycles/" + cycle.id))} />}
    </Page>
  );
}

function dayOf(at: string | null): string {
  return at ? at.slice(0, 10) : "";
}

/** Makes a cycle, or changes one. Days are days in UTC, as in burndowns. */
export function CycleDialog({ cycle, onClose, onDone }: { cycle?: Cycle; onClose(): void; onDone(cycle: Cycle): void }) {
  const [name, setName] = useState(cycle?.name ?? "");
  const [from, setFrom] = useState(dayOf(cycle?.startsAt ?? null));
  const [to, setTo] = useState(dayOf(cycle?.endsAt ?? null));
  const act = useAct();
  const submit = () => {
    const body = { name: name.trim(), startsAt: from ? from + "T00:00:00.000Z" : null, endsAt: to ? to + "T23:59:59.000Z" : null };
    void act.run(body, async (key) => {
      const { data } = cycle ? await api.send<Cycle>("PATCH", wsPath("/cycles/" + cycle.id), body, { key }) : await api.send<Cycle>("POST", wsPath("/cycles"), body, { key });
      refresh("cycles");
      onClose();
      onDone(data);
    });
  };
  const turned = from !== "" && to !== "" && to < from;
  return (
    <FormDialog title={cycle ? `Change ${cycle.name}` : "New cycle"} action={cycle ? "Save" : "Make the cycle"} act={act} fields={[]} onSubmit={submit} onClose={onClose} incomplete={name.trim() === "" || turned}>
      <Field label="Name">
        <TextInput value={name} onInput={setName} maxLength={200} required data-autofocus />
      </Field>
      <div class="two">
        <Field label="First day">
          <TextInput type="date" value={from} onInput={setFrom} />
        </Field>
        <Field label="Last day" error={turned ? "It has to come after the first day." : null}>
          <TextInput type="date" value={to} onInput={setTo} />
        </Field>
      </div>
    </FormDialog>
  );
}
