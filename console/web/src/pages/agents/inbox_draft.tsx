// A draft of the inbox: what an agent would write, and the decision about it.

import { useState } from "preact/hooks";
import { api, useRead } from "../../api";
import { useKeys } from "../../keys";
import { A } from "../../router";
import { pagePath, useLabels, useNames, useProjects, useTeams, wsPath } from "../../workspace";
import { labelsOf, type Issue } from "../../types";
import type { Draft } from "../../types_agents";
import { Badge, Button, confirm, Field, Markdown, Section, TextArea, Time, toast } from "../../ui";
import { faultOf, useAct } from "../act";
import { FailureNote } from "../failure_note";
import { useDraft } from "../../drafts";
import { useRights } from "../rights";
import { IssueLink } from "./session_links";
import { prettyJSON } from "./session_text";

export const draftKind: Record<Draft["kind"], string> = {
  comment: "Comment",
  issue_create: "New issue",
  issue_update: "Change of an issue",
};

const fieldTitle: Record<string, string> = {
  title: "Title",
  description: "Description",
  status: "Status",
  priority: "Priority",
  assigneeId: "Assignee",
  projectId: "Project",
  cycleId: "Cycle",
  labelIds: "Labels",
  estimate: "Estimate",
  parentId: "Parent",
  teamId: "Team",
  teamKey: "Team",
  repo: "Repository",
  branch: "Branch",
  prUrl: "Pull request",
  prState: "State of the pull request",
  resolution: "Resolution",
  snoozedUntil: "Snoozed until",
  isDraft: "Draft",
  externalRef: "External reference",
  templateId: "Template",
  subIssueSortOrder: "Order among children",
};

/** Returns a way to write the value of a field of an issue as text. */
function useFieldText(): (field: string, value: unknown) => string {
  const name = useNames();
  const labels = useLabels();
  const projects = useProjects();
  const teams = useTeams();
  return (field, value) => {
    if (value === null || value === undefined || value === "") return "none";
    switch (field) {
      case "assigneeId":
        return name(String(value));
      case "projectId":
        return projects.find((p) => p.id === value)?.name ?? String(value);
      case "teamId":
        return teams.find((t) => t.id === value)?.name ?? String(value);
      case "labelIds": {
        const ids = Array.isArray(value) ? value.map(String) : labelsOf({ labelIds: String(value) });
        return ids.length === 0 ? "none" : ids.map((id) => labels.find((l) => l.id === id)?.name ?? id).join(", ");
      }
    }
    if (typeof value === "boolean") return value ? "yes" : "no";
    return typeof value === "object" ? prettyJSON(value) : String(value);
  };
}

function Payload({ draft }: { draft: Draft }) {
  const text = useFieldText();
  const changes = draft.kind === "issue_update" && draft.issueId !== null;
  const issue = useRead<Issue>(changes ? wsPath(`/issues/${draft.issueId}`) : null);
  if (draft.kind === "comment") return <Markdown text={String(draft.payload.body ?? "")} />;
  const fields = Object.keys(draft.payload).filter((field) => field !== "description");
  const now = issue.data as unknown as Record<string, unknown> | undefined;
  const description = draft.payload.description;
  return (
    <>
      <dl class="facts">
        {fields.map((field) => (
          <div key={field} class="fact">
            <dt>{fieldTitle[field] ?? field}</dt>
            <dd>
              {now && field in now && (
                <>
                  <del>{text(field, now[field])}</del>{" "}
                </>
              )}
              <ins>{text(field, draft.payload[field])}</ins>
            </dd>
          </div>
        ))}
      </dl>
      {typeof description === "string" && description !== "" && (
        <>
          <h3>{changes ? "New description" : "Description"}</h3>
          <Markdown text={description} />
          {changes && now?.description ? (
            <details>
              <summary>Description now</summary>
              <Markdown text={String(now.description)} />
            </details>
          ) : null}
        </>
      )}
    </>
  );
}

export function InboxDraft({ draft, onDecided }: { draft: Draft; onDecided(): void }) {
  const name = useNames();
  const rights = useRights();
  const [note, setNote] = useDraft(`note:${draft.id}`);
  const [choice, setChoice] = useState<"publish" | "discard" | null>(null);
  const act = useAct();

  const decide = async (how: "publish" | "discard") => {
    setChoice(how);
    const body = note.trim() === "" ? {} : { note: note.trim() };
    const done = await act.run({ id: draft.id, how, body }, (key) => api.send("POST", wsPath(`/drafts/${draft.id}/${how}`), body, { key }));
    if (!done) return;
    setNote("");
    toast(how === "publish" ? "The draft is published." : "The draft is discarded.", { kind: "success" });
    onDecided();
  };
  // A decision is final, so a key alone does not make it.
  const ask = async (how: "publish" | "discard") => {
    const yes = await confirm(how === "publish" ? { title: "Publish the draft?", action: "Publish" } : { title: "Discard the draft?", action: "Discard" });
    if (yes) await decide(how);
  };
  useKeys("Draft", {
    p: rights.decide ? { help: "Publish the draft", run: () => void ask("publish") } : undefined,
    d: rights.decide ? { help: "Discard the draft", run: () => void ask("discard") } : undefined,
  });

  // Somebody else may have decided in the meantime: then the draft leaves the inbox.
  const decided = act.error?.status === 409 && typeof act.error.details?.status === "string" ? act.error.details : null;
  return (
    <Section title={draftKind[draft.kind]}>
      <p class="badges">
        <Badge kind="accent">To decide</Badge>
        <span>
          {name(draft.createdById)} proposed this <Time at={draft.createdAt} />
        </span>
        {draft.issueId && (
          <span>
            for <IssueLink id={draft.issueId} />
          </span>
        )}
        {draft.sessionId && <A href={pagePath(`sessions/${draft.sessionId}`)}>Open session</A>}
      </p>
      <div class="proposal">
        <Payload draft={draft} />
      </div>
      {decided ? (
        <div class="notice" role="alert">
          <p>
            {name(decided.reviewedById)} has {decided.status} the draft <Time at={decided.reviewedAt} />. Your decision was not taken, and your note is kept here.
          </p>
          <Button onClick={onDecided}>Show the next one</Button>
        </div>
      ) : (
        <FailureNote error={act.error} fields={["note"]} />
      )}
      {rights.decide ? (
        <div class="form">
          <Field label="Note" hint="The agent and other readers of the draft see it." error={faultOf(act.error, "note")}>
            <TextArea value={note} onInput={setNote} rows={2} maxLength={32768} />
          </Field>
          <div class="row">
            <Button kind="primary" icon="check" busy={act.busy && choice === "publish"} disabled={act.busy || decided !== null} onClick={() => void decide("publish")}>
              Publish
            </Button>
            <Button icon="close" busy={act.busy && choice === "discard"} disabled={act.busy || decided !== null} onClick={() => void decide("discard")}>
              Discard
            </Button>
          </div>
        </div>
      ) : (
        <p class="muted">Only callers with the permission to write issues can decide.</p>
      )}
    </Section>
  );
}
