// The workspaces by load, with their limits.

import { useState } from "preact/hooks";
import { api, usePages } from "../../api";
import { A } from "../../router";
import type { LimitName, LimitsAndUsage, ReadOnlyMode, Topology, WorkspaceRecord } from "../../types_admin";
import { type Column, Empty, ErrorPanel, Field, Menu, Section, Select, toast, toastFailure } from "../../ui";
import { formatBytes, formatCount } from "../agents/session_text";
import { PagedTable } from "../paged_table";
import { LimitsDialog } from "./limits_dialog";
import { endReadOnly, ReadOnlyDialog } from "./read_only";
import { type TenantLoad, useTenantLoads } from "./tenant_loads";

type Order = "load" | "bytes" | "issues" | "sessions" | "name";

const orders: { value: Order; label: string }[] = [
  { value: "load", label: "Growth" },
  { value: "bytes", label: "Bytes" },
  { value: "issues", label: "Issues" },
  { value: "sessions", label: "Sessions" },
  { value: "name", label: "Name" },
];

function weightOf(load: TenantLoad | undefined, order: Order): number {
  if (!load) return -1;
  if (order === "load") return load.bytesPerSecond ?? 0;
  return order === "name" ? 0 : load.limits.used[order];
}

function Used({ load, name }: { load: TenantLoad | undefined; name: keyof LimitsAndUsage["used"] }) {
  if (!load) return <span class="muted">…</span>;
  const format = name === "bytes" ? formatBytes : formatCount;
  const limit = load.limits.limits[name as LimitName];
  return (
    <span>
      {format(load.limits.used[name])}
      {limit !== null && <span class="muted">{` of ${format(limit)}`}</span>}
    </span>
  );
}

export function Tenants({ topology }: { topology: Topology }) {
  const workspaces = usePages<WorkspaceRecord>("/workspaces", "workspaces", { limit: 50 });
  const { loads, error, reload } = useTenantLoads(workspaces.items);
  const [order, setOrder] = useState<Order>("load");
  const [limits, setLimits] = useState<WorkspaceRecord | null>(null);
  const [freezing, setFreezing] = useState<WorkspaceRecord | null>(null);

  const sorted = [...workspaces.items].sort(
    (a, b) => weightOf(loads.get(b.id), order) - weightOf(loads.get(a.id), order) || a.name.localeCompare(b.name),
  );
  const leaderOf = (id: string) => {
    const shard = loads.get(id)?.shard;
    return shard === undefined ? undefined : topology.shards.find((s) => s.id === shard)?.leader;
  };
  const modePath = (w: WorkspaceRecord) => `/cluster/workspaces/${w.id}/read-only`;
  const switchMode = async (w: WorkspaceRecord) => {
    try {
      const { readOnly } = await api.get<ReadOnlyMode>(modePath(w));
      if (!readOnly) setFreezing(w);
      else await endReadOnly(modePath(w));
    } catch (thrown) {
      toastFailure(thrown, () => void switchMode(w));
    }
  };
  const showMode = async (w: WorkspaceRecord) => {
    try {
      const { readOnly } = await api.get<ReadOnlyMode>(modePath(w));
      toast(readOnly ? `${w.name} is read-only: ${readOnly.reason}` : `${w.name} takes changes.`);
    } catch (thrown) {
      toastFailure(thrown);
    }
  };

  const columns: Column<WorkspaceRecord>[] = [
    { key: "name", title: "Workspace", render: (w) => <A href={`/console/${w.slug}/issues`}>{w.name}</A> },
    { key: "owner", title: "Served by", wide: true, render: (w) => leaderOf(w.id) ?? "" },
    { key: "shard", title: "Shard", align: "end", wide: true, render: (w) => loads.get(w.id)?.shard ?? "" },
    {
      key: "growth",
      title: "Growth a second",
      align: "end",
      render: (w) => {
        const rate = loads.get(w.id)?.bytesPerSecond;
        return rate === null || rate === undefined ? <span class="muted">…</span> : formatBytes(Math.round(rate));
      },
    },
    { key: "bytes", title: "Bytes", align: "end", render: (w) => <Used load={loads.get(w.id)} name="bytes" /> },
    { key: "issues", title: "Issues", align: "end", render: (w) => <Used load={loads.get(w.id)} name="issues" /> },
    { key: "sessions", title: "Sessions", align: "end", wide: true, render: (w) => <Used load={loads.get(w.id)} name="sessions" /> },
    { key: "tokens", title: "Tokens", align: "end", wide: true, render: (w) => <Used load={loads.get(w.id)} name="tokens" /> },
    {
      key: "acts",
      title: "",
      align: "end",
      render: (w) => (
        <Menu
          label={`Acts for ${w.name}`}
          items={[
            { label: "Set limits", icon: "edit", disabled: !loads.has(w.id), onSelect: () => setLimits(w) },
            { label: "Show the read-only mode", onSelect: () => void showMode(w) },
            { label: "Begin or end read-only", icon: "pause", onSelect: () => void switchMode(w) },
          ]}
        />
      ),
    },
  ];
  const shown = limits ? loads.get(limits.id) : undefined;
  return (
    <Section title="Tenants">
      <div class="filters">
        <Field label="Order by">
          <Select value={order} onChange={(value) => setOrder(value as Order)} options={orders} />
        </Field>
      </div>
      {workspaces.more && <p class="muted">The order is that of the workspaces shown. Show more of them to compare all.</p>}
      {error && <ErrorPanel error={error} />}
      <PagedTable label="Tenants" pages={{ ...workspaces, items: sorted }} columns={columns} rowKey={(w) => w.id} empty={<Empty title="There are no workspaces yet." />} />
      {limits && shown && (
        <LimitsDialog
          workspace={limits}
          now={shown.limits}
          onClose={() => setLimits(null)}
          onDone={() => {
            reload(limits.id);
            setLimits(null);
          }}
        />
      )}
      {freezing && <ReadOnlyDialog what={freezing.name} path={modePath(freezing)} onClose={() => setFreezing(null)} onDone={() => setFreezing(null)} />}
    </Section>
  );
}
