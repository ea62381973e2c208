// Making an issue from anywhere, with the key "c". The typed text is kept until it is sent.

import { useEffect, useRef, useState } from "preact/hooks";
import { api, asFailure, newKey, type Failure } from "../../api";
import { useDraft } from "../../drafts";
import { A, navigate } from "../../router";
import { makeStore, useStore } from "../../store";
import type { CreatedIssue, PossibleDuplicate, Priority, Status, Template } from "../../types";
import { Button } from "../../ui/button";
import { Checkbox, Field, TextArea, TextInput } from "../../ui/field";
import { Dialog } from "../../ui/dialog";
import { StatusIcon } from "../../ui/marks";
import { ErrorPanel } from "../../ui/states";
import { toast } from "../../ui/toast";
import { Combobox } from "../../ui/combobox";
import { pagePath, useTeams, wsPath } from "../../workspace";
import { useDuplicates } from "./duplicates";
import { AssigneePick, CyclePick, LabelsPick, PriorityPick, ProjectPick, StatusPick, TeamPick } from "./pickers";

export interface NewIssue {
  teamId?: string;
  status?: Status;
  priority?: Priority;
  assigneeId?: string | null;
  projectId?: string | null;
  cycleId?: string | null;
  labelIds?: string[];
  parentId?: string;
  /** The parent's identifier, to be shown. */
  parentName?: string;
}

const opened = makeStore<NewIssue | null>(null);

/** Opens the dialog, with fields filled as the page suggests. */
export function openQuickCreate(first: NewIssue = {}): void {
  opened.set(first);
}

export function QuickCreate() {
  const first = useStore(opened);
  return first ? <CreateDialog first={first} /> : null;
}

function CreateDialog({ first }: { first: NewIssue }) {
  const [title, setTitle, clearTitle] = useDraft("create.title");
  const [description, setDescription, clearDescription] = useDraft("create.description");
  const [fields, setFields] = useState<NewIssue>(first);
  const [templateId, setTemplateId] = useState<string | null>(null);
  const [templates, setTemplates] = useState<Template[]>([]);
  const [more, setMore] = useState(false);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [refused, setRefused] = useState<PossibleDuplicate[] | null>(null);
  const key = useRef(newKey());
  const teams = useTeams();
  const team = fields.teamId ?? teams.find((t) => t.isDefault)?.id ?? teams[0]?.id;
  const similar = useDuplicates(title);
  const change = (patch: NewIssue) => setFields({ ...fields, ...patch });
  const close = () => opened.set(null);

  useEffect(() => {
    const control = new AbortController();
    api.get<{ templates: Template[] }>(wsPath("/templates"), { limit: 100 }, control.signal).then(
      (page) => setTemplates(page.templates),
      () => undefined, // Without templates an issue is made by hand.
    );
    return () => control.abort();
  }, []);

  const submit = async (anyway: boolean) => {
    if (title.trim() === "" || busy) return;
    setBusy(true);
    setFailure(null);
    const { parentName: _, ...rest } = fields;
    const body: Record<string, unknown> = { ...rest, title: title.trim() };
    if (description.trim() !== "") body.description = description;
    if (team && teams.length > 1) body.teamId = team;
    if (templateId) body.templateId = templateId;
    try {
      const path = wsPath("/issues") + (anyway ? "" : "?dedupe=block");
      const { data } = await api.send<CreatedIssue>("POST", path, body, { key: key.current + (anyway ? "-anyway" : "") });
      clearTitle();
      clearDescription();
      key.current = newKey();
      toast(`${data.identifier} created.`, { kind: "success", action: { label: "Open", run: () => navigate(pagePath("issues/" + data.identifier)) } });
      if (more) {
        setRefused(null);
        setBusy(false);
        document.querySelector<HTMLElement>("dialog [name=title]")?.focus();
      } else {
        close();
      }
    } catch (error) {
      const why = asFailure(error);
      setBusy(false);
      // Another body goes under another key.
      if (why.status === 422) key.current = newKey();
      if (why.status === 409 && Array.isArray(why.details?.possibleDuplicates)) setRefused(why.details.possibleDuplicates);
      else setFailure(why);
    }
  };

  const edit = (set: (text: string) => void) => (text: string) => {
    set(text);
    key.current = newKey();
    setRefused(null);
  };

  return (
    <Dialog
      title={fields.parentName ? `New issue under ${fields.parentName}` : "New issue"}
      wide
      onClose={close}
      footer={
        <>
          <div class="grow">
            <Checkbox label="Create another" checked={more} onChange={setMore} />
          </div>
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" busy={busy} disabled={title.trim() === ""} onClick={() => void submit(refused !== null)}>
            {refused ? "Create anyway" : "Create issue"}
          </Button>
        </>
      }
    >
      <form
        class="quick-create"
        onSubmit={(event) => {
          event.preventDefault();
          void submit(refused !== null);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) {
            event.preventDefault();
            void submit(refused !== null);
          }
        }}
      >
        <Field label="Title">
          <TextInput name="title" value={title} onInput={edit(setTitle)} maxLength={1000} required autocomplete="off" data-autofocus />
        </Field>
        <Field label="Description" hint="Markdown. It is kept here until the issue is created.">
          <TextArea name="description" rows={5} value={description} onInput={edit(setDescription)} maxLength={262144} />
        </Field>
        <div class="pick-row">
          {teams.length > 1 && team && <TeamPick value={team} onChange={(teamId) => change({ teamId })} class="pick pick-boxed" />}
          <StatusPick value={fields.status ?? "backlog"} onChange={(status) => change({ status })} class="pick pick-boxed" />
          <PriorityPick value={fields.priority ?? "medium"} onChange={(priority) => change({ priority })} class="pick pick-boxed" />
          <AssigneePick value={fields.assigneeId ?? null} onChange={(assigneeId) => change({ assigneeId })} class="pick pick-boxed" />
          <LabelsPick value={fields.labelIds ?? []} onChange={(labelIds) => change({ labelIds })} class="pick pick-boxed" />
          <ProjectPick value={fields.projectId ?? null} onChange={(projectId) => change({ projectId })} class="pick pick-boxed" />
          <CyclePick value={fields.cycleId ?? null} onChange={(cycleId) => change({ cycleId })} class="pick pick-boxed" />
          {templates.length > 0 && (
            <Combobox label="Template" options={templates.map((t) => ({ value: t.id, label: t.name }))} none="Team's template" value={templateId} onChange={setTemplateId} class="pick pick-boxed" />
          )}
        </div>
        {/* A form is submitted with Enter only if it has a submit button. */}
        <button type="submit" class="hidden" tabIndex={-1} aria-hidden="true" />
      </form>
      {refused ? (
        <Similar title="Issues with nearly the same title are open. Is it one of these?" issues={refused} onOpen={close} />
      ) : (
        similar.length > 0 && <Similar title="Similar open issues" issues={similar} onOpen={close} />
      )}
      {failure && <ErrorPanel error={failure} retry={() => void submit(refused !== null)} />}
    </Dialog>
  );
}

function Similar({ title, issues, onOpen }: { title: string; issues: { id: string; identifier: string | null; title: string; status: Status }[]; onOpen(): void }) {
  return (
    <section aria-label="Similar issues" aria-live="polite" class="similar">
      <h3>{title}</h3>
      <ul>
        {issues.map((issue) => (
          <li key={issue.id}>
            <A href={pagePath("issues/" + (issue.identifier ?? issue.id))} class="similar-row" onClick={onOpen}>
              <StatusIcon status={issue.status} named />
              <span class="identifier">{issue.identifier}</span>
              <span class="grow clip">{issue.title}</span>
            </A>
          </li>
        ))}
      </ul>
    </section>
  );
}
