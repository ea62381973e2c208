// The deliveries of a webhook subscription, and another try of one.

import { useState } from "preact/hooks";
import { api, usePages } from "../../api";
import { wsPath } from "../../workspace";
import type { Webhook, WebhookDelivery } from "../../types_admin";
import { Badge, type BadgeKind, Button, type Column, Dialog, Empty, Tabs, Time, toast, toastFailure } from "../../ui";
import { PagedTable } from "../paged_table";
import { useEvery } from "../refresh";

const kinds: Record<WebhookDelivery["status"], BadgeKind> = { pending: "info", succeeded: "success", failed: "danger" };

const tabs = [
  { key: "", title: "All" },
  { key: "pending", title: "Pending" },
  { key: "failed", title: "Failed" },
  { key: "succeeded", title: "Succeeded" },
];

/** No event tells of deliveries, so the list is read again by the clock. */
const readEvery = 5000;

export function Deliveries({ webhook, onClose }: { webhook: Webhook; onClose(): void }) {
  const [status, setStatus] = useState("");
  const path = wsPath(`/webhook-subscriptions/${webhook.id}/deliveries`);
  const deliveries = usePages<WebhookDelivery>(path, "deliveries", { status });
  useEvery(deliveries.reload, readEvery);

  const redeliver = async (delivery: WebhookDelivery) => {
    try {
      const { data } = await api.send<WebhookDelivery>("POST", `${path}/${delivery.id}/redeliver`);
      deliveries.set(deliveries.items.map((d) => (d.id === data.id ? data : d)));
      toast("Another try is on its way.", { kind: "success" });
    } catch (error) {
      toastFailure(error, () => void redeliver(delivery));
    }
  };
  const columns: Column<WebhookDelivery>[] = [
    { key: "status", title: "Status", render: (d) => <Badge kind={kinds[d.status]}>{d.status}</Badge> },
    { key: "event", title: "Event", render: (d) => <code>{d.eventType}</code> },
    { key: "sequence", title: "Number", align: "end", wide: true, render: (d) => d.eventSequence ?? "" },
    { key: "answer", title: "Answer", render: (d) => (d.lastError ? <span title={d.lastError}>{d.lastStatusCode ?? d.lastError}</span> : (d.lastStatusCode ?? "")) },
    { key: "tries", title: "Tries", align: "end", render: (d) => d.attempts },
    { key: "last", title: "Last try", wide: true, render: (d) => (d.lastAttemptAt ? <Time at={d.lastAttemptAt} /> : "") },
    { key: "next", title: "Next try", wide: true, render: (d) => (d.nextAttemptAt ? <Time at={d.nextAttemptAt} /> : "") },
    {
      key: "acts",
      title: "",
      align: "end",
      render: (d) => (
        <Button small onClick={() => void redeliver(d)}>
          Try again
        </Button>
      ),
    },
  ];
  return (
    <Dialog title={`Deliveries to ${webhook.url}`} wide onClose={onClose} footer={<Button onClick={onClose}>Close</Button>}>
      <Tabs label="Deliveries by status" tabs={tabs} active={status} onChange={setStatus}>
        <PagedTable label="Deliveries" pages={deliveries} columns={columns} rowKey={(d) => d.id} empty={<Empty title="There are none." />} />
      </Tabs>
    </Dialog>
  );
}
