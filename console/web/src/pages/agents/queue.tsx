// The queue as it flows: counts, why sessions wait, holds, keys, and the sessions themselves.

import { useState } from "preact/hooks";
import { usePages, useRead } from "../../api";
import { useEvents } from "../../live";
import { setQuery, useRoute } from "../../router";
import { useAgents, wsPath } from "../../workspace";
import { type Hold, type QueueOfAgent, type QueueSummary, type SessionRow, type SessionStatus, type WaitingReason, waitingReasons } from "../../types_agents";
import { Button, type Column, Empty, ErrorPanel, Page, Section, Spinner, Table, Tabs, Time } from "../../ui";
import { useEvery, useThrottled } from "../refresh";
import { useRights } from "../rights";
import { ConcurrencyKeys } from "./concurrency";
import { HoldList } from "./holds";
import { QueueFlow } from "./queue_flow";
import { RedriveDialog } from "./redrive";
import { AgentLink } from "./session_links";
import { SessionTable } from "./session_table";
import { formatCount, reasonHelp, reasonTitle, statusTitle } from "./session_text";

/** Claims that wait change the reasons without an event, so the counts are read again by the clock too. */
const countsEvery = 10_000;

type View = "running" | "created" | "waiting" | "dead" | "all";

const viewTitle: Record<View, string> = { running: "Running", created: "Queued", waiting: "Waiting", dead: "Dead letters", all: "All" };

const viewQuery: Record<View, Record<string, string>> = {
  running: { status: "running" },
  created: { status: "created" },
  waiting: { status: "waiting" },
  dead: { deadLettered: "true" },
  all: {},
};

const emptyText: Record<View, string> = {
  running: "No agent is at work.",
  created: "The queue is empty.",
  waiting: "No session waits.",
  dead: "There are no dead letters.",
  all: "No issue was dispatched to an agent yet.",
};

function Counts({ queue }: { queue: QueueSummary }) {
  const shown: SessionStatus[] = ["created", "running", "waiting", "completed", "failed", "canceled"];
  return (
    <dl class="stats">
      {shown.map((status) => (
        <div key={status} class={`stat stat-${status}`}>
          <dt>{statusTitle[status]}</dt>
          <dd>
            <span class="stat-value">{formatCount(queue.counts[status] ?? 0)}</span>
            {status === "created" && queue.oldestCreatedAt && (
              <span class="muted">
                oldest <Time at={queue.oldestCreatedAt} />
              </span>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Reasons({ queue }: { queue: QueueSummary }) {
  const rows = waitingReasons.filter((reason) => (queue.waitingFor[reason] ?? 0) > 0);
  const columns: Column<WaitingReason>[] = [
    { key: "reason", title: "Reason", render: (r) => reasonTitle[r] },
    { key: "count", title: "Sessions", align: "end", render: (r) => formatCount(queue.waitingFor[r] ?? 0) },
    { key: "help", title: "End of the wait", wide: true, render: (r) => <span class="muted">{reasonHelp[r]}</span> },
  ];
  return (
    <Section title="Why sessions wait">
      <Table label="Why sessions wait" columns={columns} rows={rows} rowKey={(r) => r} empty={<Empty title="Nothing keeps a session from being worked on." />} />
    </Section>
  );
}

function Agents({ queue }: { queue: QueueSummary }) {
  const agents = useAgents();
  const most = (id: string) => agents.find((a) => a.id === id)?.maxConcurrentSessions;
  const columns: Column<QueueOfAgent>[] = [
    { key: "agent", title: "Agent", render: (r) => <AgentLink id={r.agentId} /> },
    { key: "created", title: "Queued", align: "end", render: (r) => r.created },
    { key: "running", title: "Running", align: "end", render: (r) => (most(r.agentId) ? `${r.running} of ${most(r.agentId)}` : r.running) },
    { key: "waiting", title: "Waiting", align: "end", render: (r) => r.waiting },
    { key: "claimers", title: "Claims that wait", align: "end", wide: true, render: (r) => r.claimersWaiting },
    { key: "oldest", title: "Oldest queued", wide: true, render: (r) => (r.oldestCreatedAt ? <Time at={r.oldestCreatedAt} /> : "") },
  ];
  return (
    <Section title="By agent">
      <Table label="Sessions by agent" columns={columns} rows={queue.byAgent} rowKey={(r) => r.agentId} empty={<Empty title="No agent has sessions to work on." />} />
    </Section>
  );
}

function Sessions({ view, queue }: { view: View; queue: QueueSummary | undefined }) {
  const rights = useRights();
  const [redriving, setRedriving] = useState(false);
  const pages = usePages<SessionRow>(wsPath("/agent/sessions"), "sessions", { summary: 1, ...viewQuery[view] });
  const reloadSoon = useThrottled(pages.reload, 2000);
  useEvents(["session.*", "hold.*"], reloadSoon);
  const tabs = (Object.keys(viewTitle) as View[]).map((key) => ({
    key,
    title: viewTitle[key],
    count: key === "dead" || key === "all" ? undefined : queue?.counts[key],
  }));
  return (
    <Section
      title="Sessions"
      actions={
        view === "dead" && rights.sessions && pages.items.length > 0 ? (
          <Button small icon="refresh" onClick={() => setRedriving(true)}>
            Retry dead letters
          </Button>
        ) : null
      }
    >
      <Tabs label="Sessions by status" tabs={tabs} active={view} onChange={(key) => setQuery({ view: key === "running" ? null : key })}>
        <SessionTable label={`Sessions: ${viewTitle[view]}`} pages={pages} empty={<Empty title={emptyText[view]} icon="queue" />} />
      </Tabs>
      {redriving && (
        <RedriveDialog
          onClose={() => setRedriving(false)}
          onDone={() => {
            setRedriving(false);
            pages.reload();
          }}
        />
      )}
    </Section>
  );
}

export default function QueuePage() {
  const { query } = useRoute();
  const view: View = query.view && query.view in viewTitle ? (query.view as View) : "running";
  const queue = useRead<QueueSummary>(wsPath("/agent/queue"));
  const rights = useRights();
  const holds = useRead<{ holds: Hold[] }>(rights.read ? wsPath("/holds") : null);
  const countSoon = useThrottled(queue.reload, 1000);
  useEvents(["session.*", "hold.*"], (event) => {
    countSoon();
    if (event.type.startsWith("hold.")) holds.reload();
  });
  useEvery(queue.reload, countsEvery);

  return (
    <Page title="Queue" subtitle="Sessions are runs of agents on issues. The most urgent issue comes first, then the oldest session.">
      {queue.data ? (
        <>
          <Counts queue={queue.data} />
          <div class="columns columns-even">
            <div class="column-main">
              <Reasons queue={queue.data} />
              <Agents queue={queue.data} />
            </div>
            <div class="column-side">
              <QueueFlow />
              {rights.read && <HoldList holds={holds} />}
            </div>
          </div>
        </>
      ) : queue.error ? (
        <ErrorPanel error={queue.error} retry={queue.reload} />
      ) : (
        <Spinner />
      )}
      <Sessions view={view} queue={queue.data} />
      {queue.data && rights.read && <ConcurrencyKeys keys={queue.data.byKey} />}
    </Page>
  );
}
