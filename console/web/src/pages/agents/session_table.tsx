// Sessions in rows: what they are about, how they are, and why nobody works on them.

import type { ComponentChildren } from "preact";
import { Badge, type BadgeKind, type Column, Time } from "../../ui";
import type { Pages } from "../../reads";
import type { SessionRow, SessionStatus } from "../../types_agents";
import { ExternalLink } from "../external_link";
import { PagedTable } from "../paged_table";
import { AgentLink, SessionLink, WaitTargets } from "./session_links";
import { reasonHelp, reasonTitle, statusTitle } from "./session_text";

const kinds: Record<SessionStatus, BadgeKind> = {
  created: "neutral",
  running: "info",
  waiting: "warning",
  completed: "success",
  failed: "danger",
  canceled: "neutral",
};

/** The status of a session, and whether it needs somebody. */
export function SessionBadges({ session }: { session: SessionRow }) {
  const { status, derivedStatus, waitingFor } = session;
  const asks = derivedStatus === "needs_input" && (waitingFor === null || waitingFor === undefined || waitingFor.reason === "preflight");
  return (
    <span class="badges">
      <Badge kind={kinds[status]}>{statusTitle[status]}</Badge>
      {asks && <Badge kind="accent">Needs an answer</Badge>}
      {derivedStatus === "stalled" && (
        <Badge kind="warning" title="Nothing was logged for a while.">
          Stalled
        </Badge>
      )}
    </span>
  );
}

/** Why nobody works on a session, with what it waits for. */
export function WaitingWhy({ session }: { session: SessionRow }) {
  const why = session.waitingFor;
  if (!why) return null;
  return (
    <div class="why">
      <span title={reasonHelp[why.reason]}>{reasonTitle[why.reason]}</span>
      {(why.on.length > 0 || Boolean(why.hidden)) && <WaitTargets waitingFor={why} />}
    </div>
  );
}

const columns: Column<SessionRow>[] = [
  { key: "session", title: "Session", render: (s) => <SessionLink session={s} /> },
  { key: "status", title: "Status", render: (s) => <SessionBadges session={s} /> },
  { key: "waits", title: "Waits for", render: (s) => <WaitingWhy session={s} /> },
  { key: "agent", title: "Agent", wide: true, render: (s) => <AgentLink id={s.agentId} /> },
  { key: "pr", title: "Pull request", wide: true, render: (s) => s.prUrl && <ExternalLink href={s.prUrl}>{s.prState ?? "open"}</ExternalLink> },
  { key: "progress", title: "Last progress", wide: true, render: (s) => <Time at={s.lastProgressAt} /> },
  { key: "created", title: "Created", render: (s) => <Time at={s.createdAt} /> },
];

interface SessionTableProps {
  label: string;
  pages: Pages<SessionRow>;
  empty: ComponentChildren;
  /** Columns to leave out, such as the agent on an agent's page. */
  without?: string[];
}

export function SessionTable({ label, pages, empty, without = [] }: SessionTableProps) {
  return <PagedTable label={label} pages={pages} columns={columns.filter((c) => !without.includes(c.key))} rowKey={(s) => s.id} empty={empty} />;
}
