// The comments on an issue, oldest first, with answers under them.

import { useState } from "preact/hooks";
import { api, usePages } from "../../api";
import { useDraft } from "../../drafts";
import { useEvents } from "../../live";
import { useSession } from "../../session";
import type { Comment } from "../../types";
import { Button } from "../../ui/button";
import { confirm } from "../../ui/dialog";
import { Field, TextArea } from "../../ui/field";
import { Markdown } from "../../ui/markdown";
import { Avatar } from "../../ui/marks";
import { Menu } from "../../ui/menu";
import { ErrorPanel, Spinner } from "../../ui/states";
import { Time } from "../../ui/time";
import { toastFailure } from "../../ui/toast";
import { useNames, wsPath } from "../../workspace";
import { useAct } from "../act";

/** A comment with the answers to it; answers to answers stand in the same list. */
interface Thread {
  comment: Comment;
  replies: Comment[];
}

function threadsOf(newestFirst: Comment[]): Thread[] {
  const all = [...newestFirst].reverse();
  const byId = new Map(all.map((c) => [c.id, c]));
  const root = (c: Comment): Comment => {
    let at = c;
    for (let depth = 0; at.parentId && byId.has(at.parentId) && depth < 100; depth++) at = byId.get(at.parentId)!;
    return at;
  };
  const threads = new Map<string, Thread>();
  for (const comment of all) {
    const first = root(comment);
    if (first === comment) threads.set(comment.id, { comment, replies: [] });
    else threads.get(first.id)?.replies.push(comment);
  }
  return [...threads.values()];
}

export function IssueComments({ issueId, closed }: { issueId: string; closed: boolean }) {
  const list = usePages<Comment>(wsPath(`/issues/${issueId}/comments`), "comments", { limit: 50 });
  const [answering, setAnswering] = useState<string | null>(null);
  const add = (comment: Comment) => {
    if (!list.items.some((c) => c.id === comment.id)) list.set([comment, ...list.items]);
  };
  const replace = (comment: Comment) => list.set(list.items.map((c) => (c.id === comment.id ? comment : c)));
  const remove = (id: string) => list.set(list.items.filter((c) => c.id !== id).map((c) => (c.parentId === id ? { ...c, parentId: null } : c)));
  useEvents(["comment.*"], (event) => {
    const comment = event.data as Comment | null;
    if (comment?.issueId !== issueId) return;
    if (event.type === "comment.created") add(comment);
    else if (event.type === "comment.updated") replace(comment);
    else remove(comment.id);
  });
  const threads = threadsOf(list.items);
  return (
    <div class="comments">
      {list.error && <ErrorPanel error={list.error} retry={list.reload} />}
      {list.loading && list.items.length === 0 && <Spinner />}
      {list.more && (
        <Button small onClick={list.loadMore} busy={list.loading}>
          Show earlier comments
        </Button>
      )}
      <ol class="comment-list" aria-label="Comments">
        {threads.map(({ comment, replies }) => (
          <li key={comment.id} class="thread">
            <OneComment comment={comment} onChanged={replace} onDeleted={remove} onReply={() => setAnswering(comment.id)} closed={closed} />
            {replies.length > 0 && (
              <ol class="replies" aria-label="Answers">
                {replies.map((reply) => (
                  <li key={reply.id}>
                    <OneComment comment={reply} onChanged={replace} onDeleted={remove} onReply={() => setAnswering(comment.id)} closed={closed} />
                  </li>
                ))}
              </ol>
            )}
            {answering === comment.id && (
              <div class="replies">
                <Compose issueId={issueId} parentId={comment.id} label="Answer" onSent={add} onClose={() => setAnswering(null)} />
              </div>
            )}
          </li>
        ))}
      </ol>
      {closed ? (
        <p class="muted">An archived issue takes no comments.</p>
      ) : (
        <div id="new-comment">
          <Compose issueId={issueId} parentId={null} label="Comment" onSent={add} />
        </div>
      )}
    </div>
  );
}

interface OneCommentProps {
  comment: Comment;
  closed: boolean;
  onChanged(comment: Comment): void;
  onDeleted(id: string): void;
  onReply(): void;
}

function OneComment({ comment, closed, onChanged, onDeleted, onReply }: OneCommentProps) {
  const session = useSession();
  const names = useNames();
  const [editing, setEditing] = useState(false);
  const name = comment.authorType === "system" ? "The service" : names(comment.authorId);
  const mine = session?.actorId === comment.authorId || session?.kind === "root" || session?.role === "owner" || session?.role === "admin";
  const remove = async () => {
    if (!(await confirm({ title: "Delete this comment?", text: "It can't be brought back. Answers to it stay.", action: "Delete", danger: true }))) return;
    try {
      await api.send("DELETE", wsPath("/comments/" + comment.id));
      onDeleted(comment.id);
    } catch (error) {
      toastFailure(error);
    }
  };
  return (
    <article class="comment" aria-label={`Comment of ${name}`}>
      <header class="comment-head">
        <Avatar id={comment.authorId} name={name} agent={comment.authorType === "agent"} size={24} />
        <strong>{name}</strong>
        <span class="muted grow">
          <Time at={comment.createdAt} />
          {comment.updatedAt !== comment.createdAt && ", edited"}
        </span>
        {!closed && (
          <Button kind="quiet" small onClick={onReply}>
            Answer
          </Button>
        )}
        {mine && !closed && (
          <Menu
            label="Change this comment"
            items={[
              { label: "Edit", icon: "edit", onSelect: () => setEditing(true) },
              { label: "Delete", icon: "trash", danger: true, onSelect: () => void remove() },
            ]}
          />
        )}
      </header>
      {editing ? (
        <EditComment
          comment={comment}
          onDone={(changed) => {
            setEditing(false);
            if (changed) onChanged(changed);
          }}
        />
      ) : (
        <Markdown text={comment.body} />
      )}
    </article>
  );
}

function EditComment({ comment, onDone }: { comment: Comment; onDone(changed: Comment | null): void }) {
  const [text, setText, clear] = useDraft("comment.edit." + comment.id, comment.body);
  const act = useAct();
  const save = () =>
    void act.run(text, async (key) => {
      const { data } = await api.send<Comment>("PATCH", wsPath("/comments/" + comment.id), { body: text }, { key });
      clear();
      onDone(data);
    });
  return (
    <div class="stack">
      <Field label="Comment" hidden>
        <TextArea value={text} onInput={setText} rows={4} maxLength={65536} onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && save()} />
      </Field>
      {act.error && <ErrorPanel error={act.error} retry={save} />}
      <div class="row">
        <Button kind="primary" small busy={act.busy} disabled={text.trim() === ""} onClick={save}>
          Save
        </Button>
        <Button
          small
          onClick={() => {
            clear();
            onDone(null);
          }}
        >
          Cancel
        </Button>
      </div>
    </div>
  );
}

interface ComposeProps {
  issueId: string;
  parentId: string | null;
  label: string;
  onSent(comment: Comment): void;
  onClose?(): void;
}

function Compose({ issueId, parentId, label, onSent, onClose }: ComposeProps) {
  const [text, setText, clear] = useDraft(`comment.${issueId}.${parentId ?? "new"}`);
  const act = useAct();
  const send = () => {
    if (text.trim() === "") return;
    void act.run({ text, parentId }, async (key) => {
      const { data } = await api.send<Comment>("POST", wsPath(`/issues/${issueId}/comments`), { body: text, ...(parentId ? { parentId } : {}) }, { key });
      clear();
      onSent(data);
      onClose?.();
    });
  };
  return (
    <div class="compose">
      <Field label={label} hidden hint="Markdown. Ctrl Enter sends.">
        <TextArea
          value={text}
          onInput={setText}
          rows={parentId ? 2 : 3}
          maxLength={65536}
          placeholder={parentId ? "Write an answer" : "Write a comment"}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              send();
            }
          }}
        />
      </Field>
      {act.error && <ErrorPanel error={act.error} retry={send} />}
      <div class="row">
        <Button kind="primary" small busy={act.busy} disabled={text.trim() === ""} onClick={send}>
          {label}
        </Button>
        {onClose && (
          <Button small onClick={onClose}>
            Cancel
          </Button>
        )}
      </div>
    </div>
  );
}
