// The acts of a person on a session: reply, cancel, release, retry.

import { useRef, useState } from "preact/hooks";
import { api } from "../../api";
import { useDraft } from "../../drafts";
import { useKeys } from "../../keys";
import { wsPath } from "../../workspace";
import type { AgentSession, SessionAttempt } from "../../types_agents";
import { Button, Checkbox, Field, TextArea, TextInput, toast } from "../../ui";
import { faultOf, useAct } from "../act";
import { FailureNote } from "../failure_note";
import { FormDialog } from "../form_dialog";
import { useRights } from "../rights";
import { hasEnded } from "./session_text";

interface ReplyProps {
  sessionId: string;
  onSent(): void;
  /** Moves the focus into the box when the page opens. */
  autofocus?: boolean;
}

/** A box for the answer. The text stays until the service has taken it. */
export function ReplyBox({ sessionId, onSent, autofocus }: ReplyProps) {
  const [text, setText] = useDraft(`reply:${sessionId}`);
  const act = useAct();
  const box = useRef<HTMLFormElement>(null);
  const message = text.trim();
  useKeys("Reply", { r: { help: "Reply to the session", run: () => box.current?.querySelector("textarea")?.focus() } });

  const send = async () => {
    if (message === "") return;
    const done = await act.run({ sessionId, message }, (key) => api.send("POST", wsPath(`/agent/sessions/${sessionId}/reply`), { message }, { key }));
    if (!done) return;
    setText("");
    toast("The reply is sent.", { kind: "success" });
    onSent();
  };

  return (
    <form
      ref={box}
      class="form reply"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <Field label="Reply" error={faultOf(act.error, "message")} hint="Ctrl+Enter sends it. The agent gets it with its next request.">
        <TextArea
          value={text}
          onInput={setText}
          rows={3}
          maxLength={32768}
          data-autofocus={autofocus}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              void send();
            }
          }}
        />
      </Field>
      <FailureNote error={act.error} fields={["message"]} />
      <div class="row">
        <Button type="submit" kind="primary" icon="comment" busy={act.busy} disabled={message === ""}>
          Send reply
        </Button>
      </div>
    </form>
  );
}

interface DialogProps {
  session: AgentSession;
  onDone(): void;
  onClose(): void;
}

export function CancelDialog({ session, onDone, onClose }: DialogProps) {
  const [reason, setReason] = useDraft(`cancel:${session.id}`);
  const act = useAct();
  const submit = async () => {
    const body = reason.trim() === "" ? {} : { reason: reason.trim() };
    const done = await act.run({ id: session.id, body }, (key) => api.send("POST", wsPath(`/agent/sessions/${session.id}/cancel`), body, { key }));
    if (!done) return;
    setReason("");
    toast("The session is canceled.", { kind: "success" });
    onDone();
  };
  return (
    <FormDialog title="Cancel the session" action="Cancel the session" danger act={act} fields={["reason"]} onSubmit={() => void submit()} onClose={onClose}>
      <p>Its agent learns of it with its next request and drops the work. A canceled session can be retried.</p>
      <Field label="Reason" hint="It is written into the session's log." error={faultOf(act.error, "reason")}>
        <TextArea value={reason} onInput={setReason} maxLength={4096} />
      </Field>
    </FormDialog>
  );
}

export function ReleaseDialog({ session, onDone, onClose }: DialogProps) {
  const [reason, setReason] = useDraft(`release:${session.id}`);
  const [minutes, setMinutes] = useState("");
  const [counts, setCounts] = useState(false);
  const act = useAct();
  const submit = async () => {
    const body: Record<string, unknown> = { reason: reason.trim(), countAttempt: counts };
    if (minutes.trim() !== "") body.retryAfterSeconds = Math.round(Number(minutes) * 60);
    const done = await act.run({ id: session.id, body }, (key) => api.send("POST", wsPath(`/agent/sessions/${session.id}/release`), body, { key }));
    if (!done) return;
    setReason("");
    toast("The session is back in the queue.", { kind: "success" });
    onDone();
  };
  const wrong = minutes.trim() !== "" && !(Number(minutes) >= 0);
  return (
    <FormDialog
      title="Release the session"
      action="Release"
      act={act}
      fields={["reason", "retryAfterSeconds"]}
      incomplete={reason.trim() === "" || wrong}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <p>The session goes back into the queue, and another agent process can claim it.</p>
      <Field label="Reason" error={faultOf(act.error, "reason")}>
        <TextArea value={reason} onInput={setReason} maxLength={4096} required />
      </Field>
      <Field label="Minutes until the next claim" hint="Empty for at once." error={wrong ? "Must be a number from 0 on." : faultOf(act.error, "retryAfterSeconds")}>
        <TextInput value={minutes} onInput={setMinutes} inputMode="decimal" />
      </Field>
      <Checkbox label="Count this as an attempt" checked={counts} onChange={setCounts} />
    </FormDialog>
  );
}

interface ButtonsProps {
  session: AgentSession;
  attempts: SessionAttempt[];
  callerId: string;
  onDone(): void;
}

/** The buttons for the acts that the session's status allows. */
export function SessionButtons({ session, attempts, callerId, onDone }: ButtonsProps) {
  const rights = useRights();
  const retry = useAct();
  const [asks, setAsks] = useState<"cancel" | "release" | null>(null);
  const ended = hasEnded(session.status);
  const last = attempts[attempts.length - 1];
  // Only the actor that claimed a session can give it back.
  const held = session.status === "running" && last !== undefined && last.end === null && last.claimerId === callerId;
  const canCancel = rights.sessions && !ended;
  useKeys("Session", { x: canCancel ? { help: "Cancel the session", run: () => setAsks("cancel") } : undefined });
  if (!rights.sessions) return null;

  const again = async () => {
    const done = await retry.run(session.id, (key) => api.send("POST", wsPath(`/agent/sessions/${session.id}/retry`), undefined, { key }));
    if (!done) return;
    toast("The session is back in the queue.", { kind: "success" });
    onDone();
  };
  const close = () => setAsks(null);
  const finish = () => {
    close();
    onDone();
  };
  return (
    <>
      {(session.status === "failed" || session.status === "canceled") && (
        <Button icon="refresh" kind="primary" busy={retry.busy} onClick={() => void again()}>
          Retry
        </Button>
      )}
      {held && (
        <Button icon="out" onClick={() => setAsks("release")}>
          Release
        </Button>
      )}
      {canCancel && (
        <Button icon="close" kind="danger" onClick={() => setAsks("cancel")}>
          Cancel session
        </Button>
      )}
      <FailureNote error={retry.error} />
      {asks === "cancel" && <CancelDialog session={session} onDone={finish} onClose={close} />}
      {asks === "release" && <ReleaseDialog session={session} onDone={finish} onClose={close} />}
    </>
  );
}
