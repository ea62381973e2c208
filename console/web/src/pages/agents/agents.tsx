// The agents of the workspace, with the work that each has.

import { useState } from "preact/hooks";
import { usePages, useRead } from "../../api";
import { useEvents } from "../../live";
import { A, navigate } from "../../router";
import { pagePath, wsPath } from "../../workspace";
import type { Agent } from "../../types";
import type { Hold, QueueOfAgent, QueueSummary } from "../../types_agents";
import { Avatar, Badge, Button, type Column, Empty, Page, Time } from "../../ui";
import { PagedTable } from "../paged_table";
import { useEvery, useThrottled } from "../refresh";
import { useRights } from "../rights";
import { AgentDialog } from "./agent_form";

const idle: Omit<QueueOfAgent, "agentId"> = { created: 0, running: 0, waiting: 0, claimersWaiting: 0, oldestCreatedAt: null };

export default function AgentsPage() {
  const rights = useRights();
  const agents = usePages<Agent>(wsPath("/agents"), "agents", { limit: 100 });
  const queue = useRead<QueueSummary>(wsPath("/agent/queue"));
  const holds = useRead<{ holds: Hold[] }>(wsPath("/holds"));
  const [adding, setAdding] = useState(false);
  const soon = useThrottled(queue.reload, 1000);
  useEvents(["session.*", "hold.*"], (event) => {
    soon();
    if (event.type.startsWith("hold.")) holds.reload();
  });
  useEvery(queue.reload, 10_000);

  const work = new Map((queue.data?.byAgent ?? []).map((row) => [row.agentId, row]));
  const of = (agent: Agent) => work.get(agent.id) ?? idle;
  const held = (agent: Agent) =>
    (holds.data?.holds ?? []).some((h) => h.scope === "workspace" || h.scope === `agent:${agent.id}` || h.scope === `provider:${agent.provider ?? ""}`);

  const columns: Column<Agent>[] = [
    {
      key: "name",
      title: "Agent",
      render: (a) => (
        <span class="badges">
          <Avatar id={a.id} name={a.name} agent />
          <A href={pagePath(`agents/${encodeURIComponent(a.id)}`)}>{a.name}</A>
          {a.isDefault && <Badge kind="accent">Default</Badge>}
          {held(a) && <Badge kind="warning">On hold</Badge>}
        </span>
      ),
    },
    { key: "provider", title: "Provider", wide: true, render: (a) => a.provider ?? "" },
    { key: "model", title: "Model", wide: true, render: (a) => a.model ?? "" },
    { key: "running", title: "Running", align: "end", render: (a) => (a.maxConcurrentSessions ? `${of(a).running} of ${a.maxConcurrentSessions}` : of(a).running) },
    { key: "queued", title: "Queued", align: "end", render: (a) => of(a).created },
    { key: "waiting", title: "Waiting", align: "end", render: (a) => of(a).waiting },
    { key: "claims", title: "Claims that wait", align: "end", wide: true, render: (a) => of(a).claimersWaiting },
    { key: "oldest", title: "Oldest queued", wide: true, render: (a) => (of(a).oldestCreatedAt ? <Time at={of(a).oldestCreatedAt} /> : "") },
  ];

  return (
    <Page
      title="Agents"
      subtitle="Issues are dispatched to agents. Any number of processes can work for one agent."
      actions={
        rights.admin && (
          <Button kind="primary" icon="plus" onClick={() => setAdding(true)}>
            Register agent
          </Button>
        )
      }
    >
      <PagedTable
        label="Agents"
        columns={columns}
        pages={agents}
        rowKey={(a) => a.id}
        empty={
          <Empty title="No agent is registered yet." icon="agent">
            Register an agent, make a token for it, and start a process that claims its sessions.
          </Empty>
        }
      />
      {adding && <AgentDialog agent={null} onClose={() => setAdding(false)} onDone={(agent) => navigate(pagePath(`agents/${encodeURIComponent(agent.id)}`))} />}
    </Page>
  );
}
