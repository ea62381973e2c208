// Numbers and repositories that workspaces claim: the operator confirms them.

import { useState } from "preact/hooks";
import { usePages } from "../../api";
import type { InboundRoute } from "../../types_admin";
import { Button, type Column, Empty, Section, Tabs, Time } from "../../ui";
import { PagedTable } from "../paged_table";
import { askAndSend } from "../workspace/acts";

export function Claims() {
  const [status, setStatus] = useState<string>("pending");
  const routes = usePages<InboundRoute>("/inbound-routes", "routes", { status });
  const path = (r: InboundRoute) => `/workspaces/${r.organizationId}/inbound-routes/${r.kind}/${encodeURIComponent(r.key)}`;
  const confirmRoute = async (r: InboundRoute) => {
    const done = await askAndSend(
      { title: `Give ${r.key} to the workspace?`, text: "Its calls come to this workspace from then on, and to no other.", action: "Confirm" },
      "PUT",
      path(r),
      "The claim is confirmed.",
    );
    if (done) routes.reload();
  };
  const remove = async (r: InboundRoute) => {
    const done = await askAndSend({ title: `Remove the claim of ${r.key}?`, text: "The workspace can claim it again.", action: "Remove", danger: true }, "DELETE", path(r), "The claim is removed.");
    if (done) routes.reload();
  };
  const columns: Column<InboundRoute>[] = [
    { key: "key", title: "Number or repository", render: (r) => <code>{r.key}</code> },
    { key: "workspace", title: "Workspace", render: (r) => <code class="break">{r.organizationId}</code> },
    { key: "since", title: "Claimed", wide: true, render: (r) => <Time at={r.createdAt} /> },
    {
      key: "acts",
      title: "",
      align: "end",
      render: (r) => (
        <span class="row row-end">
          {r.status === "pending" && (
            <Button small onClick={() => void confirmRoute(r)}>
              Confirm
            </Button>
          )}
          <Button small kind="quiet" aria-label={`Remove the claim of ${r.key}`} onClick={() => void remove(r)}>
            Remove
          </Button>
        </span>
      ),
    },
  ];
  return (
    <Section title="Claimed numbers and repositories">
      <Tabs
        label="Claims by state"
        active={status}
        onChange={setStatus}
        tabs={[
          { key: "pending", title: "To confirm" },
          { key: "active", title: "Active" },
        ]}
      >
        <PagedTable label="Claims" pages={routes} columns={columns} rowKey={(r) => `${r.organizationId} ${r.kind} ${r.key}`} empty={<Empty title="There are none." />} />
      </Tabs>
    </Section>
  );
}
