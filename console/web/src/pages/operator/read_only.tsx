// The read-only mode, of the service or of one workspace.

import { useState } from "preact/hooks";
import { api } from "../../api";
import { Field, TextInput, toast, toastFailure } from "../../ui";
import { faultOf, useAct } from "../act";
import { FormDialog } from "../form_dialog";

interface ReadOnlyDialogProps {
  /** Such as "the service". */
  what: string;
  path: string;
  onDone(): void;
  onClose(): void;
}

export function ReadOnlyDialog({ what, path, onDone, onClose }: ReadOnlyDialogProps) {
  const [reason, setReason] = useState("");
  const act = useAct();
  const submit = async () => {
    const done = await act.run({ path, reason }, (key) => api.send("PUT", path, { reason: reason.trim() }, { key }));
    if (!done) return;
    toast(`The read-only mode of ${what} has begun.`, { kind: "success" });
    onDone();
  };
  return (
    <FormDialog title={`Make ${what} read-only`} action="Make read-only" danger act={act} fields={["reason"]} incomplete={reason.trim() === ""} onSubmit={() => void submit()} onClose={onClose}>
      <p>Every change is refused with the reason, until the mode ends. Reads are answered. Timers, leases and deliveries wait.</p>
      <Field label="Reason" error={faultOf(act.error, "reason")}>
        <TextInput value={reason} onInput={setReason} maxLength={500} data-autofocus />
      </Field>
    </FormDialog>
  );
}

/** Ends a read-only mode, and reports whether it is over. */
export async function endReadOnly(path: string): Promise<boolean> {
  try {
    await api.send("DELETE", path);
    toast("Changes are taken again.", { kind: "success" });
    return true;
  } catch (error) {
    toastFailure(error);
    return false;
  }
}
