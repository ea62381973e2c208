// The form of a webhook subscription, for a new one and for one that is there.

import { useState } from "preact/hooks";
import { api } from "../../api";
import { wsPath } from "../../workspace";
import type { Webhook, WebhookWithSecret } from "../../types_admin";
import { Combobox, Field, TextInput, toast } from "../../ui";
import { faultOf, useAct } from "../act";
import { FormDialog } from "../form_dialog";

/** The types of events, each family before its types. */
const eventTypes = [
  "*",
  "issue.*", "issue.created", "issue.updated", "issue.deleted", "issue.archived", "issue.blocked", "issue.ready",
  "comment.*", "comment.created", "comment.updated", "comment.deleted",
  "session.*", "session.created", "session.updated", "session.ended", "session.escalated", "session.dead_lettered",
  "draft.*", "draft.created", "draft.published", "draft.discarded",
  "relation.*", "relation.created", "relation.deleted",
  "ticket.*", "ticket.created", "ticket.updated", "ticket.message",
  "deal.*", "deal.created", "deal.updated", "deal.deleted",
  "hold.*", "hold.created", "hold.ended",
  "vcs.*", "vcs.event",
  "comms.*", "comms.event",
];

const options = eventTypes.map((type) => ({ value: type, label: type, hint: type === "*" ? "all events" : type.endsWith(".*") ? "the whole family" : undefined }));

interface WebhookDialogProps {
  webhook: Webhook | null;
  onMade(webhook: WebhookWithSecret): void;
  onSaved(): void;
  onClose(): void;
}

export function WebhookDialog({ webhook, onMade, onSaved, onClose }: WebhookDialogProps) {
  const [url, setURL] = useState(webhook?.url ?? "https://");
  const [description, setDescription] = useState(webhook?.description ?? "");
  const [events, setEvents] = useState<string[]>(webhook?.events ?? ["*"]);
  const act = useAct();
  const submit = async () => {
    const body = { url: url.trim(), description: description.trim() || null, events };
    let made: WebhookWithSecret | undefined;
    const done = await act.run(body, async (key) => {
      const path = webhook ? wsPath(`/webhook-subscriptions/${webhook.id}`) : wsPath("/webhook-subscriptions");
      made = (await api.send<WebhookWithSecret>(webhook ? "PATCH" : "POST", path, body, { key })).data;
    });
    if (!done || !made) return;
    if (webhook) {
      toast("The subscription is changed.", { kind: "success" });
      onSaved();
    } else {
      onMade(made);
    }
  };
  return (
    <FormDialog
      title={webhook ? "Change the subscription" : "Subscribe a URL"}
      action={webhook ? "Save" : "Subscribe"}
      act={act}
      fields={["url", "description", "events"]}
      incomplete={events.length === 0 || url.trim() === "" || url.trim() === "https://"}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <Field label="URL" hint="Deliveries are signed POST requests to it." error={faultOf(act.error, "url")}>
        <TextInput type="url" value={url} onInput={setURL} maxLength={2048} data-autofocus />
      </Field>
      <Field label="Events" error={faultOf(act.error, "events")}>
        <Combobox label="Events" multiple options={options} value={events} onChange={(chosen: string[]) => setEvents(chosen)} />
      </Field>
      <Field label="Description" error={faultOf(act.error, "description")}>
        <TextInput value={description} onInput={setDescription} maxLength={1000} />
      </Field>
    </FormDialog>
  );
}
