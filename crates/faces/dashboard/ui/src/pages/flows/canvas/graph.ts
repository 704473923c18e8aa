// Graphs as values: where nodes are drawn, what differs, and the changes that an editor makes.

import { portOf, portsOf, type FlowEdge, type FlowNode, type Graph, type NodeType } from "./kinds";

export interface Point {
  x: number;
  y: number;
}

const COLUMN = 264;
const ROW = 112;

/** Returns a value as text that does not depend on the order of members; `undefined` and missing members are the same. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.sort(([one], [other]) => (one < other ? -1 : 1)).map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join()}}`;
}

export function same(one: unknown, other: unknown): boolean {
  return one === other || canonical(one) === canonical(other);
}

/** Puts each node into the column after its furthest predecessor; edges that lead back are left out. */
export function layout(graph: Graph): Map<string, Point> {
  const ids = new Set(graph.nodes.map(({ id }) => id));
  const next = new Map<string, string[]>();
  for (const { from, to } of graph.edges) if (ids.has(from) && ids.has(to)) next.set(from, [...(next.get(from) ?? []), to]);
  for (const { id, type, config } of graph.nodes) {
    const target = type === "jump" ? config?.["node_id"] : undefined;
    if (typeof target === "string" && ids.has(target)) next.set(id, [target]);
  }
  const column = new Map<string, number>();
  const state = new Map<string, "open" | "done">();
  const order: string[] = [];
  const visit = (id: string) => {
    state.set(id, "open");
    const forward = (next.get(id) ?? []).filter((to) => state.get(to) !== "open");
    next.set(id, forward);
    for (const to of forward) if (!state.has(to)) visit(to);
    state.set(id, "done");
    order.unshift(id);
  };
  const starts = [...graph.nodes].sort((one, other) => Number(other.type === "trigger") - Number(one.type === "trigger"));
  for (const { id } of starts) if (!state.has(id)) visit(id);
  for (const id of order) {
    const at = column.get(id) ?? 0;
    column.set(id, at);
    for (const to of next.get(id) ?? []) column.set(to, Math.max(column.get(to) ?? 0, at + 1));
  }
  const columns: string[][] = [];
  for (const id of order) (columns[column.get(id) ?? 0] ??= []).push(id);
  const row = new Map<string, number>();
  for (const own of columns) {
    // A node stands at the height of the nodes that lead to it.
    const wish = (id: string) => {
      const before = [...next].filter(([, to]) => to.includes(id)).map(([from, to]) => (row.get(from) ?? 0) + to.indexOf(id) - (to.length - 1) / 2);
      return before.length ? before.reduce((sum, one) => sum + one, 0) / before.length : 0;
    };
    let free = -Infinity;
    for (const { id, at } of own.map((id) => ({ id, at: wish(id) })).sort((one, other) => one.at - other.at)) {
      free = Math.max(free + 1, at);
      row.set(id, free);
    }
  }
  return new Map(order.map((id) => [id, { x: (column.get(id) ?? 0) * COLUMN, y: Math.round((row.get(id) ?? 0) * ROW) }]));
}

/** Where the nodes are drawn: where somebody has put them, else in a layout. */
export function positions(graph: Graph): Map<string, Point> {
  if (graph.nodes.every((node) => node.position)) return new Map(graph.nodes.map((node) => [node.id, node.position as Point]));
  const computed = layout(graph);
  if (graph.nodes.every((node) => !node.position)) return computed;
  const placed = new Map(graph.nodes.filter((node) => node.position).map((node) => [node.id, node.position as Point]));
  for (const node of graph.nodes) if (!placed.has(node.id)) placed.set(node.id, freePlace([...placed.values()], computed.get(node.id) ?? { x: 0, y: 0 }));
  return placed;
}

/** Returns a place at or below a point where no node is. */
export function freePlace(taken: readonly Point[], wish: Point): Point {
  let place = wish;
  while (taken.some(({ x, y }) => Math.abs(x - place.x) < 240 && Math.abs(y - place.y) < 96)) place = { x: place.x, y: place.y + ROW };
  return place;
}

/** The order in which a reader meets the nodes. */
export function reading(graph: Graph): FlowNode[] {
  const at = layout(graph);
  const key = (node: FlowNode) => at.get(node.id) ?? { x: 0, y: 0 };
  return [...graph.nodes].sort((one, other) => key(one).x - key(other).x || key(one).y - key(other).y);
}

export interface Difference {
  added: FlowNode[];
  removed: FlowNode[];
  changed: FlowNode[];
  edges: number;
  hasVariables: boolean;
}

// What the service adds to a node that does not say it.
const DEFAULTS: Partial<Record<string, unknown>> = { on_error: "fail" };

function normal(node: FlowNode): Record<string, unknown> {
  const said = Object.entries(node).filter(([name, value]) => value !== null && value !== undefined && value !== false && DEFAULTS[name] !== value);
  return { ...Object.fromEntries(said), config: node.config ?? {} };
}

/** Whether two graphs are the same to the service, so that saving would change nothing. */
export function isEqual(one: Graph, other: Graph): boolean {
  const all = (graph: Graph) => [graph.nodes.map(normal), graph.edges.map(edgeKey), graph.variables.map(({ name, type, default: value }) => [name, type, value ?? null])];
  return one === other || same(all(one), all(other));
}

const content = (node: FlowNode): unknown => ({ ...normal(node), position: undefined });
const edgeKey = (edge: FlowEdge) => `${edge.from} ${portOf(edge)} ${edge.to}`;

/** What a graph has that an earlier one has not. Where nodes are drawn makes no difference. */
export function difference(before: Graph, after: Graph): Difference {
  const [old, now] = [new Map(before.nodes.map((node) => [node.id, node])), new Map(after.nodes.map((node) => [node.id, node]))];
  const [oldEdges, nowEdges] = [new Set(before.edges.map(edgeKey)), new Set(after.edges.map(edgeKey))];
  return {
    added: after.nodes.filter(({ id }) => !old.has(id)),
    removed: before.nodes.filter(({ id }) => !now.has(id)),
    changed: after.nodes.filter((node) => old.has(node.id) && !same(content(old.get(node.id) as FlowNode), content(node))),
    edges: [...nowEdges].filter((edge) => !oldEdges.has(edge)).length + [...oldEdges].filter((edge) => !nowEdges.has(edge)).length,
    hasVariables: !same(before.variables, after.variables),
  };
}

export function isSame({ added, removed, changed, edges, hasVariables }: Difference): boolean {
  return added.length + removed.length + changed.length + edges === 0 && !hasVariables;
}

/** Returns an id for a new node of a type. */
export function newId(graph: Graph, type: NodeType): string {
  const taken = new Set(graph.nodes.map(({ id }) => id));
  for (let number = 1; ; number++) {
    const id = number === 1 ? type : `${type}_${number}`;
    if (!taken.has(id)) return id;
  }
}

export interface Placement {
  /** The node and port that the new one follows. */
  from?: string | undefined;
  port?: string | undefined;
  at?: Point | undefined;
}

/** Adds a node, connected with the one that it follows. */
export function add(graph: Graph, type: NodeType, { from, port, at }: Placement): { graph: Graph; id: string } {
  const id = newId(graph, type);
  const places = positions(graph);
  const source = graph.nodes.find((node) => node.id === from);
  const before = source && places.get(source.id);
  const furthest = [...places.values()].reduce<Point>((most, one) => (one.x > most.x ? one : most), { x: -COLUMN, y: 0 });
  const wish = at ?? (before ? { x: before.x + COLUMN, y: before.y } : { x: furthest.x + COLUMN, y: furthest.y });
  const node: FlowNode = { id, type, config: {}, position: freePlace([...places.values()], wish) };
  const used = new Set(graph.edges.filter((edge) => edge.from === from).map(portOf));
  const free = source ? (port ?? portsOf(source).find((one) => one !== "error" && !used.has(one))) : undefined;
  const edges = source && free !== undefined && type !== "trigger" ? [...graph.edges, { from: source.id, port: free, to: id }] : graph.edges;
  return { id, graph: { ...withPositions(graph, places), nodes: [...withPositions(graph, places).nodes, node], edges } };
}

/** Writes down where all nodes are drawn. */
export function withPositions(graph: Graph, places: ReadonlyMap<string, Point>): Graph {
  return { ...graph, nodes: graph.nodes.map((node) => ({ ...node, position: places.get(node.id) ?? node.position ?? null })) };
}

export function connect(graph: Graph, edge: FlowEdge): Graph {
  return graph.edges.some((one) => edgeKey(one) === edgeKey(edge)) ? graph : { ...graph, edges: [...graph.edges, edge] };
}

export function remove(graph: Graph, nodes: ReadonlySet<string>, edges: ReadonlySet<string> = new Set()): Graph {
  return {
    ...graph,
    nodes: graph.nodes.filter(({ id }) => !nodes.has(id)),
    edges: graph.edges.filter((edge) => !nodes.has(edge.from) && !nodes.has(edge.to) && !edges.has(edgeKey(edge).replaceAll(" ", ":"))),
  };
}

/** Changes a node. Another id is followed by its edges. */
export function change(graph: Graph, id: string, by: Partial<FlowNode>): Graph {
  const to = by.id ?? id;
  const renamed = (name: string) => (name === id ? to : name);
  return {
    ...graph,
    nodes: graph.nodes.map((node) => (node.id === id ? { ...node, ...by } : node)),
    edges: to === id ? graph.edges : graph.edges.map((edge) => ({ ...edge, from: renamed(edge.from), to: renamed(edge.to) })),
  };
}
