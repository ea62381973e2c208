// Triage: new issues one after the other, each decided with one key.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, useRead } from "../../api";
import { useKeys } from "../../keys";
import { A, navigate } from "../../router";
import { useSession } from "../../session";
import { labelsOf, priorities, type Issue, type SimilarIssue } from "../../types";
import { Button } from "../../ui/button";
import { Markdown } from "../../ui/markdown";
import { StatusIcon } from "../../ui/marks";
import { Page } from "../../ui/page";
import { Empty, ErrorPanel, Spinner } from "../../ui/states";
import { Time } from "../../ui/time";
import { toast, toastFailure } from "../../ui/toast";
import { VirtualList } from "../../ui/virtual_list";
import { pagePath, useLabels, useNames, wsPath } from "../../workspace";
import type { IssueRow } from "./filters";
import { tellIssue } from "./issue_bus";
import { changeIssue, changeOrTell, type IssuePatch } from "./issue_change";
import { IssueLine, lineHeight } from "./issue_line";
import { useIssueRows } from "./issue_rows";
import { AssigneePick, LabelsPick, PriorityPick } from "./pickers";
import { snoozeUntil } from "./snooze";

const noQuery = {};

export default function Triage() {
  const list = useIssueRows("/triage", noQuery);
  const items = useMemo(() => list.items.filter((row) => row.status === "triage"), [list.items]);
  const labels = useLabels();
  const names = useNames();
  const session = useSession();
  const [chosen, setChosen] = useState<string | null>(null);
  const place = useRef(0);
  const found = items.findIndex((row) => row.id === chosen);
  // When the chosen issue leaves the list, the one that takes its place is next.
  const at = found >= 0 ? found : Math.min(place.current, items.length - 1);
  const row = items[at];
  useEffect(() => {
    place.current = Math.max(0, at);
    if (row && row.id !== chosen) setChosen(row.id);
  }, [at, row?.id]);

  const step = (by: number) => () => {
    const next = items[Math.max(0, Math.min(items.length - 1, at + by))];
    if (next) setChosen(next.id);
  };
  const decide = async (patch: IssuePatch, words: string) => {
    if (!row) return;
    const before = row;
    try {
      const changed = await changeIssue(before, patch);
      if (!changed) return;
      toast(`${before.identifier} ${words}.`, { kind: "success", action: { label: "Undo", run: () => void changeOrTell(changed.issue, undoing(before, patch), "Undone.") } });
    } catch (error) {
      toastFailure(error, () => void decide(patch, words));
    }
  };
  const shift = (by: number) => () => {
    const to = row && priorities[priorities.indexOf(row.priority) + by];
    if (row && to) void changeOrTell(row, { priority: to });
  };
  const accept = () => void decide({ status: "backlog" }, "accepted into the backlog");
  const plan = () => void decide({ status: "todo" }, "planned");
  const decline = () => void decide({ status: "canceled", resolution: "not_planned" }, "declined");
  const snooze = () => void decide({ snoozedUntil: snoozeUntil(1) }, "snoozed until tomorrow");
  const pick = (label: string) => () => document.querySelector<HTMLElement>(`.triage-detail [aria-label^="${label}:"]`)?.click();
  useKeys("Triage", {
    j: { help: "Next issue", run: step(1) },
    k: { help: "Issue before", run: step(-1) },
    arrowdown: { help: "", run: step(1) },
    arrowup: { help: "", run: step(-1) },
    "1": { help: "Accept into the backlog", run: accept },
    "2": { help: "Accept as to do", run: plan },
    "3": { help: "Decline", run: decline },
    s: { help: "Snooze until tomorrow", run: snooze },
    "+": { help: "Raise the priority", run: shift(-1) },
    "-": { help: "Lower the priority", run: shift(1) },
    a: { help: "Choose the assignee", run: pick("Assignee") },
    l: { help: "Choose labels", run: pick("Labels") },
    m: { help: "Assign it to me", run: () => row && session?.actorId && void changeOrTell(row, { assigneeId: session.actorId }) },
    o: { help: "Open the issue", run: () => row && navigate(pagePath("issues/" + (row.identifier ?? row.id))) },
  });

  return (
    <Page title="Triage" fill subtitle={items.length > 0 ? `${items.length}${list.more ? " or more" : ""} to decide` : undefined}>
      {list.error && (
        <div class="pad">
          <ErrorPanel error={list.error} retry={list.reload} />
        </div>
      )}
      {list.loading && items.length === 0 && <Spinner />}
      {!list.loading && !list.error && items.length === 0 && <Empty title="Nothing waits for triage." icon="check" />}
      {row && (
        <div class="triage">
          <div class="triage-list">
            <VirtualList
              class="issue-lines"
              label={`Issues in triage, ${items.length}`}
              items={items}
              rowHeight={lineHeight}
              keyOf={(r: IssueRow) => r.id}
              onEnd={list.loadMore}
              active={at}
              render={(r: IssueRow) => (
                <div class={r.id === row.id ? "triage-line triage-current" : "triage-line"} aria-current={r.id === row.id ? "true" : undefined} onClick={() => setChosen(r.id)}>
                  <IssueLine row={r} labels={labels} nameOf={names} current={r.id === row.id} focused={r.id === row.id} onFocus={setChosen} />
                </div>
              )}
            />
          </div>
          <section class="triage-detail" aria-label={`${row.identifier} ${row.title}`}>
            <div class="triage-acts" role="group" aria-label="Decide">
              <Button kind="primary" onClick={accept}>
                Accept <kbd>1</kbd>
              </Button>
              <Button onClick={plan}>
                To do <kbd>2</kbd>
              </Button>
              <Button onClick={decline}>
                Decline <kbd>3</kbd>
              </Button>
              <Button onClick={snooze}>
                Snooze <kbd>s</kbd>
              </Button>
            </div>
            <Detail key={row.id} row={row} onDuplicate={(words) => toast(words, { kind: "success" })} />
          </section>
        </div>
      )}
    </Page>
  );
}

/** The patch that takes another one back. */
function undoing(before: IssueRow, patch: IssuePatch): IssuePatch {
  const out: Record<string, unknown> = {};
  for (const field of Object.keys(patch)) out[field] = (before as any)[field];
  return out as IssuePatch;
}

function Detail({ row, onDuplicate }: { row: IssueRow; onDuplicate(words: string): void }) {
  const issue = useRead<Issue>(wsPath("/issues/" + row.id));
  const similar = useRead<{ similar: SimilarIssue[] }>(wsPath(`/issues/${row.id}/similar`), { limit: 5 });
  const names = useNames();
  const duplicate = async (of: Issue) => {
    tellIssue({ ...row, status: "canceled", resolution: "duplicate" });
    try {
      await api.send("PUT", wsPath(`/issues/${row.id}/relations/duplicates/${of.id}`));
      onDuplicate(`${row.identifier} is a duplicate of ${of.identifier}, and closed.`);
    } catch (error) {
      tellIssue(row);
      toastFailure(error, () => void duplicate(of));
    }
  };
  return (
    <>
      <h2 class="triage-title">
        <span class="identifier">{row.identifier}</span> {row.title}
      </h2>
      <p class="muted">
        Created <Time at={row.createdAt} />
        {row.assigneeId && <>, assigned to {names(row.assigneeId)}</>}
      </p>
      <div class="pick-row">
        <PriorityPick value={row.priority} onChange={(priority) => void changeOrTell(row, { priority })} class="pick pick-boxed" />
        <AssigneePick value={row.assigneeId} onChange={(assigneeId) => void changeOrTell(row, { assigneeId })} class="pick pick-boxed" />
        <LabelsPick value={labelsOf(row)} onChange={(labelIds) => void changeOrTell(row, { labelIds })} class="pick pick-boxed" />
      </div>
      {issue.error && <ErrorPanel error={issue.error} retry={issue.reload} />}
      {issue.data?.description ? <Markdown text={issue.data.description} /> : issue.data && <p class="muted">No description.</p>}
      {similar.data && similar.data.similar.length > 0 && (
        <section aria-label="Similar issues" class="similar">
          <h3>Similar issues</h3>
          <ul class="lines">
            {similar.data.similar.map(({ issue: other }) => (
              <li key={other.id} class="line">
                <StatusIcon status={other.status} named />
                <A href={pagePath("issues/" + (other.identifier ?? other.id))} class="grow clip">
                  <span class="identifier">{other.identifier}</span> {other.title}
                </A>
                <Button small onClick={() => void duplicate(other)}>
                  Duplicate of this
                </Button>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}
