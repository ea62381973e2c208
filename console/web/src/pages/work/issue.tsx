// The page of one issue: its text, its records and its fields.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { useRead } from "../../api";
import { useKeys } from "../../keys";
import { useEvents } from "../../live";
import { navigate, useRoute } from "../../router";
import { useSession } from "../../session";
import type { Issue } from "../../types";
import { Button } from "../../ui/button";
import { Page, Section } from "../../ui/page";
import { Badge } from "../../ui/marks";
import { Empty, ErrorPanel, Spinner } from "../../ui/states";
import { Tabs } from "../../ui/tabs";
import { Time } from "../../ui/time";
import { toast, toastFailure } from "../../ui/toast";
import { pagePath, useNames, wsPath } from "../../workspace";
import { useToldIssues } from "./issue_bus";
import { changeIssue, type IssuePatch } from "./issue_change";
import { IssueAttachments } from "./issue_attachments";
import { IssueChildren } from "./issue_children";
import { IssueComments } from "./issue_comments";
import { IssueHistory } from "./issue_history";
import { IssueMenu } from "./issue_menu";
import { IssueRelations } from "./issue_relations";
import { IssueSessions } from "./issue_sessions";
import { IssueSide } from "./issue_side";
import { IssueText } from "./issue_text";
import { DispatchDialog } from "./dispatch_dialog";

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Finds the issue by its identifier, also a former one, or by its id. */
export default function IssuePage() {
  const { params } = useRoute();
  const name = params.issue ?? "";
  const isId = uuid.test(name);
  const found = useRead<{ issues: Issue[] }>(isId || name === "" ? null : wsPath("/issues"), { identifier: name, includeSnoozed: true, limit: 1 });
  const id = isId ? name : found.data?.issues[0]?.id;
  if (found.error && !found.data) {
    return (
      <Page title={name}>
        <ErrorPanel error={found.error} retry={found.reload} />
      </Page>
    );
  }
  if (!id) {
    if (found.loading) return <Spinner />;
    return (
      <Page title={name}>
        <Empty title={`There is no issue ${name}, or you may not see it.`} icon="search" />
      </Page>
    );
  }
  return <IssueById key={id} id={id} />;
}

function IssueById({ id }: { id: string }) {
  const read = useRead<Issue>(wsPath("/issues/" + id));
  const [gone, setGone] = useState(false);
  const latest = useRef(read);
  latest.current = read;

  useEvents(["issue.*"], (event) => {
    const issue = event.data as Issue | null;
    if (issue?.id !== id) return;
    if (event.type === "issue.deleted") setGone(true);
    else if (!latest.current.data) latest.current.reload(); // the answer may be older
    else if (issue.updatedAt > latest.current.data.updatedAt) {
      // Events carry no version, so the next change reads the issue before it sends.
      latest.current.set(issue, null);
    }
  });
  useToldIssues((told) => {
    const now = latest.current.data;
    if (told.kind === "deleted") {
      if (told.id === id) setGone(true);
    } else if (now && told.issue.id === id && told.issue.updatedAt >= now.updatedAt) {
      const newer = told.issue.updatedAt > now.updatedAt;
      latest.current.set({ ...now, ...told.issue }, newer ? null : undefined);
    }
  });

  if (gone) {
    return (
      <Page title={read.data?.identifier ?? "Issue"}>
        <Empty title="This issue was deleted.">
          <Button onClick={() => navigate(pagePath("issues"))}>Go to the issues</Button>
        </Empty>
      </Page>
    );
  }
  if (!read.data) {
    return read.error ? (
      <Page title="Issue">
        <ErrorPanel error={read.error} retry={read.reload} />
      </Page>
    ) : (
      <Spinner />
    );
  }
  return <IssueView issue={read.data} etag={read.etag} set={read.set} reload={read.reload} />;
}

interface IssueViewProps {
  issue: Issue;
  etag: string | null;
  set(issue: Issue, etag?: string | null): void;
  reload(): void;
}

function IssueView({ issue, etag, set, reload }: IssueViewProps) {
  const session = useSession();
  const names = useNames();
  const [editing, setEditing] = useState(false);
  const [dispatching, setDispatching] = useState(false);
  const [tab, setTab] = useState("comments");
  const archived = Boolean(issue.archivedAt);

  const change = useCallback(
    async (patch: IssuePatch) => {
      try {
        const changed = await changeIssue(issue, patch, etag);
        if (changed) set(changed.issue, changed.etag);
      } catch (error) {
        toastFailure(error, () => void change(patch));
        reload();
      }
    },
    [issue, etag],
  );

  useEffect(() => {
    // An identifier of the past leads here, too; the address then has the present one.
    const name = location.pathname.split("/").pop();
    if (issue.identifier && name !== issue.identifier) navigate(pagePath("issues/" + issue.identifier) + location.search, { replace: true });
  }, [issue.identifier]);

  const pick = (label: string) => () => document.querySelector<HTMLElement>(`.issue-side [aria-label^="${label}:"]`)?.click();
  useKeys("Issue", {
    e: { help: "Edit the title and description", run: () => setEditing(true) },
    s: { help: "Change the status", run: pick("Status") },
    p: { help: "Change the priority", run: pick("Priority") },
    a: { help: "Change the assignee", run: pick("Assignee") },
    m: { help: "Assign it to me", run: () => session?.actorId && void change({ assigneeId: session.actorId }) },
    r: { help: "Write a comment", run: () => document.querySelector<HTMLElement>("#new-comment textarea")?.focus() },
    d: { help: "Dispatch it to an agent", run: () => setDispatching(true) },
  });

  return (
    <Page
      title={`${issue.identifier ?? "Issue"} ${issue.title}`}
      heading={
        <>
          <span class="identifier">{issue.identifier}</span> {issue.title}
        </>
      }
      subtitle={
        <>
          {archived && <Badge kind="warning">Archived</Badge>} {issue.isDraft && <Badge>Draft</Badge>} Created <Time at={issue.createdAt} />, changed <Time at={issue.updatedAt} />
        </>
      }
      actions={
        <>
          <Button icon="edit" onClick={() => setEditing(true)} disabled={archived}>
            Edit
          </Button>
          <Button icon="agent" onClick={() => setDispatching(true)} disabled={archived}>
            Dispatch
          </Button>
          <IssueMenu issue={issue} etag={etag} onChanged={(next) => set(next, null)} />
        </>
      }
    >
      <div class="issue-page">
        <div class="issue-main">
          <Section title="Description">
            <IssueText
              issue={issue}
              etag={etag}
              editing={editing}
              onEdit={() => setEditing(true)}
              onDone={(changed) => {
                setEditing(false);
                if (changed) {
                  set(changed.issue, changed.etag);
                  toast("Saved.", { kind: "success" });
                }
              }}
            />
          </Section>
          <IssueChildren issue={issue} />
          <IssueRelations issue={issue} />
          <IssueAttachments issueId={issue.id} />
          <IssueSessions issue={issue} onDispatch={() => setDispatching(true)} />
          <Tabs
            label="Comments and history"
            tabs={[
              { key: "comments", title: "Comments" },
              { key: "history", title: "History" },
            ]}
            active={tab}
            onChange={setTab}
          >
            {tab === "comments" ? <IssueComments issueId={issue.id} closed={archived} /> : <IssueHistory issueId={issue.id} nameOf={names} />}
          </Tabs>
        </div>
        <IssueSide issue={issue} change={change} disabled={archived} />
      </div>
      {dispatching && <DispatchDialog issues={[issue]} onClose={() => setDispatching(false)} />}
    </Page>
  );
}
