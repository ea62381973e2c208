// An agent: its settings, its work, its holds, and what it has used.

import { useState } from "preact/hooks";
import { api, usePages, useRead } from "../../api";
import { useEvents } from "../../live";
import { navigate, setQuery, useRoute } from "../../router";
import { pagePath, refresh, wsPath } from "../../workspace";
import type { Agent } from "../../types";
import type { Budget, Hold, QueueSummary, SessionRow, UsageGroup } from "../../types_agents";
import { Badge, Button, confirm, Empty, ErrorPanel, LinkButton, Menu, Page, Section, Spinner, Tabs, Time, toast, toastFailure } from "../../ui";
import { useEvery, useThrottled } from "../refresh";
import { useRights } from "../rights";
import { AgentDialog } from "./agent_form";
import { endHold, HoldDialog } from "./holds";
import { RedriveDialog } from "./redrive";
import { BudgetBars } from "./session_parts";
import { SessionTable } from "./session_table";
import { formatCost, formatCount, tokensOf } from "./session_text";

const views = { running: "Running", created: "Queued", waiting: "Waiting", dead: "Dead letters", all: "All" } as const;

type View = keyof typeof views;

function sessionQuery(agent: string, view: View): Record<string, string | number | boolean> {
  const query = { summary: 1, agentId: agent };
  if (view === "dead") return { ...query, deadLettered: true };
  return view === "all" ? query : { ...query, status: view };
}

function retryText(agent: Agent): string {
  const retry = agent.retry;
  if (!retry) return "3 attempts, after leases that ran out";
  const on = retry.on.map((word) => (word === "lapsed" ? "leases that ran out" : "failures")).join(" and ");
  return `${retry.maxAttempts} attempts, after ${on || "nothing"}${retry.backoffSeconds > 0 ? `, with a pause of ${retry.backoffSeconds} s at first` : ""}`;
}

function Settings({ agent }: { agent: Agent }) {
  return (
    <dl class="facts">
      <dt>Provider</dt>
      <dd>{agent.provider ?? "none"}</dd>
      <dt>Model</dt>
      <dd>{agent.model ?? "none"}</dd>
      <dt>At the same time</dt>
      <dd>{agent.maxConcurrentSessions ? `${agent.maxConcurrentSessions} sessions` : "no limit"}</dd>
      <dt>One at a time for each</dt>
      <dd>{agent.concurrencyBy.length > 0 ? agent.concurrencyBy.join(", ") : "nothing"}</dd>
      <dt>Retries</dt>
      <dd>{retryText(agent)}</dd>
      <dt>Registered</dt>
      <dd>
        <Time at={agent.createdAt} />
      </dd>
      <dt>Id</dt>
      <dd>
        <code>{agent.id}</code>
      </dd>
    </dl>
  );
}

function AgentView({ id, agent, reload }: { id: string; agent: Agent | null; reload(): void }) {
  const rights = useRights();
  const { query } = useRoute();
  const view: View = query.view && query.view in views ? (query.view as View) : "running";
  const [dialog, setDialog] = useState<"settings" | "hold" | "redrive" | null>(null);
  const sessions = usePages<SessionRow>(wsPath("/agent/sessions"), "sessions", sessionQuery(id, view));
  const queue = useRead<QueueSummary>(wsPath("/agent/queue"));
  const holds = useRead<{ holds: Hold[] }>(wsPath("/holds"));
  const budgets = useRead<{ budgets: Budget[] }>(wsPath("/budgets"));
  const [from] = useState(() => new Date(Date.now() - 30 * 86_400_000).toISOString());
  const usage = useRead<{ groups: UsageGroup[] }>(wsPath("/usage"), { groupBy: "agent", from });
  const queueSoon = useThrottled(queue.reload, 1000);
  const sessionsSoon = useThrottled(sessions.reload, 2000);
  const usageSoon = useThrottled(() => {
    usage.reload();
    budgets.reload();
  }, 10_000);
  useEvents(["session.*", "hold.*"], (event) => {
    if (event.type.startsWith("hold.")) holds.reload();
    else if (event.data?.agentId !== id) return;
    queueSoon();
    sessionsSoon();
    if (event.changes?.usage) usageSoon();
  });
  useEvery(queue.reload, 10_000);

  const work = queue.data?.byAgent.find((row) => row.agentId === id);
  const held = (holds.data?.holds ?? []).filter((h) => h.scope === "workspace" || h.scope === `agent:${id}` || (agent?.provider && h.scope === `provider:${agent.provider}`));
  const own = held.find((h) => h.scope === `agent:${id}`);
  const used = usage.data?.groups.find((group) => group.group === id);
  const budget = budgets.data?.budgets.find((b) => b.scope === `agent:${id}`);
  const name = agent?.name ?? id;
  const close = () => setDialog(null);

  const remove = async () => {
    const yes = await confirm({
      title: `Delete ${name}?`,
      text: "It gets no more work. Its sessions, and what it has written, stay.",
      action: "Delete agent",
      danger: true,
    });
    if (!yes) return;
    try {
      await api.send("DELETE", wsPath(`/agents/${encodeURIComponent(id)}`));
      refresh("agents");
      toast("The agent is deleted.", { kind: "success" });
      navigate(pagePath("agents"));
    } catch (error) {
      toastFailure(error);
    }
  };

  return (
    <Page
      title={name}
      subtitle={
        <span class="badges">
          {agent?.isDefault && <Badge kind="accent">Default</Badge>}
          {!agent && <Badge kind="warning">Not registered</Badge>}
          {held.length > 0 && <Badge kind="warning">On hold</Badge>}
          <span>
            {work ? `${work.running} running, ${work.created} queued, ${work.waiting} waiting` : "No sessions now"}
            {work && work.claimersWaiting > 0 && `, ${work.claimersWaiting} claims wait`}
          </span>
        </span>
      }
      actions={
        rights.admin && (
          <>
            {own ? (
              <Button icon="play" onClick={() => void endHold(own.scope).then((ended) => ended && holds.reload())}>
                End hold
              </Button>
            ) : (
              <Button icon="pause" onClick={() => setDialog("hold")}>
                Hold
              </Button>
            )}
            {agent && (
              <Menu
                label="More acts"
                items={[
                  { label: "Change settings", icon: "edit", onSelect: () => setDialog("settings") },
                  { label: "Delete agent", icon: "trash", danger: true, onSelect: () => void remove() },
                ]}
              />
            )}
          </>
        )
      }
    >
      {held.map((hold) => (
        <p key={hold.scope} class="notice">
          On hold{hold.scope === `agent:${id}` ? "" : hold.scope === "workspace" ? " with the whole workspace" : " with its provider"}: {hold.reason}.{" "}
          {hold.until ? (
            <>
              Until <Time at={hold.until} plain />.
            </>
          ) : (
            "Until somebody ends it."
          )}
        </p>
      ))}
      <div class="columns">
        <div class="column-main">
          <Section
            title="Sessions"
            actions={
              view === "dead" && rights.sessions && sessions.items.length > 0 ? (
                <Button small icon="refresh" onClick={() => setDialog("redrive")}>
                  Retry dead letters
                </Button>
              ) : null
            }
          >
            <Tabs
              label="Sessions by status"
              active={view}
              onChange={(key) => setQuery({ view: key === "running" ? null : key })}
              tabs={(Object.keys(views) as View[]).map((key) => ({ key, title: views[key] }))}
            >
              <SessionTable label={`Sessions: ${views[view]}`} pages={sessions} without={["agent"]} empty={<Empty title="There are none." icon="agent" />} />
            </Tabs>
          </Section>
        </div>
        <div class="column-side">
          {agent && (
            <Section title="Settings">
              <Settings agent={agent} />
            </Section>
          )}
          <Section title="Usage of the last 30 days" actions={rights.admin && <LinkButton href={pagePath("settings/usage")}>Budgets</LinkButton>}>
            {used ? (
              <dl class="facts">
                <dt>Cost</dt>
                <dd>{formatCost(used.costMicros)}</dd>
                <dt>Tokens</dt>
                <dd>{formatCount(tokensOf(used))}</dd>
              </dl>
            ) : (
              <p class="muted">Nothing was reported.</p>
            )}
            {budget && <BudgetBars budget={budget} />}
          </Section>
        </div>
      </div>
      {dialog === "settings" && agent && (
        <AgentDialog
          agent={agent}
          onClose={close}
          onDone={() => {
            close();
            reload();
          }}
        />
      )}
      {dialog === "hold" && (
        <HoldDialog
          scope={`agent:${id}`}
          onClose={close}
          onDone={() => {
            close();
            holds.reload();
          }}
        />
      )}
      {dialog === "redrive" && (
        <RedriveDialog
          agentId={id}
          onClose={close}
          onDone={() => {
            close();
            sessions.reload();
          }}
        />
      )}
    </Page>
  );
}

export default function AgentPage() {
  const { params } = useRoute();
  const id = params.agent ?? "";
  const read = useRead<Agent>(wsPath(`/agents/${encodeURIComponent(id)}`));
  // Sessions may belong to an agent that nobody registered, or that was deleted.
  if (read.error?.status === 404) return <AgentView key={id} id={id} agent={null} reload={read.reload} />;
  if (read.data) return <AgentView key={id} id={id} agent={read.data} reload={read.reload} />;
  return <Page title="Agent">{read.error ? <ErrorPanel error={read.error} retry={read.reload} /> : <Spinner />}</Page>;
}
