// Secrets that the service shows once: tokens, and what webhooks and calls are signed with.

import { useState } from "preact/hooks";
import { Button, Dialog, toast } from "../ui";

export interface ShownSecret {
  label: string;
  value: string;
}

async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied.");
  } catch {
    toast("The browser does not let the page copy. Select the text and copy it yourself.", { kind: "error" });
  }
}

/** A value that can be copied. */
export function CopyField({ label, value }: ShownSecret) {
  return (
    <div class="field">
      <span class="field-label">{label}</span>
      <div class="row">
        <input class="input mono grow" readOnly value={value} aria-label={label} onFocus={(e) => e.currentTarget.select()} />
        <Button icon="copy" onClick={() => void copy(value)} aria-label={`Copy ${label}`}>
          Copy
        </Button>
      </div>
    </div>
  );
}

interface SecretDialogProps {
  title: string;
  secrets: ShownSecret[];
  onClose(): void;
}

export function SecretDialog({ title, secrets, onClose }: SecretDialogProps) {
  const [stored, setStored] = useState(false);
  return (
    <Dialog
      title={title}
      onClose={onClose}
      required
      footer={
        <Button kind="primary" disabled={!stored} onClick={onClose}>
          Done
        </Button>
      }
    >
      <p>The secret is shown this once. Store it where the program that needs it can read it.</p>
      {secrets.map((secret) => (
        <CopyField key={secret.label} {...secret} />
      ))}
      <label class="checkbox">
        <input type="checkbox" checked={stored} onChange={(e) => setStored(e.currentTarget.checked)} /> I have stored it.
      </label>
    </Dialog>
  );
}
