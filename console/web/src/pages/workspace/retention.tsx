// How long the workspace keeps sessions, deliveries and issues that are over.

import { useState } from "preact/hooks";
import { api, useRead } from "../../api";
import { wsPath } from "../../workspace";
import type { Retention } from "../../types_admin";
import { Button, confirm, ErrorPanel, Field, Page, Section, Select, Spinner, TextInput, toast } from "../../ui";
import { faultOf, useAct } from "../act";
import { FailureNote } from "../failure_note";
import { useRights } from "../rights";
import { AdminsOnly } from "./admins_only";

type DaysField = "endedSessionsDays" | "deliveriesDays" | "closedIssuesDays";

const fields: { field: DaysField; label: string; hint: string }[] = [
  { field: "endedSessionsDays", label: "Days to keep ended sessions", hint: "Then they are deleted with their logs. Their usage stays in the sums." },
  { field: "deliveriesDays", label: "Days to keep deliveries of webhooks", hint: "Then they are deleted from the lists of deliveries." },
  { field: "closedIssuesDays", label: "Days to keep closed issues", hint: "Counted from the day when an issue was closed." },
];

function daysOf(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}

function isDays(text: string): boolean {
  const n = daysOf(text);
  return n === null || (Number.isInteger(n) && n >= 0 && n <= 1_000_000);
}

function RetentionForm({ now, onSaved }: { now: Retention; onSaved(next: Retention): void }) {
  const [days, setDays] = useState<Record<DaysField, string>>({
    endedSessionsDays: now.endedSessionsDays?.toString() ?? "",
    deliveriesDays: now.deliveriesDays?.toString() ?? "",
    closedIssuesDays: now.closedIssuesDays?.toString() ?? "",
  });
  const [closed, setClosed] = useState<Retention["closedIssues"]>(now.closedIssues);
  const act = useAct();
  const wrong = fields.some(({ field }) => !isDays(days[field]));

  const submit = async () => {
    const body: Retention = {
      closedIssues: closed,
      closedIssuesDays: daysOf(days.closedIssuesDays),
      deliveriesDays: daysOf(days.deliveriesDays),
      endedSessionsDays: daysOf(days.endedSessionsDays),
    };
    const deletes = body.endedSessionsDays !== null || (closed === "delete" && body.closedIssuesDays !== null);
    const yes =
      !deletes ||
      (await confirm({ title: "Delete older records?", text: "The next sweep deletes sessions, or issues, that have been over for longer. They can't be brought back.", action: "Set retention", danger: true }));
    if (!yes) return;
    let stored: Retention | undefined;
    const done = await act.run(body, async (key) => {
      stored = (await api.send<Retention>("PUT", wsPath("/retention"), body, { key })).data;
    });
    if (!done || !stored) return;
    toast("The retention is set.", { kind: "success" });
    onSaved(stored);
  };

  return (
    <form
      class="form form-narrow"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {fields.map(({ field, label, hint }) => (
        <Field key={field} label={label} hint={`${hint} Leave it empty to keep them for ever.`} error={isDays(days[field]) ? faultOf(act.error, field) : "Must be a whole number from 0 to 1,000,000."}>
          <TextInput value={days[field]} onInput={(text) => setDays({ ...days, [field]: text })} inputMode="numeric" />
        </Field>
      ))}
      <Field label="Closed issues are then" error={faultOf(act.error, "closedIssues")}>
        <Select
          value={closed}
          onChange={(value) => setClosed(value as Retention["closedIssues"])}
          options={[
            { value: "archive", label: "Archived, and can be brought back" },
            { value: "delete", label: "Deleted" },
          ]}
        />
      </Field>
      <FailureNote error={act.error} fields={["closedIssues", ...fields.map((f) => f.field)]} />
      <div class="row">
        <Button type="submit" kind="primary" busy={act.busy} disabled={wrong}>
          Save
        </Button>
      </div>
    </form>
  );
}

function RetentionView() {
  const retention = useRead<Retention>(wsPath("/retention"));
  return (
    <Page title="Retention" subtitle="How long the workspace keeps what is over. Events are kept for 30 days in any case.">
      {retention.data ? (
        <Section title="Rules">
          <RetentionForm now={retention.data} onSaved={(next) => retention.set(next)} />
        </Section>
      ) : retention.error ? (
        <ErrorPanel error={retention.error} retry={retention.reload} />
      ) : (
        <Spinner />
      )}
    </Page>
  );
}

export default function RetentionPage() {
  return useRights().admin ? <RetentionView /> : <AdminsOnly title="Retention" />;
}
