// Webhook subscriptions: the URLs that events are delivered to.

import { useState } from "preact/hooks";
import { api, usePages } from "../../api";
import { wsPath } from "../../workspace";
import type { Webhook, WebhookWithSecret } from "../../types_admin";
import { Badge, Button, type Column, confirm, Empty, Menu, Page, Time, toast, toastFailure } from "../../ui";
import { PagedTable } from "../paged_table";
import { useRights } from "../rights";
import { SecretDialog } from "../secret_dialog";
import { askAndSend } from "./acts";
import { AdminsOnly } from "./admins_only";
import { Deliveries } from "./webhook_deliveries";
import { WebhookDialog } from "./webhook_form";

const disabledTitle: Record<string, string> = {
  gone: "The receiver answered 410.",
  failing: "Every delivery of five days failed.",
  backlog: "A million deliveries were waiting.",
};

function Webhooks() {
  const webhooks = usePages<Webhook>(wsPath("/webhook-subscriptions"), "subscriptions", { limit: 100 });
  const [editing, setEditing] = useState<Webhook | null | undefined>(undefined);
  const [shown, setShown] = useState<Webhook | null>(null);
  const [secret, setSecret] = useState<WebhookWithSecret | null>(null);
  const path = (webhook: Webhook) => wsPath(`/webhook-subscriptions/${webhook.id}`);

  const setActive = async (webhook: Webhook, isActive: boolean) => {
    try {
      await api.send("PATCH", path(webhook), { isActive });
      toast(isActive ? "Deliveries begin again." : "Deliveries are stopped.", { kind: "success" });
      webhooks.reload();
    } catch (error) {
      toastFailure(error, () => void setActive(webhook, isActive));
    }
  };
  const test = async (webhook: Webhook) => {
    try {
      await api.send("POST", `${path(webhook)}/test`);
      setShown(webhook);
    } catch (error) {
      toastFailure(error, () => void test(webhook));
    }
  };
  const rotate = async (webhook: Webhook) => {
    const yes = await confirm({
      title: "Replace the secret?",
      text: "For 24 hours the old and the new secret both sign. Give the new one to your receiver within that time.",
      action: "Replace secret",
    });
    if (!yes) return;
    try {
      setSecret((await api.send<WebhookWithSecret>("POST", `${path(webhook)}/rotate-secret`, {})).data);
    } catch (error) {
      toastFailure(error, () => void rotate(webhook));
    }
  };
  const remove = async (webhook: Webhook) => {
    const done = await askAndSend(
      { title: "Delete the subscription?", text: `${webhook.url} gets no more events. Deliveries that are pending are dropped.`, action: "Delete subscription", danger: true },
      "DELETE",
      path(webhook),
      "The subscription is deleted.",
    );
    if (done) webhooks.reload();
  };

  const columns: Column<Webhook>[] = [
    {
      key: "url",
      title: "URL",
      render: (w) => (
        <div class="why">
          <span class="break">{w.url}</span>
          {w.description && <span class="muted">{w.description}</span>}
        </div>
      ),
    },
    {
      key: "events",
      title: "Events",
      wide: true,
      render: (w) => (
        <span class="badges">
          {w.events.slice(0, 4).map((type) => (
            <code key={type}>{type}</code>
          ))}
          {w.events.length > 4 && <span class="muted">{`and ${w.events.length - 4} more`}</span>}
        </span>
      ),
    },
    {
      key: "active",
      title: "State",
      render: (w) => (w.isActive ? <Badge kind="success">Active</Badge> : <Badge kind="warning" title={w.disabledReason ? disabledTitle[w.disabledReason] : undefined}>{w.disabledReason ? `Stopped: ${w.disabledReason}` : "Stopped"}</Badge>),
    },
    { key: "since", title: "Since", wide: true, render: (w) => <Time at={w.createdAt} /> },
    {
      key: "acts",
      title: "",
      align: "end",
      render: (w) => (
        <span class="row row-end">
          <Button small onClick={() => setShown(w)}>
            Deliveries
          </Button>
          <Menu
            label={`More acts for ${w.url}`}
            items={[
              { label: "Send a test event", icon: "play", onSelect: () => void test(w) },
              { label: "Change", icon: "edit", onSelect: () => setEditing(w) },
              { label: w.isActive ? "Stop deliveries" : "Start deliveries", icon: w.isActive ? "pause" : "play", onSelect: () => void setActive(w, !w.isActive) },
              { label: "Replace the secret", icon: "key", onSelect: () => void rotate(w) },
              { label: "Delete", icon: "trash", danger: true, onSelect: () => void remove(w) },
            ]}
          />
        </span>
      ),
    },
  ];
  return (
    <Page
      title="Webhooks"
      subtitle="Each event is delivered at least once, signed, to the URLs that are subscribed to its type."
      actions={
        <Button kind="primary" icon="plus" onClick={() => setEditing(null)}>
          Subscribe a URL
        </Button>
      }
    >
      <PagedTable label="Webhook subscriptions" pages={webhooks} columns={columns} rowKey={(w) => w.id} empty={<Empty title="No URL is subscribed." icon="out" />} />
      {editing !== undefined && (
        <WebhookDialog
          webhook={editing}
          onClose={() => setEditing(undefined)}
          onSaved={() => {
            setEditing(undefined);
            webhooks.reload();
          }}
          onMade={(webhook) => {
            setEditing(undefined);
            setSecret(webhook);
            webhooks.reload();
          }}
        />
      )}
      {shown && <Deliveries webhook={shown} onClose={() => setShown(null)} />}
      {secret && <SecretDialog title="Secret of the subscription" secrets={[{ label: "Secret", value: secret.secret }]} onClose={() => setSecret(null)} />}
    </Page>
  );
}

export default function WebhooksPage() {
  return useRights().admin ? <Webhooks /> : <AdminsOnly title="Webhooks" />;
}
