// The sessions of an issue: the runs of agents on it.

import { usePages } from "../../api";
import { useEvents } from "../../live";
import { A } from "../../router";
import type { Issue } from "../../types";
import type { SessionRow } from "../../types_agents";
import { Button } from "../../ui/button";
import { Section } from "../../ui/page";
import { ErrorPanel } from "../../ui/states";
import { Time } from "../../ui/time";
import { pagePath, useNames, wsPath } from "../../workspace";
import { SessionBadges, WaitingWhy } from "../agents/session_table";
import { useThrottled } from "../refresh";

export function IssueSessions({ issue, onDispatch }: { issue: Issue; onDispatch(): void }) {
  const list = usePages<SessionRow>(wsPath("/agent/sessions"), "sessions", { issueId: issue.id, summary: "1", limit: 20 });
  const names = useNames();
  const again = useThrottled(list.reload, 1000);
  useEvents(["session.*"], (event) => {
    if (event.data?.issueId === issue.id) again();
  });
  if (list.items.length === 0 && !list.error) return null;
  return (
    <Section
      title="Sessions"
      actions={
        <Button small icon="agent" onClick={onDispatch} disabled={Boolean(issue.archivedAt)}>
          Dispatch
        </Button>
      }
    >
      {list.error && <ErrorPanel error={list.error} retry={list.reload} />}
      <ul class="lines">
        {list.items.map((session) => (
          <li key={session.id} class="line">
            <SessionBadges session={session} />
            <A href={pagePath("sessions/" + session.id)} class="grow clip">
              {session.label ?? names(session.agentId)}
            </A>
            <WaitingWhy session={session} />
            <span class="muted">
              <Time at={session.lastProgressAt ?? session.createdAt} />
            </span>
          </li>
        ))}
      </ul>
      {list.more && (
        <Button small onClick={list.loadMore} busy={list.loading}>
          Show more
        </Button>
      )}
    </Section>
  );
}
