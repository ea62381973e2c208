// The parts of a session's page beside the log: plan, usage, result, checkpoint.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useRead } from "../../api";
import { wsPath } from "../../workspace";
import type { AgentSession, Budget, LaneBudget, PlanStep } from "../../types_agents";
import { Badge, Button, Markdown, Section } from "../../ui";
import { FailureNote } from "../failure_note";
import { ScopeName } from "./session_links";
import { formatCost, formatCount, plural, prettyJSON, tokensOf } from "./session_text";

const stepTitle: Record<PlanStep["status"], string> = {
  pending: "Pending",
  in_progress: "In progress",
  completed: "Completed",
  canceled: "Canceled",
};

export function SessionPlan({ plan }: { plan: PlanStep[] }) {
  const done = plan.filter((step) => step.status === "completed").length;
  return (
    <Section title="Plan" actions={<span class="muted">{`${done} of ${plural(plan.length, "step")} completed`}</span>}>
      <progress class="meter" max={plan.length} value={done} aria-label="Completed steps of the plan" />
      <ol class="plan">
        {plan.map((step) => (
          <li key={step.id} class={`step step-${step.status}`}>
            <span class="step-mark" aria-hidden="true" />
            <span class="grow">{step.title}</span>
            <span class="muted">{stepTitle[step.status]}</span>
          </li>
        ))}
      </ol>
    </Section>
  );
}

/** A bar for what is spent of a limit, with the numbers as text. */
export function SpentBar({ label, spent, limit, format }: { label: string; spent: number; limit: number; format(n: number): string }) {
  const share = limit > 0 ? spent / limit : 1;
  const level = share >= 1 ? "full" : share >= 0.8 ? "high" : "low";
  return (
    <div class="spent">
      <div class="spent-text">
        <span>{label}</span>
        <span>
          {format(spent)} of {format(limit)}
        </span>
      </div>
      <progress class={`meter meter-${level}`} max={1} value={Math.min(1, share)} aria-label={`${label}: ${format(spent)} of ${format(limit)}`} />
    </div>
  );
}

export function BudgetBars({ budget }: { budget: Budget }) {
  return (
    <div class="budget">
      {budget.costMicros !== null && <SpentBar label="Cost" spent={budget.spentMicros} limit={budget.costMicros} format={formatCost} />}
      {budget.tokens !== null && <SpentBar label="Tokens" spent={budget.spentTokens} limit={budget.tokens} format={formatCount} />}
    </div>
  );
}

interface UsageProps {
  session: AgentSession;
  /** All budgets of the workspace that the caller sees. */
  budgets: Budget[];
  /** The least that any budget leaves to the session. */
  left: LaneBudget | null;
  projectId: string | null;
}

export function SessionUsage({ session, budgets, left, projectId }: UsageProps) {
  const { usage } = session;
  const scopes = ["workspace", `agent:${session.agentId}`, `issue:${session.issueId}`, `project:${projectId}`];
  const own = budgets.filter((budget) => scopes.includes(budget.scope));
  return (
    <Section title="Usage">
      <dl class="facts">
        <dt>Cost</dt>
        <dd>{formatCost(usage.costMicros)}</dd>
        <dt>Tokens</dt>
        <dd>{formatCount(tokensOf(usage))}</dd>
        <dt>Input, output, cache</dt>
        <dd>
          {formatCount(usage.inputTokens)}, {formatCount(usage.outputTokens)}, {formatCount(usage.cacheReadTokens)}
        </dd>
        {left?.remainingMicros !== null && left?.remainingMicros !== undefined && (
          <>
            <dt>Cost left</dt>
            <dd>{formatCost(left.remainingMicros)}</dd>
          </>
        )}
        {left?.remainingTokens !== null && left?.remainingTokens !== undefined && (
          <>
            <dt>Tokens left</dt>
            <dd>{formatCount(left.remainingTokens)}</dd>
          </>
        )}
        {session.maxDurationMinutes !== null && (
          <>
            <dt>Longest run</dt>
            <dd>{session.maxDurationMinutes} min</dd>
          </>
        )}
      </dl>
      {own.map((budget) => (
        <div key={budget.scope}>
          <h3 class="budget-title">
            <ScopeName scope={budget.scope} /> <span class="muted">{budget.period === "month" ? "budget of this month" : "budget in total"}</span>
          </h3>
          <BudgetBars budget={budget} />
        </div>
      ))}
      {own.length === 0 && <p class="muted">No budget applies to this session.</p>}
    </Section>
  );
}

function JSONBlock({ label, value }: { label: string; value: unknown }) {
  return (
    <pre class="code" tabIndex={0} aria-label={label}>
      {prettyJSON(value)}
    </pre>
  );
}

export function SessionResult({ session }: { session: AgentSession }) {
  const { result, structuredResult, resultSchema, resultSchemaErrors } = session;
  const hasSchema = resultSchema !== null && resultSchema !== undefined;
  const hasStructured = structuredResult !== null && structuredResult !== undefined;
  const faults = resultSchemaErrors ?? [];
  let fit: ComponentChildren = null;
  if (faults.length > 0) fit = <Badge kind="danger">Does not fit the schema</Badge>;
  else if (hasSchema && hasStructured) fit = <Badge kind="success">Fits the schema</Badge>;
  return (
    <Section title="Result" actions={fit}>
      {result !== null && <Markdown text={result} />}
      {faults.length > 0 && (
        <ul class="notice notice-error">
          {faults.map((fault) => (
            <li key={fault}>{fault}</li>
          ))}
        </ul>
      )}
      {hasStructured && <JSONBlock label="Structured result" value={structuredResult} />}
      {result === null && !hasStructured && faults.length === 0 && <p class="muted">There is no result yet.</p>}
      {hasSchema ? (
        <details>
          <summary>Schema of the result</summary>
          <JSONBlock label="Schema of the result" value={resultSchema} />
        </details>
      ) : (
        <p class="muted">The dispatch asked for no schema.</p>
      )}
    </Section>
  );
}

function Checkpoint({ id }: { id: string }) {
  const checkpoint = useRead<unknown>(wsPath(`/agent/sessions/${id}/checkpoint`));
  if (checkpoint.error?.status === 404) return <p class="muted">No checkpoint is stored yet.</p>;
  return (
    <>
      <FailureNote error={checkpoint.error} />
      {checkpoint.data !== undefined && <JSONBlock label="Checkpoint" value={checkpoint.data} />}
      <div class="row">
        <Button small icon="refresh" busy={checkpoint.loading} onClick={checkpoint.reload}>
          Read again
        </Button>
      </div>
    </>
  );
}

/** The checkpoint is read when somebody asks for it: it may be large, and no event tells of it. */
export function SessionCheckpoint({ id }: { id: string }) {
  const [open, setOpen] = useState(false);
  return (
    <Section title="Checkpoint">
      {open ? (
        <Checkpoint id={id} />
      ) : (
        <div class="row">
          <Button small onClick={() => setOpen(true)}>
            Show the checkpoint
          </Button>
        </div>
      )}
    </Section>
  );
}
