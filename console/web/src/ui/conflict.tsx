// The view of a conflict: somebody else changed the same field meanwhile. It shows both
// values and lets the person choose. Nothing typed is lost.

import { makeStore, useStore } from "../store";
import { Button } from "./button";
import { Dialog } from "./dialog";

export interface Conflict {
  /** The name of the changed object, such as "ACME-12". */
  title: string;
  fields: { name: string; theirs: string; yours: string }[];
}

export type Choice = "theirs" | "yours" | "later";

const open = makeStore<{ conflict: Conflict; answer: (choice: Choice) => void } | null>(null);

/** Shows a conflict and waits for the choice. "later" changes nothing and keeps the typed text. */
export function askConflict(conflict: Conflict): Promise<Choice> {
  open.get()?.answer("later");
  return new Promise((resolve) => {
    open.set({
      conflict,
      answer: (choice) => {
        open.set(null);
        resolve(choice);
      },
    });
  });
}

export function ConflictHost() {
  const now = useStore(open);
  if (!now) return null;
  const { conflict, answer } = now;
  return (
    <Dialog
      title={`${conflict.title} has changed meanwhile`}
      wide
      onClose={() => answer("later")}
      footer={
        <>
          <Button onClick={() => answer("later")}>Decide later</Button>
          <Button onClick={() => answer("theirs")}>Keep theirs</Button>
          <Button kind="primary" data-autofocus onClick={() => answer("yours")}>
            Save yours
          </Button>
        </>
      }
    >
      <p>Somebody else changed the same fields. Compare both, then choose.</p>
      {conflict.fields.map((field) => (
        <section key={field.name} aria-label={field.name}>
          <h3>{field.name}</h3>
          <div class="conflict">
            <div class="conflict-side">
              <h4>Theirs, as it is now</h4>
              <pre tabIndex={0}>{field.theirs}</pre>
            </div>
            <div class="conflict-side">
              <h4>Yours</h4>
              <pre tabIndex={0}>{field.yours}</pre>
            </div>
          </div>
        </section>
      ))}
    </Dialog>
  );
}
