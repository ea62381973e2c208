// Handing issues to an agent: one by POST .../dispatch, many in batches of fifty.

import { useRef, useState } from "preact/hooks";
import { api, asFailure, newKey, type Failure } from "../../api";
import { navigate } from "../../router";
import { Button } from "../../ui/button";
import { Checkbox, Field, Select, TextArea, TextInput } from "../../ui/field";
import { Dialog } from "../../ui/dialog";
import { ErrorPanel } from "../../ui/states";
import { toast } from "../../ui/toast";
import { pagePath, useAgents, wsPath } from "../../workspace";

interface Dispatchable {
  id: string;
  identifier: string | null;
}

interface BatchAnswer {
  results: { issueId: string; sessionId: string | null; status: string | null; error: string | null }[];
}

const mostItems = 50;

export function DispatchDialog({ issues, onClose, onDone }: { issues: Dispatchable[]; onClose(): void; onDone?(): void }) {
  const agents = useAgents();
  const [agentId, setAgentId] = useState("");
  const [instructions, setInstructions] = useState("");
  const [minutes, setMinutes] = useState("");
  const [effort, setEffort] = useState("");
  const [whenReady, setWhenReady] = useState(false);
  const [left, setLeft] = useState(issues);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [refused, setRefused] = useState<{ name: string; error: string }[]>([]);
  // The same act keeps its key while it is tried again.
  const keys = useRef(new Map<string, string>());

  const options = () => ({
    ...(agentId ? { agentId } : {}),
    ...(instructions.trim() ? { instructions } : {}),
    ...(minutes ? { maxDuration: Number(minutes) } : {}),
    ...(effort ? { effort } : {}),
    ...(whenReady ? { whenReady } : {}),
  });
  const keyOf = (body: unknown) => {
    const text = JSON.stringify(body);
    if (!keys.current.has(text)) keys.current.set(text, newKey());
    return keys.current.get(text)!;
  };

  const submit = async () => {
    setBusy(true);
    setFailure(null);
    setRefused([]);
    try {
      if (issues.length === 1) {
        const body = options();
        const { data } = await api.send<{ id: string }>("POST", wsPath(`/issues/${issues[0]!.id}/dispatch`), body, { key: keyOf(body) });
        toast(`${issues[0]!.identifier} was handed to an agent.`, { kind: "success", action: { label: "Watch", run: () => navigate(pagePath("sessions/" + data.id)) } });
        onDone?.();
        onClose();
        return;
      }
      let rest = left;
      const errors: { name: string; error: string }[] = [];
      while (rest.length > 0) {
        const part = rest.slice(0, mostItems);
        const body = { items: part.map((issue) => ({ issueId: issue.id, ...options() })) };
        const { data } = await api.send<BatchAnswer>("POST", wsPath("/agent/dispatch-batch"), body, { key: keyOf(body) });
        for (const result of data.results) {
          if (result.error) errors.push({ name: part.find((i) => i.id === result.issueId)?.identifier ?? result.issueId, error: result.error });
        }
        rest = rest.slice(mostItems);
        setLeft(rest);
      }
      toast(`${issues.length - errors.length} of ${issues.length} issues were handed to agents.`, { kind: errors.length > 0 ? "info" : "success", action: { label: "Queue", run: () => navigate(pagePath("queue")) } });
      if (errors.length > 0) {
        setRefused(errors);
        return;
      }
      onDone?.();
      onClose();
    } catch (error) {
      setFailure(asFailure(error));
    } finally {
      setBusy(false);
    }
  };

  return (
    <Dialog
      title={issues.length === 1 ? `Dispatch ${issues[0]!.identifier}` : `Dispatch ${issues.length} issues`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{refused.length > 0 ? "Close" : "Cancel"}</Button>
          {refused.length === 0 && (
            <Button kind="primary" icon="agent" busy={busy} onClick={() => void submit()}>
              Dispatch
            </Button>
          )}
        </>
      }
    >
      <Field label="Agent" hint="Without a choice: the issue's assignee if it is an agent, or the default agent.">
        <Select value={agentId} onChange={setAgentId} options={[{ value: "", label: "Chosen by the service" }, ...agents.map((a) => ({ value: a.id, label: a.name + (a.isDefault ? " (default)" : "") }))]} data-autofocus />
      </Field>
      <Field label="Instructions">
        <TextArea rows={5} value={instructions} onInput={setInstructions} maxLength={131072} />
      </Field>
      <div class="two">
        <Field label="Time limit in minutes" hint="1 to 1,440. Empty: no limit.">
          <TextInput type="number" min={1} max={1440} value={minutes} onInput={setMinutes} inputMode="numeric" />
        </Field>
        <Field label="Effort">
          <Select
            value={effort}
            onChange={setEffort}
            options={[
              { value: "", label: "The agent's own" },
              { value: "low", label: "Low" },
              { value: "medium", label: "Medium" },
              { value: "high", label: "High" },
              { value: "max", label: "Highest" },
            ]}
          />
        </Field>
      </div>
      <Checkbox label="Wait until nothing blocks the issue" checked={whenReady} onChange={setWhenReady} />
      {refused.length > 0 && (
        <div role="alert">
          <p>These were refused:</p>
          <ul>
            {refused.map((r) => (
              <li key={r.name}>
                {r.name}: {r.error}
              </li>
            ))}
          </ul>
        </div>
      )}
      {failure && <ErrorPanel error={failure} retry={() => void submit()} />}
    </Dialog>
  );
}
