// The title and description of an issue, shown and edited.

import { useEffect, useRef, useState } from "preact/hooks";
import { asFailure, type Failure } from "../../api";
import { hasDraft, readDraft, useDraft, writeDraft } from "../../drafts";
import type { Issue } from "../../types";
import { Button } from "../../ui/button";
import { Field, TextArea, TextInput } from "../../ui/field";
import { Markdown } from "../../ui/markdown";
import { ErrorPanel } from "../../ui/states";
import { Tabs } from "../../ui/tabs";
import { changeIssue, type IssuePatch, type Versioned } from "./issue_change";

interface IssueTextProps {
  issue: Issue;
  etag: string | null;
  editing: boolean;
  onEdit(): void;
  onDone(changed: Versioned | null): void;
}

export function IssueText({ issue, etag, editing, onEdit, onDone }: IssueTextProps) {
  // A text that was not sent, as before a reload, is shown again.
  const unsent = hasDraft(`issue.${issue.id}.title`) || hasDraft(`issue.${issue.id}.description`);
  useEffect(() => {
    if (unsent && !editing) onEdit();
  }, []);
  if (editing) return <Editor issue={issue} etag={etag} onDone={onDone} />;
  return issue.description ? (
    <Markdown text={issue.description} />
  ) : (
    <p>
      <Button kind="quiet" small icon="edit" onClick={onEdit}>
        Add a description
      </Button>
    </p>
  );
}

/** The version that an unsent text began with, or the present one. */
function baseOf(issue: Issue, etag: string | null): Versioned {
  const kept = readDraft(`issue.${issue.id}.base`);
  if (kept === null) return { issue, etag };
  try {
    const { title, description, etag: tag } = JSON.parse(kept) as { title: string; description: string | null; etag: string | null };
    return { issue: { ...issue, title, description }, etag: tag };
  } catch {
    return { issue, etag };
  }
}

function Editor({ issue, etag, onDone }: { issue: Issue; etag: string | null; onDone(changed: Versioned | null): void }) {
  // The version that the edit began with: the text is compared with it, not with a newer one.
  const base = useRef(baseOf(issue, etag));
  const [title, setTitle, clearTitle] = useDraft(`issue.${issue.id}.title`, base.current.issue.title);
  const [description, setDescription, clearDescription] = useDraft(`issue.${issue.id}.description`, base.current.issue.description ?? "");
  const [tab, setTab] = useState("write");
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const others = issue.title !== base.current.issue.title || issue.description !== base.current.issue.description;

  const clear = () => {
    clearTitle();
    clearDescription();
    writeDraft(`issue.${issue.id}.base`, null);
  };
  const edit = (set: (text: string) => void) => (text: string) => {
    const { title: seen, description: words } = base.current.issue;
    writeDraft(`issue.${issue.id}.base`, JSON.stringify({ title: seen, description: words, etag: base.current.etag }));
    set(text);
  };
  const save = async () => {
    const { issue: seen, etag: tag } = base.current;
    const patch: IssuePatch = {};
    if (title.trim() !== seen.title) patch.title = title.trim();
    if (description !== (seen.description ?? "")) patch.description = description === "" ? null : description;
    if (Object.keys(patch).length === 0) {
      clear();
      onDone(null);
      return;
    }
    setBusy(true);
    setFailure(null);
    try {
      const changed = await changeIssue(seen, patch, tag);
      setBusy(false);
      if (!changed) return; // The person decides later; the text stays here.
      clear();
      onDone(changed);
    } catch (error) {
      setFailure(asFailure(error));
      setBusy(false);
    }
  };

  return (
    <form
      class="issue-editor"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          void save();
        }
      }}
    >
      {others && (
        <p class="note" role="status">
          Somebody changed the text meanwhile. Saving compares both, and you choose.
        </p>
      )}
      <Field label="Title">
        <TextInput value={title} onInput={edit(setTitle)} maxLength={1000} required autocomplete="off" />
      </Field>
      <Tabs
        label="Description"
        tabs={[
          { key: "write", title: "Write" },
          { key: "preview", title: "Preview" },
        ]}
        active={tab}
        onChange={setTab}
      >
        {tab === "write" ? (
          <Field label="Description" hidden hint="Markdown. Ctrl Enter saves.">
            <AutoFocusArea value={description} onInput={edit(setDescription)} />
          </Field>
        ) : description.trim() ? (
          <Markdown text={description} />
        ) : (
          <p class="muted">Nothing to show.</p>
        )}
      </Tabs>
      {failure && <ErrorPanel error={failure} retry={() => void save()} />}
      <div class="row">
        <Button kind="primary" type="submit" busy={busy} disabled={title.trim() === ""}>
          Save
        </Button>
        <Button
          onClick={() => {
            clear();
            onDone(null);
          }}
        >
          Cancel
        </Button>
      </div>
    </form>
  );
}

function AutoFocusArea({ value, onInput }: { value: string; onInput(text: string): void }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.querySelector("textarea")?.focus(), []);
  return (
    <div ref={box}>
      <TextArea rows={Math.min(24, Math.max(8, value.split("\n").length + 2))} value={value} onInput={onInput} maxLength={262144} />
    </div>
  );
}
