// A dialog with a form that sends one act. A refusal keeps the dialog open with all that was typed.

import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { Button, Dialog } from "../ui";
import type { Act } from "./act";
import { FailureNote } from "./failure_note";

interface FormDialogProps {
  title: string;
  /** The word on the button that sends the form. */
  action: string;
  act: Act;
  /** The fields that show their own faults. */
  fields: string[];
  onSubmit(): void;
  onClose(): void;
  danger?: boolean;
  /** Keeps the form from being sent, as while a field is empty. */
  incomplete?: boolean;
  wide?: boolean;
  children: ComponentChildren;
}

export function FormDialog({ title, action, act, fields, onSubmit, onClose, danger, incomplete, wide, children }: FormDialogProps) {
  const form = useId();
  return (
    <Dialog
      title={title}
      onClose={onClose}
      wide={wide}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form={form} kind={danger ? "danger" : "primary"} busy={act.busy} disabled={incomplete}>
            {action}
          </Button>
        </>
      }
    >
      <form
        id={form}
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (!incomplete) onSubmit();
        }}
      >
        {children}
        <FailureNote error={act.error} fields={fields} />
      </form>
    </Dialog>
  );
}
