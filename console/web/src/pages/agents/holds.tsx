// Holds: the scopes whose sessions are not claimed for now.

import { useState } from "preact/hooks";
import { api } from "../../api";
import type { Read } from "../../reads";
import { useAgents, useNames, wsPath } from "../../workspace";
import type { Hold } from "../../types_agents";
import { Button, type Column, confirm, Empty, ErrorPanel, Field, Section, Select, Table, TextInput, Time, toast, toastFailure } from "../../ui";
import { faultOf, useAct } from "../act";
import { FormDialog } from "../form_dialog";
import { useRights } from "../rights";
import { ScopeName } from "./session_links";

const durations = [
  { value: "", label: "Until somebody ends it" },
  { value: "15", label: "15 minutes" },
  { value: "60", label: "1 hour" },
  { value: "240", label: "4 hours" },
  { value: "1440", label: "1 day" },
];

interface HoldDialogProps {
  /** A scope that can't be changed, such as that of the page's agent. */
  scope?: string;
  onDone(): void;
  onClose(): void;
}

export function HoldDialog({ scope: fixed, onDone, onClose }: HoldDialogProps) {
  const agents = useAgents();
  const [kind, setKind] = useState("workspace");
  const [agent, setAgent] = useState("");
  const [provider, setProvider] = useState("");
  const [reason, setReason] = useState("");
  const [minutes, setMinutes] = useState("");
  const act = useAct();

  const chosen = kind === "workspace" ? "workspace" : kind === "agent" ? `agent:${agent}` : `provider:${provider.trim()}`;
  const scope = fixed ?? chosen;
  const submit = async () => {
    const until = minutes === "" ? null : new Date(Date.now() + Number(minutes) * 60_000).toISOString();
    const body = { reason: reason.trim(), until };
    const done = await act.run({ scope, reason, minutes }, (key) => api.send("PUT", wsPath(`/holds/${encodeURIComponent(scope)}`), body, { key }));
    if (!done) return;
    toast("The sessions are on hold.", { kind: "success" });
    onDone();
  };
  return (
    <FormDialog
      title="Put sessions on hold"
      action="Hold"
      act={act}
      fields={["reason", "until", "scope"]}
      incomplete={reason.trim() === "" || scope.endsWith(":")}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <p>Sessions on hold stay in the queue, and no agent can claim them. Sessions that run go on.</p>
      {fixed === undefined && (
        <Field label="Sessions" error={faultOf(act.error, "scope")}>
          <Select
            value={kind}
            onChange={setKind}
            options={[
              { value: "workspace", label: "All of the workspace" },
              { value: "agent", label: "Those of an agent" },
              { value: "provider", label: "Those of a provider" },
            ]}
          />
        </Field>
      )}
      {fixed === undefined && kind === "agent" && (
        <Field label="Agent">
          <Select value={agent} onChange={setAgent} options={[{ value: "", label: "Choose an agent" }, ...agents.map((a) => ({ value: a.id, label: a.name }))]} />
        </Field>
      )}
      {fixed === undefined && kind === "provider" && (
        <Field label="Provider">
          <TextInput value={provider} onInput={setProvider} maxLength={200} />
        </Field>
      )}
      <Field label="Reason" error={faultOf(act.error, "reason")}>
        <TextInput value={reason} onInput={setReason} maxLength={500} required />
      </Field>
      <Field label="How long" error={faultOf(act.error, "until")}>
        <Select value={minutes} onChange={setMinutes} options={durations} />
      </Field>
    </FormDialog>
  );
}

/** Ends a hold after a question, and reports whether it is over. */
export async function endHold(scope: string): Promise<boolean> {
  const yes = await confirm({ title: "End the hold?", text: "Its sessions can be claimed again at once.", action: "End the hold" });
  if (!yes) return false;
  try {
    await api.send("DELETE", wsPath(`/holds/${encodeURIComponent(scope)}`));
    toast("The hold is over.", { kind: "success" });
    return true;
  } catch (error) {
    toastFailure(error);
    return false;
  }
}

export function HoldList({ holds }: { holds: Read<{ holds: Hold[] }> }) {
  const name = useNames();
  const rights = useRights();
  const [adding, setAdding] = useState(false);
  const rows = holds.data?.holds ?? [];
  const columns: Column<Hold>[] = [
    { key: "scope", title: "Sessions of", render: (h) => <ScopeName scope={h.scope} /> },
    { key: "reason", title: "Reason", render: (h) => h.reason },
    { key: "until", title: "Until", render: (h) => (h.until ? <Time at={h.until} /> : "Somebody ends it") },
    { key: "by", title: "Set by", wide: true, render: (h) => name(h.createdById) },
    { key: "since", title: "Since", wide: true, render: (h) => <Time at={h.createdAt} /> },
    {
      key: "acts",
      title: "",
      align: "end",
      render: (h) =>
        rights.admin && (
          <Button small onClick={() => void endHold(h.scope).then((ended) => ended && holds.reload())}>
            End
          </Button>
        ),
    },
  ];
  return (
    <Section
      title="Holds"
      actions={
        rights.admin && (
          <Button small icon="pause" onClick={() => setAdding(true)}>
            Hold sessions
          </Button>
        )
      }
    >
      {holds.error ? (
        <ErrorPanel error={holds.error} retry={holds.reload} />
      ) : (
        <Table label="Holds" columns={columns} rows={rows} rowKey={(h) => h.scope} empty={<Empty title="Nothing is on hold." />} />
      )}
      {adding && (
        <HoldDialog
          onClose={() => setAdding(false)}
          onDone={() => {
            setAdding(false);
            holds.reload();
          }}
        />
      )}
    </Section>
  );
}
