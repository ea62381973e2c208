// Dialogs over the page. The browser's own dialog element keeps the focus inside, gives
// it back at the end, and closes on Escape.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { makeStore, useStore } from "../store";
import { Button, IconButton } from "./button";

interface DialogProps {
  title: string;
  onClose(): void;
  children: ComponentChildren;
  /** Buttons at the lower end. */
  footer?: ComponentChildren;
  wide?: boolean;
  /** A dialog that must be answered has no close button, and Escape does nothing. */
  required?: boolean;
}

export function Dialog({ title, onClose, children, footer, wide, required }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const name = useId();
  useEffect(() => {
    const dialog = element.current!;
    const before = document.activeElement;
    if (!dialog.open) dialog.showModal();
    const wanted = dialog.querySelector<HTMLElement>("[data-autofocus]");
    wanted?.focus();
    return () => {
      dialog.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={wide ? "dialog dialog-wide" : "dialog"}
      aria-labelledby={name}
      onCancel={(event) => {
        event.preventDefault();
        if (!required) onClose();
      }}
      onKeyDown={(event) => {
        // Keys of the page below mean nothing here.
        event.stopPropagation();
        if (event.key === "Escape" && required) event.preventDefault();
      }}
    >
      <div class="dialog-head">
        <h2 id={name}>{title}</h2>
        {!required && <IconButton label="Close" icon="close" onClick={onClose} />}
      </div>
      <div class="dialog-body">{children}</div>
      {footer && <div class="dialog-foot">{footer}</div>}
    </dialog>
  );
}

export interface Question {
  title: string;
  text?: ComponentChildren;
  /** The word on the button that does it. */
  action: string;
  danger?: boolean;
  /** A text that has to be typed before, such as a workspace's slug. */
  type?: string;
}

const asked = makeStore<{ question: Question; answer: (yes: boolean) => void } | null>(null);

/** Asks whether to do something: if (await confirm({...})) ... */
export function confirm(question: Question): Promise<boolean> {
  asked.get()?.answer(false);
  return new Promise((resolve) => {
    asked.set({
      question,
      answer: (yes) => {
        asked.set(null);
        resolve(yes);
      },
    });
  });
}

function Asked({ question, answer }: { question: Question; answer: (yes: boolean) => void }) {
  const [typed, setTyped] = useState("");
  return (
    <Dialog
      title={question.title}
      onClose={() => answer(false)}
      footer={
        <>
          <Button onClick={() => answer(false)}>Cancel</Button>
          <Button kind={question.danger ? "danger" : "primary"} data-autofocus={!question.type} disabled={question.type !== undefined && typed !== question.type} onClick={() => answer(true)}>
            {question.action}
          </Button>
        </>
      }
    >
      {question.text && <p>{question.text}</p>}
      {question.type !== undefined && (
        <label class="field">
          <span class="field-label">Type “{question.type}” to go on</span>
          <input class="input" data-autofocus value={typed} onInput={(e) => setTyped(e.currentTarget.value)} autocomplete="off" />
        </label>
      )}
    </Dialog>
  );
}

/** Shows the question of confirm. The application has one. */
export function ConfirmHost() {
  const now = useStore(asked);
  return now ? <Asked key={now.question.title} {...now} /> : null;
}
