// The comparison of one look at the cluster with the next: rates of the shards, fail-overs, and
// changes of the states of nodes. The API shows the present only, so the page compares.

import type { NodeState, Topology } from "../../types_admin";

/** The number of points of a chart. */
export const maxSamples = 120;

/** The number of changes that the page keeps. */
export const maxChanges = 100;

export interface ShardChange {
  kind: "shard";
  at: number;
  shard: number;
  from: string;
  to: string;
  term: number;
}

export interface NodeChange {
  kind: "node";
  at: number;
  node: string;
  from: NodeState | "absent";
  to: NodeState | "absent";
}

export type ClusterChange = ShardChange | NodeChange;

export interface ClusterHistory {
  topology: Topology;
  /** The time of the topology, in milliseconds. */
  at: number;
  /**
   * The newest known term and leader of each shard, and its last leader that had a name. The next
   * look may be one of another node that is behind.
   */
  leaders: Map<number, { leader: string; term: number; last: string }>;
  /** Entries applied in a second, by the id of the shard. */
  rates: Map<number, number>;
  /** Entries applied in a second by all shards, the oldest first. */
  samples: { at: number; rate: number; lag: number }[];
  /** The newest first. */
  changes: ClusterChange[];
}

export function beginHistory(topology: Topology, at: number): ClusterHistory {
  const leaders = new Map(topology.shards.map((s) => [s.id, { leader: s.leader, term: s.term, last: s.leader }]));
  return { topology, at, leaders, rates: new Map(), samples: [], changes: [] };
}

/** Returns the changes since the last look, and updates the leaders that are known. */
function changesBetween(was: Topology, is: Topology, leaders: ClusterHistory["leaders"], at: number): ClusterChange[] {
  const changes: ClusterChange[] = [];
  for (const { id, leader, term } of is.shards) {
    const before = leaders.get(id);
    if (before && (term < before.term || (term === before.term && leader === before.leader))) continue;
    if (before) changes.push({ kind: "shard", at, shard: id, from: before.last, to: leader, term });
    leaders.set(id, { leader, term, last: leader || (before?.last ?? "") });
  }
  const nodes = new Map(was.nodes.map((n) => [n.name, n.state]));
  for (const node of is.nodes) {
    const before = nodes.get(node.name) ?? "absent";
    if (before !== node.state) changes.push({ kind: "node", at, node: node.name, from: before, to: node.state });
    nodes.delete(node.name);
  }
  for (const [node, state] of nodes) changes.push({ kind: "node", at, node, from: state, to: "absent" });
  return changes;
}

/** Adds a look to the history. A look of another cluster, or one from before, begins anew. */
export function addToHistory(history: ClusterHistory, topology: Topology, at: number): ClusterHistory {
  const seconds = (at - history.at) / 1000;
  if (topology.clusterId !== history.topology.clusterId || seconds <= 0) return beginHistory(topology, at);
  const before = new Map(history.topology.shards.map((s) => [s.id, s.applied]));
  const rates = new Map<number, number>();
  let total = 0;
  let lag = 0;
  for (const shard of topology.shards) {
    // A node that has less of a shard's log than the one asked before shows a lower number.
    const rate = Math.max(0, shard.applied - (before.get(shard.id) ?? shard.applied)) / seconds;
    rates.set(shard.id, rate);
    total += rate;
    lag = Math.max(lag, shard.lag);
  }
  const samples = [...history.samples, { at, rate: total, lag }].slice(-maxSamples);
  const leaders = new Map(history.leaders);
  const changes = [...changesBetween(history.topology, topology, leaders, at), ...history.changes].slice(0, maxChanges);
  return { topology, at, leaders, rates, samples, changes };
}
