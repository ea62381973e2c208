// The limits of a workspace, which its operator sets.

import { useState } from "preact/hooks";
import { api } from "../../api";
import type { LimitName, LimitsAndUsage, WorkspaceRecord } from "../../types_admin";
import { Field, TextInput, toast } from "../../ui";
import { faultOf, useAct } from "../act";
import { formatBytes } from "../agents/session_text";
import { FormDialog } from "../form_dialog";

const names: { name: LimitName; label: string }[] = [
  { name: "issues", label: "Issues" },
  { name: "bytes", label: "Bytes" },
  { name: "sessions", label: "Sessions that have not ended" },
  { name: "tokens", label: "Tokens" },
  { name: "subscriptions", label: "Webhook subscriptions" },
  { name: "requestsPerSecond", label: "Requests a second" },
  { name: "createsPerSecond", label: "New issues a second" },
];

function isLimit(text: string): boolean {
  const n = Number(text);
  return text.trim() === "" || (Number.isSafeInteger(n) && n >= 0);
}

interface LimitsDialogProps {
  workspace: WorkspaceRecord;
  now: LimitsAndUsage;
  onDone(): void;
  onClose(): void;
}

export function LimitsDialog({ workspace, now, onDone, onClose }: LimitsDialogProps) {
  const [typed, setTyped] = useState(() => Object.fromEntries(names.map(({ name }) => [name, now.limits[name]?.toString() ?? ""])) as Record<LimitName, string>);
  const act = useAct();
  const submit = async () => {
    const limits = Object.fromEntries(names.map(({ name }) => [name, typed[name].trim() === "" ? null : Number(typed[name])]));
    const done = await act.run(limits, (key) => api.send("PUT", `/cluster/workspaces/${workspace.id}/limits`, { limits }, { key }));
    if (!done) return;
    toast("The limits are set.", { kind: "success" });
    onDone();
  };
  const used = (name: LimitName) => {
    if (!(name in now.used)) return undefined;
    const n = now.used[name as keyof LimitsAndUsage["used"]];
    return `${name === "bytes" ? formatBytes(n) : n.toLocaleString("en")} used`;
  };
  return (
    <FormDialog
      title={`Limits of ${workspace.name}`}
      action="Set limits"
      act={act}
      fields={names.map(({ name }) => `limits.${name}`)}
      incomplete={names.some(({ name }) => !isLimit(typed[name]))}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <p>An empty field has the limit of the service's flag. 0 allows nothing.</p>
      {names.map(({ name, label }) => (
        <Field key={name} label={label} hint={used(name)} error={isLimit(typed[name]) ? faultOf(act.error, `limits.${name}`) : "Must be a whole number from 0 on."}>
          <TextInput value={typed[name]} onInput={(text) => setTyped({ ...typed, [name]: text })} inputMode="numeric" />
        </Field>
      ))}
    </FormDialog>
  );
}
