// A session, live: its activities, plan, usage, result, attempts and children.

import { usePages, useRead } from "../../api";
import { useEvents } from "../../live";
import { useRoute } from "../../router";
import { useSession } from "../../session";
import { wsPath } from "../../workspace";
import type { Issue } from "../../types";
import type { AgentSession, Budget, SessionAttempt, SessionRow } from "../../types_agents";
import { Badge, ErrorPanel, Markdown, Page, Section, Spinner, Time } from "../../ui";
import { ExternalLink } from "../external_link";
import { useThrottled } from "../refresh";
import { useRights } from "../rights";
import { SessionActivities } from "./session_activities";
import { ReplyBox, SessionButtons } from "./session_actions";
import { SessionAttempts } from "./session_attempts";
import { AgentLink, IssueLink } from "./session_links";
import { useSessionLog } from "./session_log";
import { SessionCheckpoint, SessionPlan, SessionResult, SessionUsage } from "./session_parts";
import { SessionBadges, SessionTable, WaitingWhy } from "./session_table";
import { hasEnded, reasonHelp } from "./session_text";
import { useIssueTitle } from "./issue_titles";

/** A session without a policy of its own is claimed so often at most. */
const defaultAttempts = 3;

function Facts({ session }: { session: AgentSession }) {
  return (
    <dl class="facts">
      <dt>Issue</dt>
      <dd>
        <IssueLink id={session.issueId} />
      </dd>
      <dt>Agent</dt>
      <dd>
        <AgentLink id={session.agentId} />
      </dd>
      <dt>Provider</dt>
      <dd>{session.url ? <ExternalLink href={session.url}>{session.provider}</ExternalLink> : session.provider}</dd>
      {session.purpose && (
        <>
          <dt>Purpose</dt>
          <dd>{session.purpose}</dd>
        </>
      )}
      {session.effort && (
        <>
          <dt>Effort</dt>
          <dd>{session.effort}</dd>
        </>
      )}
      {session.branch && (
        <>
          <dt>Branch</dt>
          <dd>
            <code>{session.branch}</code>
          </dd>
        </>
      )}
      {session.prUrl && (
        <>
          <dt>Pull request</dt>
          <dd>
            <ExternalLink href={session.prUrl}>{session.prState ?? "open"}</ExternalLink>
          </dd>
        </>
      )}
      {session.concurrencyKeys.length > 0 && (
        <>
          <dt>Concurrency keys</dt>
          <dd>
            {session.concurrencyKeys.map((key) => (
              <code key={key}>{key} </code>
            ))}
          </dd>
        </>
      )}
      {session.notBefore && session.status === "created" && (
        <>
          <dt>Not before</dt>
          <dd>
            <Time at={session.notBefore} plain />
          </dd>
        </>
      )}
      {session.failureReason && (
        <>
          <dt>Failure</dt>
          <dd>
            <code>{session.failureReason}</code>
          </dd>
        </>
      )}
      <dt>Created</dt>
      <dd>
        <Time at={session.createdAt} />
      </dd>
      <dt>Last progress</dt>
      <dd>
        <Time at={session.lastProgressAt} />
      </dd>
    </dl>
  );
}

function SessionView({ session, reload }: { session: AgentSession; reload(): void }) {
  const rights = useRights();
  const caller = useSession();
  const id = session.id;
  const log = useSessionLog(id);
  const attempts = useRead<{ attempts: SessionAttempt[] }>(wsPath(`/agent/sessions/${id}/attempts`));
  const children = usePages<SessionRow>(wsPath(`/agent/sessions/${id}/children`), "sessions", { summary: 1 });
  const budgets = useRead<{ budgets: Budget[] }>(rights.read ? wsPath("/budgets") : null);
  const issue = useRead<Issue>(wsPath(`/issues/${session.issueId}`));
  const title = useIssueTitle(session.issueId);

  const attemptsSoon = useThrottled(attempts.reload, 1000);
  const childrenSoon = useThrottled(children.reload, 2000);
  const budgetsSoon = useThrottled(budgets.reload, 2000);
  useEvents(["session.*"], (event) => {
    if (event.data?.id === id) {
      if (event.changes?.status || event.changes?.holder) attemptsSoon();
      if (event.changes?.usage) budgetsSoon();
    }
    if (event.type === "session.created" || children.items.some((child) => child.id === event.data?.id)) childrenSoon();
  });

  const heading = title?.identifier ? `${title.identifier} ${title.title}` : `Session …${id.slice(-6)}`;
  const waits = session.waitingFor;
  const parked = waits?.reason === "queued_after" || waits?.reason === "blocked";
  const asks = session.derivedStatus === "needs_input" && !parked && !hasEnded(session.status);
  const question = asks ? [...log.activities].reverse().find((a) => a.type === "elicitation") : undefined;
  const plan = session.plan ?? [];

  return (
    <Page
      title={heading}
      subtitle={
        <span class="badges">
          <SessionBadges session={session} />
          {session.deadLetteredAt && <Badge kind="danger">Dead letter</Badge>}
          <span>
            by <AgentLink id={session.agentId} />
          </span>
        </span>
      }
      actions={<SessionButtons session={session} attempts={attempts.data?.attempts ?? []} callerId={caller?.actorId ?? ""} onDone={reload} />}
    >
      {waits && (
        <div class="notice">
          <WaitingWhy session={session} />
          <p class="muted">{reasonHelp[waits.reason]}</p>
        </div>
      )}
      <div class="columns">
        <div class="column-main">
          {asks && (
            <Section title="Question">
              {question ? <Markdown text={question.message} /> : <p class="muted">The session waits for an answer. Its log says more.</p>}
              {rights.reply && <ReplyBox sessionId={id} onSent={reload} />}
            </Section>
          )}
          <SessionActivities log={log} />
          {!asks && rights.reply && !parked && !hasEnded(session.status) && <ReplyBox sessionId={id} onSent={reload} />}
          <SessionResult session={session} />
          <SessionAttempts attempts={attempts.data?.attempts ?? []} retryLimit={session.retry?.maxAttempts ?? defaultAttempts} />
          {(children.items.length > 0 || children.error) && (
            <Section title="Children">
              <SessionTable label="Children" pages={children} empty={null} without={["pr", "progress"]} />
            </Section>
          )}
        </div>
        <div class="column-side">
          <Section title="Details">
            <Facts session={session} />
          </Section>
          {plan.length > 0 && <SessionPlan plan={plan} />}
          <SessionUsage session={session} budgets={budgets.data?.budgets ?? []} left={log.budget} projectId={issue.data?.projectId ?? null} />
          <SessionCheckpoint id={id} />
        </div>
      </div>
    </Page>
  );
}

export default function SessionPage() {
  const { params } = useRoute();
  const read = useRead<AgentSession>(wsPath(`/agent/sessions/${params.session}`));
  const reloadSoon = useThrottled(read.reload, 500);
  // Followed from the first request on: a change that comes before its answer is shown counts, too.
  useEvents(["session.*", "hold.*"], (event) => {
    // The reason to wait may end with another session, or with a hold.
    if (event.data?.id === params.session || read.data?.waitingFor) reloadSoon();
  });
  if (read.data) return <SessionView key={read.data.id} session={read.data} reload={read.reload} />;
  return (
    <Page title="Session">
      {read.error ? <ErrorPanel error={read.error} retry={read.reload} /> : <Spinner />}
    </Page>
  );
}
