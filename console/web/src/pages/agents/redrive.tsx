// Dead letters in bulk: sessions that failed for good are put back into the queue.

import { useState } from "preact/hooks";
import { api } from "../../api";
import { useAgents, wsPath } from "../../workspace";
import { Field, Select, TextInput, toast } from "../../ui";
import { faultOf, useAct } from "../act";
import { FormDialog } from "../form_dialog";
import { plural } from "./session_text";

interface RedriveProps {
  /** The agent of the page, which then can't be chosen. */
  agentId?: string;
  onDone(): void;
  onClose(): void;
}

export function RedriveDialog({ agentId, onDone, onClose }: RedriveProps) {
  const agents = useAgents();
  const [agent, setAgent] = useState(agentId ?? "");
  const [reason, setReason] = useState("");
  const [limit, setLimit] = useState("100");
  const act = useAct();
  const n = Number(limit);
  const wrong = !(Number.isInteger(n) && n >= 1 && n <= 1000);
  const submit = async () => {
    const body: Record<string, unknown> = { limit: n };
    if (agent) body.agentId = agent;
    if (reason.trim()) body.failureReason = reason.trim();
    let redriven = 0;
    const done = await act.run(body, async (key) => {
      redriven = (await api.send<{ redriven: number }>("POST", wsPath("/agent/sessions/redrive"), body, { key })).data.redriven;
    });
    if (!done) return;
    toast(redriven === 0 ? "No dead letter fits." : `${plural(redriven, "session")} put back into the queue.`, { kind: redriven === 0 ? "info" : "success" });
    onDone();
  };
  return (
    <FormDialog title="Retry dead letters" action="Retry them" act={act} fields={["agentId", "failureReason", "limit"]} incomplete={wrong} onSubmit={() => void submit()} onClose={onClose}>
      <p>The newest sessions that used up their attempts go back into the queue, with all their attempts.</p>
      {agentId === undefined && (
        <Field label="Agent" error={faultOf(act.error, "agentId")}>
          <Select value={agent} onChange={setAgent} options={[{ value: "", label: "Every agent" }, ...agents.map((a) => ({ value: a.id, label: a.name }))]} />
        </Field>
      )}
      <Field label="Failure reason" hint="Such as timeout. Empty for every reason." error={faultOf(act.error, "failureReason")}>
        <TextInput value={reason} onInput={setReason} maxLength={64} />
      </Field>
      <Field label="At most" error={wrong ? "Must be a whole number from 1 to 1,000." : faultOf(act.error, "limit")}>
        <TextInput value={limit} onInput={setLimit} inputMode="numeric" />
      </Field>
    </FormDialog>
  );
}
