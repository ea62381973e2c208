// A map of the cluster: a row for each shard, a column for each node. Of many shards it has those that lack
// something and the busiest, until the others are asked for.

import { useState } from "preact/hooks";
import type { ClusterHistory } from "./cluster_history";
import { formatCount, plural } from "../agents/session_text";
import { Button, Section } from "../../ui";

type Mark = "leader" | "voter" | "copying" | "down" | "failed" | "differing" | "none";

const markTitle: Record<Mark, string> = {
  leader: "leads",
  voter: "replica",
  copying: "is being copied",
  down: "node does not answer",
  failed: "failed",
  differing: "has other rows than the others",
  none: "none",
};

/** A short sign for each mark, so that no meaning is in colours alone. */
const markSign: Record<Mark, string> = { leader: "L", voter: "•", copying: "…", down: "×", failed: "!", differing: "≠", none: "" };

/** A lag of more entries than this is shown as one that grows. */
const highLag = 1000;

/** So many shards are all shown; of more, so many of those that lack something and of the busiest. */
const fewShards = 32;
const lackingShown = 20;
const busiestShown = 10;

type Shard = ClusterHistory["topology"]["shards"][number];

export function ClusterMap({ history }: { history: ClusterHistory }) {
  const { topology, rates } = history;
  const [all, setAll] = useState(false);
  const nodes = topology.nodes.map((node) => node.name).sort();
  const down = new Set(topology.nodes.filter((node) => node.state === "dead" || node.state === "left").map((node) => node.name));
  const markOf = (shard: Shard, node: string): Mark => {
    if (shard.failed?.some((f) => f.node === node)) return "failed";
    if (shard.differing?.includes(node)) return "differing";
    if (shard.leader === node) return "leader";
    if (down.has(node) && (shard.voters.includes(node) || shard.nonVoters.includes(node))) return "down";
    if (shard.voters.includes(node)) return "voter";
    return shard.nonVoters.includes(node) ? "copying" : "none";
  };
  const many = topology.shards.length > fewShards;
  const voters = Math.max(0, ...topology.shards.map((shard) => shard.voters.length));
  const lacks = (shard: Shard) =>
    shard.leader === "" || shard.voters.length < voters || shard.lag > highLag || nodes.some((node) => ["copying", "down", "failed", "differing"].includes(markOf(shard, node)));
  const rateOf = (shard: Shard) => rates.get(shard.id) ?? 0;
  const lacking = topology.shards.filter(lacks);
  const busiest = topology.shards.filter((shard) => rateOf(shard) > 0).sort((a, b) => rateOf(b) - rateOf(a)).slice(0, busiestShown);
  // All shards of a node lack a replica when it is down: those without a leader go first.
  const listed = [...lacking].sort((a, b) => Math.min(1, a.leader.length) - Math.min(1, b.leader.length)).slice(0, lackingShown);
  const shown = many && !all ? topology.shards.filter((shard) => listed.includes(shard) || busiest.includes(shard)) : topology.shards;
  return (
    <Section title="Shards">
      <p class="muted map-legend">
        {(["leader", "voter", "copying", "down", "failed", "differing"] as Mark[]).map((mark) => (
          <span key={mark} class="map-key">
            <span class={`map-mark map-${mark}`} aria-hidden="true">
              {markSign[mark]}
            </span>
            {markTitle[mark]}
          </span>
        ))}
      </p>
      {many && (
        <p class="map-summary">
          <span>
            {lacking.length > 0 ? `${formatCount(lacking.length)} of ${plural(topology.shards.length, "shard")} lack a leader, a replica or entries.` : `All ${plural(topology.shards.length, "shard")} have their leader and replicas.`}
            {!all && (lacking.length > lackingShown ? ` ${lackingShown} of them are shown, and the busiest.` : " Those that lack something are shown, and the busiest.")}
          </span>
          <Button small onClick={() => setAll(!all)} aria-expanded={all}>
            {all ? "Show fewer" : `Show all ${formatCount(topology.shards.length)}`}
          </Button>
        </p>
      )}
      <div class="table-box" role="group" aria-label="Shards by node" tabIndex={0} hidden={shown.length === 0}>
        <table class="table map">
          <thead>
            <tr>
              <th scope="col">Shard</th>
              {nodes.map((node) => (
                <th key={node} scope="col">
                  {node}
                </th>
              ))}
              <th scope="col" class="end">
                Term
              </th>
              <th scope="col" class="end">
                Lag
              </th>
              <th scope="col" class="end">
                Entries a second
              </th>
              <th scope="col" class="end wide-only">
                Applied
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((shard) => (
              <tr key={shard.id} class={shard.leader === "" ? "map-lost" : undefined}>
                <th scope="row">{shard.id === 0 ? "0, directory" : shard.id}</th>
                {nodes.map((node) => {
                  const mark = markOf(shard, node);
                  const failed = shard.failed?.find((f) => f.node === node);
                  const text = mark === "differing" && shard.leader === node ? `leads, and ${markTitle[mark]}` : markTitle[mark];
                  return (
                    <td key={node}>
                      {mark !== "none" && (
                        <span class={`map-mark map-${mark}`} title={failed ? `${node} failed: ${failed.reason}` : `${node} ${text}`}>
                          <span aria-hidden="true">{markSign[mark]}</span>
                          <span class="visually-hidden">{text}</span>
                        </span>
                      )}
                    </td>
                  );
                })}
                <td class="end">{shard.term}</td>
                <td class={shard.lag > highLag ? "end map-high" : "end"}>{formatCount(shard.lag)}</td>
                <td class="end">{formatCount(Math.round(rateOf(shard)))}</td>
                <td class="end wide-only">{formatCount(shard.applied)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}
