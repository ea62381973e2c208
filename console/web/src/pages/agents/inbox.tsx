// The inbox: questions of agents, and drafts that somebody has to decide about.

import { usePages } from "../../api";
import { useKeys } from "../../keys";
import { useEvents } from "../../live";
import { setQuery, useRoute } from "../../router";
import { useNames, wsPath } from "../../workspace";
import type { Draft, SessionRow } from "../../types_agents";
import { Badge, Empty, ErrorPanel, Page, Spinner, Tabs, Time } from "../../ui";
import { MoreRows } from "../paged_table";
import { useThrottled } from "../refresh";
import { draftKind, InboxDraft } from "./inbox_draft";
import { InboxQuestion } from "./inbox_question";
import { useIssueTitle } from "./issue_titles";
import { useQuestions } from "./questions";
import { firstLine } from "./session_text";

interface ItemProps {
  id: string;
  active: boolean;
  onPick(id: string): void;
}

function QuestionItem({ row, active, onPick }: { row: SessionRow } & Omit<ItemProps, "id">) {
  const name = useNames();
  const issue = useIssueTitle(row.issueId);
  return (
    <button type="button" class="inbox-item" aria-current={active ? "true" : undefined} onClick={() => onPick(row.id)}>
      <span class="inbox-title">
        {issue?.identifier && <span class="mono muted">{issue.identifier}</span>} {issue?.title ?? "A session"}
      </span>
      <span class="inbox-meta">
        {name(row.agentId)} <Time at={row.lastProgressAt ?? row.createdAt} />
      </span>
    </button>
  );
}

function DraftItem({ draft, active, onPick }: { draft: Draft } & Omit<ItemProps, "id">) {
  const name = useNames();
  const issue = useIssueTitle(draft.issueId);
  const text = draft.kind === "comment" ? String(draft.payload.body ?? "") : String(draft.payload.title ?? issue?.title ?? "");
  return (
    <button type="button" class="inbox-item" aria-current={active ? "true" : undefined} onClick={() => onPick(draft.id)}>
      <span class="inbox-title">
        <Badge>{draftKind[draft.kind]}</Badge> {issue?.identifier && <span class="mono muted">{issue.identifier}</span>} {firstLine(text, 80)}
      </span>
      <span class="inbox-meta">
        {name(draft.createdById)} <Time at={draft.createdAt} />
      </span>
    </button>
  );
}

export default function InboxPage() {
  const { query } = useRoute();
  const questions = useQuestions();
  const drafts = usePages<Draft>(wsPath("/drafts"), "drafts", { status: "pending" });
  const draftsSoon = useThrottled(drafts.reload, 1000);
  useEvents(["draft.*"], draftsSoon);

  const view = query.view === "drafts" ? "drafts" : "questions";
  const ids = view === "drafts" ? drafts.items.map((d) => d.id) : questions.sessions.map((s) => s.id);
  // The item of the address may be gone: then the first one is shown.
  const at = Math.max(0, ids.indexOf(query.item ?? ""));
  const id = ids[at];
  const pick = (item: string | undefined) => setQuery({ item: item ?? null });
  const move = (by: number) => pick(ids[Math.min(ids.length - 1, Math.max(0, at + by))]);
  useKeys("Inbox", {
    j: { help: "Next", run: () => move(1) },
    k: { help: "Previous", run: () => move(-1) },
  });

  const question = view === "questions" ? questions.sessions.find((s) => s.id === id) : undefined;
  const draft = view === "drafts" ? drafts.items.find((d) => d.id === id) : undefined;
  const list = view === "questions" ? questions : drafts;

  const body = () => {
    if (list.error && ids.length === 0) return <ErrorPanel error={list.error} retry={list.reload} />;
    if (list.loading && ids.length === 0) return <Spinner />;
    if (ids.length === 0) {
      return view === "questions" ? (
        <Empty title="No agent waits for an answer." icon="inbox">
          Questions appear here as soon as an agent asks.
        </Empty>
      ) : (
        <Empty title="No draft waits for a decision." icon="inbox">
          Agents that may not write into issues propose drafts instead.
        </Empty>
      );
    }
    return (
      <div class="inbox">
        <ul class="inbox-list plain-list" aria-label={view === "questions" ? "Questions" : "Drafts"}>
          {view === "questions"
            ? questions.sessions.map((row) => (
                <li key={row.id}>
                  <QuestionItem row={row} active={row.id === id} onPick={pick} />
                </li>
              ))
            : drafts.items.map((d) => (
                <li key={d.id}>
                  <DraftItem draft={d} active={d.id === id} onPick={pick} />
                </li>
              ))}
          {view === "drafts" && (
            <li>
              <MoreRows pages={drafts} />
            </li>
          )}
        </ul>
        <div class="inbox-detail">
          {question && <InboxQuestion key={question.id} row={question} onAnswered={questions.reload} />}
          {draft && <InboxDraft key={draft.id} draft={draft} onDecided={drafts.reload} />}
        </div>
      </div>
    );
  };

  return (
    <Page title="Inbox" subtitle="Questions that agents wait on, and drafts that they propose.">
      {questions.partial && <p class="notice">There are more sessions than the inbox looks at. The queue lists all that wait.</p>}
      <Tabs
        label="Inbox"
        active={view}
        onChange={(key) => setQuery({ view: key === "questions" ? null : key, item: null })}
        tabs={[
          { key: "questions", title: "Questions", count: questions.sessions.length },
          { key: "drafts", title: "Drafts", count: drafts.items.length },
        ]}
      >
        {body()}
      </Tabs>
    </Page>
  );
}
