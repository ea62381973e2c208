// The fields of an issue, beside its text.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useRead } from "../../api";
import { A } from "../../router";
import type { Issue } from "../../types";
import { labelsOf, resolutions } from "../../types";
import { Combobox } from "../../ui/combobox";
import { Field, Select, TextInput } from "../../ui/field";
import { Badge, StatusIcon } from "../../ui/marks";
import { Time } from "../../ui/time";
import { pagePath, wsPath } from "../../workspace";
import { ExternalLink } from "../external_link";
import { resolutionNames } from "./field_text";
import type { IssuePatch } from "./issue_change";
import { IssuePick } from "./issue_pick";
import { AssigneePick, CyclePick, LabelsPick, PriorityPick, ProjectPick, StatusPick, TeamPick } from "./pickers";
import { snoozeUntil } from "./snooze";

interface SideProps {
  issue: Issue;
  change(patch: IssuePatch): void;
  disabled: boolean;
}

export function IssueSide({ issue, change, disabled }: SideProps) {
  const closed = issue.status === "done" || issue.status === "canceled";
  const row = (label: string, control: ComponentChildren) => (
    <div class="side-row">
      <dt>{label}</dt>
      <dd>{control}</dd>
    </div>
  );
  const pick = "pick side-pick";
  return (
    <aside class="issue-side" aria-label="Fields">
      <dl>
        {row("Status", <StatusPick value={issue.status} onChange={(status) => change({ status })} class={pick} disabled={disabled} />)}
        {closed &&
          row(
            "Resolution",
            <Combobox
              label="Resolution"
              options={resolutions.map((r) => ({ value: r, label: resolutionNames[r]! }))}
              none="None"
              value={issue.resolution}
              onChange={(resolution) => change({ resolution })}
              class={pick}
              disabled={disabled}
            />,
          )}
        {row("Priority", <PriorityPick value={issue.priority} onChange={(priority) => change({ priority })} class={pick} disabled={disabled} />)}
        {row("Assignee", <AssigneePick value={issue.assigneeId} onChange={(assigneeId) => change({ assigneeId })} class={pick} disabled={disabled} />)}
        {row("Labels", <LabelsEdit issue={issue} change={change} disabled={disabled} />)}
        {row("Project", <ProjectPick value={issue.projectId} onChange={(projectId) => change({ projectId })} class={pick} disabled={disabled} />)}
        {row("Cycle", <CyclePick value={issue.cycleId} onChange={(cycleId) => change({ cycleId })} class={pick} disabled={disabled} />)}
        {row("Team", <TeamPick value={issue.teamId} onChange={(teamId) => teamId && teamId !== issue.teamId && change({ teamId })} class={pick} disabled={disabled} />)}
        {row("Estimate", <Estimate issue={issue} change={change} disabled={disabled} />)}
        {row("Parent", <Parent issue={issue} change={change} disabled={disabled} />)}
        {row("Snoozed", <Snooze issue={issue} change={change} disabled={disabled} />)}
      </dl>
      <details class="side-more">
        <summary>Code and references</summary>
        <Text label="Repository" hint="owner/name" field="repo" issue={issue} change={change} disabled={disabled} />
        <BranchText issue={issue} change={change} disabled={disabled} />
        <Text label="Pull request" hint="The address" field="prUrl" issue={issue} change={change} disabled={disabled} />
        <Text label="External reference" field="externalRef" issue={issue} change={change} disabled={disabled} />
      </details>
      {issue.prUrl && (
        <p class="side-pr">
          <ExternalLink href={issue.prUrl}>Pull request</ExternalLink> {issue.prState && <Badge kind={issue.prState === "merged" ? "accent" : "neutral"}>{issue.prState}</Badge>}{" "}
          {issue.prCheckState && <Badge kind={issue.prCheckState === "success" ? "success" : "warning"}>checks: {issue.prCheckState}</Badge>}
        </p>
      )}
    </aside>
  );
}

/** Labels are collected while the list is open, and sent once. */
function LabelsEdit({ issue, change, disabled }: SideProps) {
  const [ids, setIds] = useState(labelsOf(issue));
  useEffect(() => setIds(labelsOf(issue)), [issue.labelIds]);
  useEffect(() => {
    if (ids.join("\n") === labelsOf(issue).join("\n")) return;
    const timer = setTimeout(() => change({ labelIds: ids }), 600);
    return () => clearTimeout(timer);
  }, [ids]);
  return <LabelsPick value={ids} onChange={setIds} class="pick side-pick" disabled={disabled} />;
}

function Estimate({ issue, change, disabled }: SideProps) {
  const [text, setText] = useState(issue.estimate === null ? "" : String(issue.estimate));
  useEffect(() => setText(issue.estimate === null ? "" : String(issue.estimate)), [issue.estimate]);
  const save = () => {
    const value = text.trim() === "" ? null : Number(text);
    if (value !== issue.estimate && (value === null || (Number.isSafeInteger(value) && value >= 0))) change({ estimate: value });
  };
  return (
    <input
      class="pick side-pick side-input"
      aria-label="Estimate"
      type="number"
      min={0}
      inputMode="numeric"
      placeholder="None"
      value={text}
      disabled={disabled}
      onInput={(event) => setText(event.currentTarget.value)}
      onBlur={save}
      onKeyDown={(event) => event.key === "Enter" && save()}
    />
  );
}

function Parent({ issue, change, disabled }: SideProps) {
  const parent = useRead<Issue>(issue.parentId ? wsPath("/issues/" + issue.parentId) : null);
  return (
    <>
      {parent.data && (
        <A href={pagePath("issues/" + (parent.data.identifier ?? parent.data.id))} class="side-parent">
          <StatusIcon status={parent.data.status} named /> <span class="clip">{parent.data.identifier} {parent.data.title}</span>
        </A>
      )}
      <IssuePick label="Parent" placeholder={issue.parentId ? "Change" : "None"} none={issue.parentId ? "No parent" : undefined} except={issue.id} onPick={(found) => change({ parentId: found?.id ?? null })} class="pick side-pick" disabled={disabled} />
    </>
  );
}

const snoozes: { label: string; value: string; days: number }[] = [
  { label: "Until tomorrow", value: "1", days: 1 },
  { label: "For three days", value: "3", days: 3 },
  { label: "For a week", value: "7", days: 7 },
  { label: "For four weeks", value: "28", days: 28 },
];

function Snooze({ issue, change, disabled }: SideProps) {
  const snoozed = issue.snoozedUntil !== null && Date.parse(issue.snoozedUntil) > Date.now();
  return (
    <>
      <Select
        class="side-select"
        aria-label="Snoozed"
        value=""
        disabled={disabled}
        onChange={(days) => {
          if (days === "0") change({ snoozedUntil: null });
          else if (days) change({ snoozedUntil: snoozeUntil(Number(days)) });
        }}
        options={[{ value: "", label: snoozed ? "Snoozed" : "No" }, ...(snoozed ? [{ value: "0", label: "Wake it now" }] : []), ...snoozes.map(({ label, value }) => ({ label, value }))]}
      />
      {snoozed && (
        <span class="muted">
          <Time at={issue.snoozedUntil} plain />
        </span>
      )}
    </>
  );
}

type TextFieldName = "repo" | "branch" | "prUrl" | "externalRef";

function Text({ label, hint, field, issue, change, disabled, suggestion }: SideProps & { label: string; hint?: string; field: TextFieldName; suggestion?: string }) {
  const [text, setText] = useState(issue[field] ?? "");
  useEffect(() => setText(issue[field] ?? ""), [issue[field]]);
  const save = () => {
    const value = text.trim() === "" ? null : text.trim();
    if (value !== issue[field]) change({ [field]: value });
  };
  return (
    <Field label={label} hint={hint}>
      <TextInput value={text} onInput={setText} onBlur={save} disabled={disabled} maxLength={field === "prUrl" ? 2048 : 255} placeholder={suggestion} onKeyDown={(event) => event.key === "Enter" && save()} />
    </Field>
  );
}

function BranchText(props: SideProps) {
  const suggested = useRead<{ branchName: string }>(wsPath(`/issues/${props.issue.id}/branch-name`));
  return <Text {...props} label="Branch" field="branch" suggestion={suggested.data?.branchName} hint={suggested.data ? `Suggested: ${suggested.data.branchName}` : undefined} />;
}
