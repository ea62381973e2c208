// The nodes of the cluster, and the acts that move work off them and back.

import { api } from "../../api";
import type { DrainStart, NodeState, NodeStatus } from "../../types_admin";
import { Badge, type BadgeKind, Button, type Column, confirm, Menu, Section, Table, toast, toastFailure } from "../../ui";

const stateKind: Record<NodeState, BadgeKind> = { alive: "success", suspect: "warning", dead: "danger", draining: "warning", left: "neutral" };

export function ClusterNodes({ nodes, onChanged }: { nodes: NodeStatus[]; onChanged(): void }) {
  const path = (node: NodeStatus) => `/cluster/nodes/${encodeURIComponent(node.name)}`;

  const drain = async (node: NodeStatus) => {
    const yes = await confirm({
      title: `Drain ${node.name}?`,
      text: "Its leaderships and replicas move to other nodes. It is remembered over restarts.",
      action: "Drain",
    });
    if (!yes) return;
    try {
      const { data } = await api.send<DrainStart>("POST", `${path(node)}/drain`);
      toast(data.moves === "replicas" ? "Its replicas and leaderships move away." : "Its leaderships move away. Too few nodes are left for its replicas.", { kind: "success" });
      onChanged();
    } catch (error) {
      toastFailure(error, () => void drain(node));
    }
  };
  const undrain = async (node: NodeStatus) => {
    try {
      await api.send("POST", `${path(node)}/undrain`);
      toast(`${node.name} takes work again.`, { kind: "success" });
      onChanged();
    } catch (error) {
      toastFailure(error, () => void undrain(node));
    }
  };
  const remove = async (node: NodeStatus) => {
    const yes = await confirm({
      title: `Remove ${node.name}?`,
      text: "The node leaves the cluster, and its replicas are made anew elsewhere. A machine comes back with an empty data directory and another name only.",
      action: "Remove node",
      danger: true,
      type: node.name,
    });
    if (!yes) return;
    try {
      await api.send("DELETE", path(node));
      toast(`${node.name} is removed.`, { kind: "success" });
      onChanged();
    } catch (error) {
      toastFailure(error, () => void remove(node));
    }
  };

  const columns: Column<NodeStatus>[] = [
    {
      key: "name",
      title: "Node",
      render: (n) => (
        <div class="why">
          <span>{n.name}</span>
          {n.note && <span class="muted">{n.note}</span>}
        </div>
      ),
    },
    { key: "state", title: "State", render: (n) => <Badge kind={stateKind[n.state]}>{n.state}</Badge> },
    { key: "leads", title: "Leads", align: "end", render: (n) => n.leads },
    { key: "replicas", title: "Replicas", align: "end", render: (n) => n.replicas },
    { key: "zone", title: "Zone", wide: true, render: (n) => n.zone },
    { key: "http", title: "Address", wide: true, render: (n) => <code>{n.http}</code> },
    { key: "version", title: "Version", wide: true, render: (n) => n.version },
    {
      key: "acts",
      title: "",
      align: "end",
      render: (n) => (
        <span class="row row-end">
          {n.state === "draining" || n.state === "left" ? (
            <Button small onClick={() => void undrain(n)}>
              Undrain
            </Button>
          ) : (
            <Button small onClick={() => void drain(n)}>
              Drain
            </Button>
          )}
          <Menu label={`More acts for ${n.name}`} items={[{ label: "Undrain", onSelect: () => void undrain(n) }, { label: "Remove from the cluster", icon: "trash", danger: true, onSelect: () => void remove(n) }]} />
        </span>
      ),
    },
  ];
  return (
    <Section title="Nodes">
      <Table label="Nodes" columns={columns} rows={nodes} rowKey={(n) => n.name} />
    </Section>
  );
}
