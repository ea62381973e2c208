// Links to issues, sessions and agents by their ids, with names where the caller may see them.

import { useRead } from "../../api";
import { A } from "../../router";
import { pagePath, useNames, useProjects, wsPath } from "../../workspace";
import type { AgentSession, SessionRow, WaitingFor } from "../../types_agents";
import { useIssueTitle } from "./issue_titles";

export function IssueLink({ id, withTitle = true }: { id: string; withTitle?: boolean }) {
  const issue = useIssueTitle(id);
  if (issue === null) return <span class="muted">An issue that you can't see</span>;
  if (issue === undefined) return <span class="muted">…</span>;
  return (
    <A href={pagePath(`issues/${issue.identifier ?? issue.id}`)} class="session-link">
      {issue.identifier && <span class="mono muted">{issue.identifier}</span>} {withTitle && issue.title}
    </A>
  );
}

/** A link to a session, by the title of its issue. */
export function SessionLink({ session }: { session: SessionRow }) {
  const issue = useIssueTitle(session.issueId);
  return (
    <A href={pagePath(`sessions/${session.id}`)} class="session-link">
      {issue?.identifier && <span class="mono muted">{issue.identifier}</span>} {session.label ?? issue?.title ?? `Session …${session.id.slice(-6)}`}
    </A>
  );
}

export function AgentLink({ id }: { id: string }) {
  const name = useNames();
  if (id === "unassigned") return <span class="muted">Unassigned</span>;
  return <A href={pagePath(`agents/${encodeURIComponent(id)}`)}>{name(id)}</A>;
}

/** A session or an issue: a condition may be about either. */
function SessionOrIssue({ id }: { id: string }) {
  const session = useRead<AgentSession>(wsPath(`/agent/sessions/${id}`));
  if (session.data) return <SessionLink session={session.data} />;
  if (session.error) return <IssueLink id={id} />;
  return <span class="muted">…</span>;
}

/** The name of a scope of holds and budgets. */
export function ScopeName({ scope }: { scope: string }) {
  const colon = scope.indexOf(":");
  if (colon < 0) return <span>The whole workspace</span>;
  const id = scope.slice(colon + 1);
  switch (scope.slice(0, colon)) {
    case "agent":
      return (
        <span>
          Agent <AgentLink id={id} />
        </span>
      );
    case "issue":
      return <IssueLink id={id} />;
    case "project":
      return <ProjectName id={id} />;
  }
  return <span>{`Provider ${id}`}</span>;
}

function ProjectName({ id }: { id: string }) {
  const projects = useProjects();
  return <span>{`Project ${projects.find((p) => p.id === id)?.name ?? "…" + id.slice(-6)}`}</span>;
}

function Target({ reason, on }: { reason: WaitingFor["reason"]; on: string }) {
  switch (reason) {
    case "blocked":
      return <IssueLink id={on} />;
    case "queued_after":
    case "wait_for":
      return <SessionOrIssue id={on} />;
    case "agent_full":
      return <AgentLink id={on} />;
    case "budget":
    case "hold":
      return <ScopeName scope={on} />;
  }
  return <code>{on}</code>;
}

/** The things that a session waits for. */
export function WaitTargets({ waitingFor }: { waitingFor: WaitingFor }) {
  const { reason, on, hidden } = waitingFor;
  return (
    <ul class="plain-list">
      {on.map((id) => (
        <li key={id}>
          <Target reason={reason} on={id} />
        </li>
      ))}
      {hidden !== undefined && hidden > 0 && <li class="muted">{hidden === 1 ? "One more that you can't see" : `${hidden} more that you can't see`}</li>}
    </ul>
  );
}
