// The graph around an issue: its blockers on the left, the issues it blocks on the right.

import { useMemo } from "preact/hooks";
import { navigate } from "../../router";
import type { GraphEdge, IssueGraph } from "../../types";
import { statusNames } from "../../ui/marks";
import { pagePath } from "../../workspace";
import { layOut, nodeHeight, nodeWidth, type Placed } from "./graph_layout";

const edgeWords: Record<string, string> = { blocks: "blocks", duplicates: "duplicate of", discovered_from: "discovered from", relates: "relates to" };

function cut(text: string, most: number): string {
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

/** A curve from the right side of one issue to the left side of the other, or along their sides. */
function pathOf(from: Placed, to: Placed): string {
  const y1 = from.y + nodeHeight / 2;
  const y2 = to.y + nodeHeight / 2;
  if (to.x > from.x) {
    const x1 = from.x + nodeWidth;
    const bend = (to.x - x1) / 2;
    return `M${x1} ${y1} C${x1 + bend} ${y1} ${to.x - bend} ${y2} ${to.x} ${y2}`;
  }
  const x1 = from.x + nodeWidth;
  const x2 = to.x + nodeWidth;
  return `M${x1} ${y1} C${x1 + 36} ${y1} ${x2 + 36} ${y2} ${x2} ${y2}`;
}

export function Graph({ graph, center }: { graph: IssueGraph; center: string }) {
  const layout = useMemo(() => layOut(graph, center), [graph, center]);
  const kinds = [...new Set(layout.edges.map((edge) => edge.type))];
  return (
    <figure class="graph">
      <div class="graph-box" tabIndex={0} role="group" aria-label={`Graph of ${graph.nodes.length} issues`}>
        <svg width={layout.width + 40} height={layout.height + 4} viewBox={`-2 -2 ${layout.width + 40} ${layout.height + 4}`}>
          <defs>
            <marker id="graph-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
              <path d="M0 0 8 4 0 8z" class="graph-arrow" />
            </marker>
          </defs>
          {layout.edges.map((edge: GraphEdge) => (
            <path
              key={edge.fromId + edge.type + edge.toId}
              class={`graph-edge graph-${edge.type}`}
              d={pathOf(layout.placed.get(edge.fromId)!, layout.placed.get(edge.toId)!)}
              marker-end={edge.type === "relates" ? undefined : "url(#graph-arrow)"}
            >
              <title>{edgeWords[edge.type] ?? edge.type}</title>
            </path>
          ))}
          {[...layout.placed.values()].map(({ node, x, y }) => {
            const href = pagePath("issues/" + (node.identifier ?? node.id));
            return (
              <a
                key={node.id}
                href={href}
                aria-current={node.id === center ? "true" : undefined}
                onClick={(event) => {
                  if (event.metaKey || event.ctrlKey || event.button !== 0) return;
                  event.preventDefault();
                  navigate(href);
                }}
              >
                <g transform={`translate(${x} ${y})`}>
                  <rect class={`graph-node${node.id === center ? " graph-center" : ""}`} width={nodeWidth} height={nodeHeight} rx="6" />
                  <circle class={`graph-status status-${node.status}`} cx="14" cy="17" r="4.5" />
                  <text class="graph-name" x="26" y="21">
                    {node.identifier} · {node.ready ? "Ready" : statusNames[node.status]}
                  </text>{" "}
                  <text class="graph-title" x="12" y="39">
                    {cut(node.title, 27)}
                  </text>
                </g>
              </a>
            );
          })}
        </svg>
      </div>
      <figcaption class="muted">
        {kinds.map((kind) => (
          <span key={kind} class="graph-key">
            <svg width="24" height="8" aria-hidden="true">
              <path class={`graph-edge graph-${kind}`} d="M0 4h24" />
            </svg>
            {edgeWords[kind] ?? kind}
          </span>
        ))}
        {graph.truncated && <span>There are more than 500 issues; the farther ones are left out.</span>}
      </figcaption>
    </figure>
  );
}
