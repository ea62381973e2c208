// The form of an agent's settings, for a new agent and for one that is there.

import { useState } from "preact/hooks";
import { api } from "../../api";
import { refresh, wsPath } from "../../workspace";
import type { Agent } from "../../types";
import type { RetryPolicy } from "../../types_agents";
import { Checkbox, Field, TextInput, toast } from "../../ui";
import { faultOf, useAct } from "../act";
import { FormDialog } from "../form_dialog";

const dimensions = ["repo", "branch", "project"] as const;

const dimensionTitle = { repo: "Repository", branch: "Branch", project: "Project" };

interface Typed {
  name: string;
  provider: string;
  model: string;
  most: string;
  isDefault: boolean;
  by: Agent["concurrencyBy"];
  retries: boolean;
  attempts: string;
  backoff: string;
  maxBackoff: string;
  onLapsed: boolean;
  onFailed: boolean;
}

function typedFrom(agent: Agent | null): Typed {
  const retry = agent?.retry ?? null;
  return {
    name: agent?.name ?? "",
    provider: agent?.provider ?? "",
    model: agent?.model ?? "",
    most: agent?.maxConcurrentSessions?.toString() ?? "",
    isDefault: agent?.isDefault ?? false,
    by: agent?.concurrencyBy ?? [],
    retries: retry !== null,
    attempts: String(retry?.maxAttempts ?? 3),
    backoff: String(retry?.backoffSeconds ?? 0),
    maxBackoff: retry?.maxBackoffSeconds?.toString() ?? "",
    onLapsed: retry ? retry.on.includes("lapsed") : true,
    onFailed: retry ? retry.on.includes("failed") : false,
  };
}

function wholeOrNull(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}

/** Reports whether a text is a whole number of a range. An empty text is one where that is allowed. */
function isWhole(text: string, least: number, most: number, orEmpty = false): boolean {
  if (text.trim() === "") return orEmpty;
  const n = Number(text);
  return Number.isInteger(n) && n >= least && n <= most;
}

/** Returns the faults of the numbers, by the API's names of their fields. */
function numberFaults(t: Typed): Record<string, string> {
  const faults: Record<string, string> = {};
  if (!isWhole(t.most, 1, 1000, true)) faults.maxConcurrentSessions = "Must be a whole number from 1 to 1,000.";
  if (!t.retries) return faults;
  if (!isWhole(t.attempts, 1, 20)) faults["retry.maxAttempts"] = "Must be a whole number from 1 to 20.";
  if (!isWhole(t.backoff, 0, 86_400)) faults["retry.backoffSeconds"] = "Must be a whole number from 0 to 86,400.";
  if (!isWhole(t.maxBackoff, 0, 31_536_000, true)) faults["retry.maxBackoffSeconds"] = "Must be a whole number from 0 to 31,536,000.";
  return faults;
}

function bodyOf(t: Typed): Record<string, unknown> {
  const on = [...(t.onLapsed ? ["lapsed"] : []), ...(t.onFailed ? ["failed"] : [])];
  const retry: RetryPolicy | null = t.retries
    ? { maxAttempts: Number(t.attempts), backoffSeconds: Number(t.backoff), maxBackoffSeconds: wholeOrNull(t.maxBackoff), on }
    : null;
  return {
    name: t.name.trim(),
    provider: t.provider.trim() || null,
    model: t.model.trim() || null,
    maxConcurrentSessions: wholeOrNull(t.most),
    isDefault: t.isDefault,
    concurrencyBy: t.by,
    retry,
  };
}

interface AgentDialogProps {
  /** The agent to change, or null for a new one. */
  agent: Agent | null;
  onDone(agent: Agent): void;
  onClose(): void;
}

export function AgentDialog({ agent, onDone, onClose }: AgentDialogProps) {
  const [t, setT] = useState(() => typedFrom(agent));
  const act = useAct();
  const put = (patch: Partial<Typed>) => setT((now) => ({ ...now, ...patch }));
  const submit = async () => {
    const body = bodyOf(t);
    let stored: Agent | undefined;
    const done = await act.run(body, async (key) => {
      const path = agent ? wsPath(`/agents/${encodeURIComponent(agent.id)}`) : wsPath("/agents");
      stored = (await api.send<Agent>(agent ? "PATCH" : "POST", path, body, { key })).data;
    });
    if (!done || !stored) return;
    refresh("agents");
    toast(agent ? "The agent is changed." : "The agent is registered.", { kind: "success" });
    onDone(stored);
  };
  const wrong = numberFaults(t);
  const fault = (field: string) => wrong[field] ?? faultOf(act.error, field);
  return (
    <FormDialog
      title={agent ? `Settings of ${agent.name}` : "Register an agent"}
      action={agent ? "Save" : "Register"}
      act={act}
      fields={["name", "provider", "model", "maxConcurrentSessions", "retry.maxAttempts", "retry.backoffSeconds", "retry.maxBackoffSeconds", "retry.on"]}
      incomplete={t.name.trim() === "" || Object.keys(wrong).length > 0}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <Field label="Name" error={fault("name")}>
        <TextInput value={t.name} onInput={(name) => put({ name })} maxLength={200} required data-autofocus />
      </Field>
      <Field label="Provider" hint="Processes can claim the sessions of a provider." error={fault("provider")}>
        <TextInput value={t.provider} onInput={(provider) => put({ provider })} maxLength={200} />
      </Field>
      <Field label="Model" error={fault("model")}>
        <TextInput value={t.model} onInput={(model) => put({ model })} maxLength={200} />
      </Field>
      <Field label="Sessions at the same time" hint="Empty for no limit." error={fault("maxConcurrentSessions")}>
        <TextInput value={t.most} onInput={(most) => put({ most })} inputMode="numeric" />
      </Field>
      <Checkbox label="Default agent" hint="It gets the work that names no agent." checked={t.isDefault} onChange={(isDefault) => put({ isDefault })} />
      <fieldset class="fieldset">
        <legend>One session at a time for each</legend>
        {dimensions.map((d) => (
          <Checkbox key={d} label={dimensionTitle[d]} checked={t.by.includes(d)} onChange={(on) => put({ by: on ? [...t.by, d] : t.by.filter((x) => x !== d) })} />
        ))}
      </fieldset>
      <Checkbox label="A policy for retries of its own" hint="Without one, a session whose lease runs out is claimed up to three times." checked={t.retries} onChange={(retries) => put({ retries })} />
      {t.retries && (
        <fieldset class="fieldset">
          <legend>Retries</legend>
          <Field label="Attempts" error={fault("retry.maxAttempts")}>
            <TextInput value={t.attempts} onInput={(attempts) => put({ attempts })} inputMode="numeric" />
          </Field>
          <Field label="Pause after the first attempt, in seconds" hint="Each further pause is twice as long." error={fault("retry.backoffSeconds")}>
            <TextInput value={t.backoff} onInput={(backoff) => put({ backoff })} inputMode="numeric" />
          </Field>
          <Field label="Longest pause, in seconds" hint="Empty for no limit." error={fault("retry.maxBackoffSeconds")}>
            <TextInput value={t.maxBackoff} onInput={(maxBackoff) => put({ maxBackoff })} inputMode="numeric" />
          </Field>
          <Checkbox label="Retry after a lease that ran out" checked={t.onLapsed} onChange={(onLapsed) => put({ onLapsed })} />
          <Checkbox label="Retry after a failure" checked={t.onFailed} onChange={(onFailed) => put({ onFailed })} />
        </fieldset>
      )}
    </FormDialog>
  );
}
