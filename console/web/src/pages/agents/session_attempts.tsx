// The attempts at a session: who claimed it, and how each attempt ended.

import { Badge, type BadgeKind, type Column, Section, Table, Time } from "../../ui";
import { useNames } from "../../workspace";
import type { SessionAttempt } from "../../types_agents";
import { firstLine, formatDuration } from "./session_text";

const endTitle: Record<NonNullable<SessionAttempt["end"]>, [string, BadgeKind]> = {
  completed: ["Completed", "success"],
  failed: ["Failed", "danger"],
  lapsed: ["Lease ran out", "warning"],
  released: ["Released", "neutral"],
  canceled: ["Canceled", "neutral"],
  waited: ["Began to wait", "neutral"],
};

function End({ attempt }: { attempt: SessionAttempt }) {
  if (attempt.end === null) return <Badge kind="info">At work</Badge>;
  const [title, kind] = endTitle[attempt.end];
  return (
    <span class="badges">
      <Badge kind={kind}>{title}</Badge>
      {attempt.failureReason && <code>{attempt.failureReason}</code>}
    </span>
  );
}

function lasted(attempt: SessionAttempt): string {
  if (!attempt.endedAt) return "";
  return formatDuration(Date.parse(attempt.endedAt) - Date.parse(attempt.claimedAt));
}

export function SessionAttempts({ attempts, retryLimit }: { attempts: SessionAttempt[]; retryLimit: number }) {
  const name = useNames();
  const columns: Column<SessionAttempt>[] = [
    { key: "number", title: "Attempt", render: (a) => a.number },
    { key: "end", title: "End", render: (a) => <End attempt={a} /> },
    { key: "claimer", title: "Claimed by", render: (a) => name(a.claimerId) },
    { key: "claimed", title: "Claimed", render: (a) => <Time at={a.claimedAt} /> },
    { key: "lasted", title: "Lasted", wide: true, render: lasted },
    { key: "last", title: "Last activity", wide: true, render: (a) => a.lastActivity && firstLine(a.lastActivity.message, 80) },
  ];
  return (
    <Section title="Attempts" actions={<span class="muted">{`At most ${retryLimit} that count`}</span>}>
      <Table label="Attempts" columns={columns} rows={attempts} rowKey={(a) => String(a.number)} empty={<p class="muted">Nobody has claimed the session yet.</p>} />
    </Section>
  );
}
