// A question of the inbox: the last activities before it, and the box for the answer.

import { useRead } from "../../api";
import { pagePath, wsPath } from "../../workspace";
import type { AgentSession, SessionRow } from "../../types_agents";
import { ErrorPanel, LinkButton, Markdown, Section, Spinner, Time } from "../../ui";
import { useRights } from "../rights";
import { ReplyBox } from "./session_actions";
import { AgentLink, IssueLink } from "./session_links";
import { useSessionLog } from "./session_log";
import { SessionBadges } from "./session_table";
import { activityTitle, firstLine } from "./session_text";

/** So many activities before the question are shown. */
const context = 5;

export function InboxQuestion({ row, onAnswered }: { row: SessionRow; onAnswered(): void }) {
  const rights = useRights();
  const log = useSessionLog(row.id);
  const session = useRead<AgentSession>(wsPath(`/agent/sessions/${row.id}`));
  const at = log.activities.map((a) => a.type).lastIndexOf("elicitation");
  const question = log.activities[at];
  const before = at > 0 ? log.activities.slice(Math.max(0, at - context), at) : at < 0 ? log.activities.slice(-context) : [];
  const preflight = row.waitingFor?.reason === "preflight" ? row.waitingFor.on : [];

  return (
    <Section title="Question" actions={<LinkButton href={pagePath(`sessions/${row.id}`)}>Open session</LinkButton>}>
      <p class="badges">
        <IssueLink id={row.issueId} />
        <span class="muted">
          <AgentLink id={row.agentId} /> asked <Time at={question?.createdAt ?? row.lastProgressAt ?? row.createdAt} />
        </span>
        <SessionBadges session={row} />
      </p>
      {log.error && <ErrorPanel error={log.error} retry={log.refresh} />}
      {log.loading && log.activities.length === 0 && <Spinner />}
      {before.length > 0 && (
        <ol class="plain-list context" aria-label="Activities before">
          {before.map((a) => (
            <li key={a.id} class="muted">
              <span class="activity-type">{activityTitle[a.type]}</span> {firstLine(a.message)}
            </li>
          ))}
        </ol>
      )}
      {question && (
        <blockquote class="question">
          <Markdown text={question.message} />
        </blockquote>
      )}
      {!question && !log.loading && preflight.length === 0 && <p>The session waits for an answer and has logged no question. Its last activities are above.</p>}
      {preflight.length > 0 && (
        <p>
          The preflight check missed: {preflight.join(", ")}. A reply puts the session into the queue.
        </p>
      )}
      {session.data?.result && <Markdown text={session.data.result} />}
      {rights.reply ? <ReplyBox sessionId={row.id} onSent={onAnswered} /> : <p class="muted">Only people with the permission to write sessions can reply.</p>}
    </Section>
  );
}
