// Where the issues of a graph stand: a column for each step of blocking, from left to right.

import type { GraphEdge, GraphNode, IssueGraph } from "../../types";

export const nodeWidth = 184;
export const nodeHeight = 48;
const gapX = 56;
const gapY = 16;

export interface Placed {
  node: GraphNode;
  x: number;
  y: number;
}

export interface Layout {
  placed: Map<string, Placed>;
  edges: GraphEdge[];
  width: number;
  height: number;
}

/** The longest way of blocks edges that leads to each issue. There are no rings among them. */
function columnsOf(graph: IssueGraph): Map<string, number> {
  const blocks = graph.edges.filter((edge) => edge.type === "blocks");
  const before = new Map<string, string[]>();
  for (const edge of blocks) before.set(edge.toId, [...(before.get(edge.toId) ?? []), edge.fromId]);
  const columns = new Map<string, number>();
  const visit = (id: string, depth: number): number => {
    const known = columns.get(id);
    if (known !== undefined) return known;
    if (depth > graph.nodes.length) return 0;
    const column = Math.max(-1, ...(before.get(id) ?? []).map((from) => visit(from, depth + 1))) + 1;
    columns.set(id, column);
    return column;
  };
  for (const node of graph.nodes) visit(node.id, 0);
  return columns;
}

export function layOut(graph: IssueGraph): Layout {
  const columns = columnsOf(graph);
  const byColumn: GraphNode[][] = [];
  for (const node of graph.nodes) (byColumn[columns.get(node.id) ?? 0] ??= []).push(node);
  const placed = new Map<string, Placed>();
  let most = 0;
  byColumn.forEach((nodes, column) => {
    // An issue stands near those before it, so that fewer lines cross.
    const want = (node: GraphNode) => {
      const from = graph.edges.filter((e) => e.toId === node.id && placed.has(e.fromId)).map((e) => placed.get(e.fromId)!.y);
      return from.length > 0 ? from.reduce((a, b) => a + b, 0) / from.length : Number.MAX_SAFE_INTEGER;
    };
    const sorted = nodes.map((node) => ({ node, at: want(node) })).sort((a, b) => a.at - b.at || (a.node.id < b.node.id ? -1 : 1));
    sorted.forEach(({ node }, row) => placed.set(node.id, { node, x: column * (nodeWidth + gapX), y: row * (nodeHeight + gapY) }));
    most = Math.max(most, nodes.length);
  });
  return {
    placed,
    edges: graph.edges.filter((edge) => placed.has(edge.fromId) && placed.has(edge.toId)),
    width: byColumn.length * (nodeWidth + gapX) - gapX,
    height: most * (nodeHeight + gapY) - gapY,
  };
}
