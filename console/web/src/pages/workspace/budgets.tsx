// Budgets: limits of what agents may use, with what is spent.

import { useState } from "preact/hooks";
import { api } from "../../api";
import type { Read } from "../../reads";
import { useAgents, useProjects, wsPath } from "../../workspace";
import type { Issue } from "../../types";
import type { Budget } from "../../types_agents";
import { Button, type Column, Empty, ErrorPanel, Field, Section, Select, Table, TextInput, toast } from "../../ui";
import { faultOf, useAct } from "../act";
import { ScopeName } from "../agents/session_links";
import { BudgetBars } from "../agents/session_parts";
import { FormDialog } from "../form_dialog";
import { useRights } from "../rights";
import { askAndSend } from "./acts";

type Kind = "workspace" | "agent" | "project" | "issue";

const kinds: { value: Kind; label: string }[] = [
  { value: "workspace", label: "The whole workspace" },
  { value: "agent", label: "An agent" },
  { value: "project", label: "A project" },
  { value: "issue", label: "An issue" },
];

/** Reads an amount that may be empty; undefined if it is no number from 0 on. */
function amountOf(text: string, factor: number): number | null | undefined {
  if (text.trim() === "") return null;
  const n = Math.round(Number(text) * factor);
  return Number.isSafeInteger(n) && n >= 0 ? n : undefined;
}

function BudgetDialog({ budget, onDone, onClose }: { budget: Budget | null; onDone(): void; onClose(): void }) {
  const agents = useAgents();
  const projects = useProjects();
  const [kind, setKind] = useState<Kind>("workspace");
  const [id, setId] = useState("");
  const [period, setPeriod] = useState<Budget["period"]>(budget?.period ?? "month");
  const [cost, setCost] = useState(budget?.costMicros != null ? String(budget.costMicros / 1e6) : "");
  const [tokens, setTokens] = useState(budget?.tokens?.toString() ?? "");
  const act = useAct();
  const costMicros = amountOf(cost, 1e6);
  const tokenLimit = amountOf(tokens, 1);
  const named = budget !== null || kind === "workspace" || id.trim() !== "";

  const submit = async () => {
    const done = await act.run({ kind, id, period, cost, tokens }, async (key) => {
      let scope = budget?.scope ?? (kind === "workspace" ? kind : `${kind}:${id.trim()}`);
      if (!budget && kind === "issue") scope = `issue:${await issueId(id.trim())}`;
      await api.send("PUT", wsPath(`/budgets/${encodeURIComponent(scope)}`), { period, costMicros, tokens: tokenLimit }, { key });
    });
    if (!done) return;
    toast("The budget is set.", { kind: "success" });
    onDone();
  };
  const amountFault = (value: number | null | undefined, field: string) => (value === undefined ? "Must be a number from 0 on." : faultOf(act.error, field));
  return (
    <FormDialog
      title={budget ? "Change the budget" : "New budget"}
      action="Set budget"
      act={act}
      fields={["scope", "period", "costMicros", "tokens"]}
      incomplete={!named || costMicros === undefined || tokenLimit === undefined}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <p>Running sessions of the budget end when more is spent than it allows. Queued ones wait.</p>
      {budget ? (
        <p>
          <ScopeName scope={budget.scope} />
        </p>
      ) : (
        <Field label="Budget of" error={faultOf(act.error, "scope")}>
          <Select
            value={kind}
            onChange={(value) => {
              setKind(value as Kind);
              setId("");
            }}
            options={kinds}
          />
        </Field>
      )}
      {!budget && kind === "agent" && (
        <Field label="Agent">
          <Select value={id} onChange={setId} options={[{ value: "", label: "Choose an agent" }, ...agents.map((a) => ({ value: a.id, label: a.name }))]} />
        </Field>
      )}
      {!budget && kind === "project" && (
        <Field label="Project">
          <Select value={id} onChange={setId} options={[{ value: "", label: "Choose a project" }, ...projects.map((p) => ({ value: p.id, label: p.name }))]} />
        </Field>
      )}
      {!budget && kind === "issue" && (
        <Field label="Issue" hint="Its identifier, such as CORE-12.">
          <TextInput value={id} onInput={setId} maxLength={255} />
        </Field>
      )}
      <Field label="Period" error={faultOf(act.error, "period")}>
        <Select
          value={period}
          onChange={(value) => setPeriod(value as Budget["period"])}
          options={[
            { value: "month", label: "Each calendar month, in UTC" },
            { value: "total", label: "In total" },
          ]}
        />
      </Field>
      <Field label="Cost" hint="In the currency that agents report. Empty for no limit." error={amountFault(costMicros, "costMicros")}>
        <TextInput value={cost} onInput={setCost} inputMode="decimal" />
      </Field>
      <Field label="Tokens" hint="Input and output together. Empty for no limit." error={amountFault(tokenLimit, "tokens")}>
        <TextInput value={tokens} onInput={setTokens} inputMode="numeric" />
      </Field>
    </FormDialog>
  );
}

/** Finds the id of an issue that a person named by its identifier. */
async function issueId(text: string): Promise<string> {
  const found = await api.get<{ issues: Issue[] }>(wsPath("/issues"), { identifier: text.toUpperCase(), limit: 1 });
  // A text that is no identifier may be an id.
  return found.issues[0]?.id ?? text;
}

export function Budgets({ budgets }: { budgets: Read<{ budgets: Budget[] }> }) {
  const rights = useRights();
  const [editing, setEditing] = useState<Budget | null | undefined>(undefined);
  const remove = async (budget: Budget) => {
    const done = await askAndSend(
      { title: "Delete the budget?", text: "Sessions that wait for it go into the queue.", action: "Delete budget", danger: true },
      "DELETE",
      wsPath(`/budgets/${encodeURIComponent(budget.scope)}`),
      "The budget is deleted.",
    );
    if (done) budgets.reload();
  };
  const columns: Column<Budget>[] = [
    { key: "scope", title: "Budget of", render: (b) => <ScopeName scope={b.scope} /> },
    { key: "period", title: "Period", wide: true, render: (b) => (b.period === "month" ? "This month" : "In total") },
    { key: "spent", title: "Spent", width: "40%", render: (b) => <BudgetBars budget={b} /> },
    {
      key: "acts",
      title: "",
      align: "end",
      render: (b) =>
        rights.admin && (
          <span class="row row-end">
            <Button small onClick={() => setEditing(b)}>
              Change
            </Button>
            <Button small kind="quiet" onClick={() => void remove(b)}>
              Delete
            </Button>
          </span>
        ),
    },
  ];
  return (
    <Section
      title="Budgets"
      actions={
        rights.admin && (
          <Button small icon="plus" onClick={() => setEditing(null)}>
            New budget
          </Button>
        )
      }
    >
      {budgets.error ? (
        <ErrorPanel error={budgets.error} retry={budgets.reload} />
      ) : (
        <Table label="Budgets" columns={columns} rows={budgets.data?.budgets ?? []} rowKey={(b) => b.scope} empty={<Empty title="No budget limits what agents use." />} />
      )}
      {editing !== undefined && (
        <BudgetDialog
          budget={editing}
          onClose={() => setEditing(undefined)}
          onDone={() => {
            setEditing(undefined);
            budgets.reload();
          }}
        />
      )}
    </Section>
  );
}
