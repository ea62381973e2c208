// A map of the cluster: a row for each shard, a column for each node.

import type { ClusterHistory } from "./cluster_history";
import { formatCount } from "../agents/session_text";
import { Section } from "../../ui";

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

export function ClusterMap({ history }: { history: ClusterHistory }) {
  const { topology, rates } = history;
  const nodes = topology.nodes.map((node) => node.name).sort();
  const down = new Set(topology.nodes.filter((node) => node.state === "dead" || node.state === "left").map((node) => node.name));
  const markOf = (shard: (typeof topology.shards)[number], node: string): Mark => {
    if (shard.failed?.some((f) => f.node === node)) return "failed";
    if (shard.differing?.includes(node)) return "differing";
    if (shard.leader === node) return "leader";
    if (down.has(node) && (shard.voters.includes(node) || shard.nonVoters.includes(node))) return "down";
    if (shard.voters.includes(node)) return "voter";
    return shard.nonVoters.includes(node) ? "copying" : "none";
  };
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
      <div class="table-box" role="group" aria-label="Shards by node" tabIndex={0}>
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
            {topology.shards.map((shard) => (
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
                <td class="end">{formatCount(Math.round(rates.get(shard.id) ?? 0))}</td>
                <td class="end wide-only">{formatCount(shard.applied)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}
