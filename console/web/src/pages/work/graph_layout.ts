// Where the issues of a graph stand: a column for each step of blocking, from left to right.

import type { GraphEdge, GraphNode, Issue, IssueGraph, Relation } from "../../types";

export const nodeWidth = 200;
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

const firstForm: Partial<Record<Relation["type"], GraphEdge["type"]>> = { blocked_by: "blocks", duplicated_by: "duplicates", led_to: "discovered_from" };

/** The graph of the API follows blocking alone. This adds the issue's other relations. */
export function withRelations(graph: IssueGraph, issue: Issue, relations: Relation[]): IssueGraph {
  const nodes = [...graph.nodes];
  const edges = [...graph.edges];
  const known = new Set(nodes.map((node) => node.id));
  for (const relation of relations) {
    if (known.has(relation.issueId)) continue;
    known.add(relation.issueId);
    nodes.push({ id: relation.issueId, identifier: relation.identifier, title: relation.title, status: relation.status, assigneeId: null, ready: false });
    const first = firstForm[relation.type];
    edges.push(first ? { fromId: relation.issueId, toId: issue.id, type: first } : { fromId: issue.id, toId: relation.issueId, type: relation.type });
  }
  return { nodes, edges, truncated: graph.truncated };
}

/** The longest way of blocks edges that leads to each issue. There are no rings among them. */
function columnsOf(graph: IssueGraph, center: string): Map<string, number> {
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
  // Issues outside of these chains stand beside the graph's own issue.
  const chained = new Set(blocks.flatMap((edge) => [edge.fromId, edge.toId]));
  const aside = (columns.get(center) ?? 0) + (chained.has(center) ? 0 : 1);
  for (const node of graph.nodes) if (node.id !== center && !chained.has(node.id)) columns.set(node.id, aside);
  return columns;
}

export function layOut(graph: IssueGraph, center: string): Layout {
  const columns = columnsOf(graph, center);
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
