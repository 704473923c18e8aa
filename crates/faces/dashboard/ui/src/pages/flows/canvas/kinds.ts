// The kinds of nodes, as the service publishes them: what they do, and their ports.

import { nodeKinds } from "../../../types/nodes";
import type { Schemas } from "../../../types/api";

export type NodeType = Schemas["FlowNodeType"];
export type FlowNode = Schemas["FlowNode"];
export type FlowEdge = Schemas["FlowEdge"];
export type Graph = Schemas["FlowGraph"];
export type Issue = Schemas["FlowIssue"];

export interface Kind {
  type: NodeType;
  work: "acts" | "waits" | "computes";
  scope: string | null;
  text: string;
  ports: string[];
  /** The setting whose entries are ports, each named by its `id`. */
  portsFrom: string | null;
  isAvailable: boolean;
}

export const kinds = nodeKinds as Kind[];
const byType = new Map(kinds.map((kind) => [kind.type, kind]));

export function kindOf(type: NodeType): Kind {
  const kind = byType.get(type);
  if (!kind) throw new Error(`no kind ${type}`);
  return kind;
}

export type Group = "start" | "contact" | "decide" | "wait" | "ai" | "data" | "code" | "loop" | "end";
export const groups: Record<Group, NodeType[]> = {
  start: ["trigger"],
  contact: ["send_message", "send_template", "ask", "wait_for_reply", "handoff", "update_contact", "contact_tag", "note"],
  decide: ["condition", "switch", "split"],
  wait: ["delay", "wait_until", "wait_for_event", "approval"],
  ai: ["agent", "classify", "extract", "image"],
  data: ["find_items", "write_item", "search_collection", "task", "reminder", "set_variables", "transform"],
  code: ["function", "code", "http_request", "integration_action", "mcp_tool", "emit_event", "conversion", "respond"],
  loop: ["for_each", "while", "parallel", "join", "sub_flow", "jump"],
  end: ["end"],
};
/** The drawing of a group, 24 × 24. */
export const icons: Record<Group, string> = {
  start: "m8 5 11 7-11 7z",
  contact: "M4 5h16v11H9l-5 4z",
  decide: "M12 3v6m0 0-6 5v7m6-12 6 5v7",
  wait: "M12 7v5l3 2m6-2a9 9 0 1 1-18 0 9 9 0 0 1 18 0z",
  ai: "M12 3l2 6 6 3-6 3-2 6-2-6-6-3 6-3z",
  data: "M4 6c0-4 16-4 16 0v12c0 4-16 4-16 0zm0 0c0 4 16 4 16 0M4 12c0 4 16 4 16 0",
  code: "m8 7-5 5 5 5m8-10 5 5-5 5",
  loop: "M4 12a8 8 0 0 1 14-5l2 2m0-5v5h-5m5 3a8 8 0 0 1-14 5l-2-2m0 5v-5h5",
  end: "M6 6h12v12H6z",
};
const groupOf = new Map(Object.entries(groups).flatMap(([group, types]) => types.map((type) => [type, group as Group])));

export function iconOf(type: NodeType): string {
  return icons[groupOf.get(type) ?? "code"];
}

/** The ports of a node: those of its kind, and those that its settings add. */
export function portsOf(node: FlowNode): string[] {
  const kind = kindOf(node.type);
  const entries = kind.portsFrom ? node.config?.[kind.portsFrom] : undefined;
  const own = Array.isArray(entries) ? entries.map((entry: unknown) => (entry as { id?: unknown } | null)?.id).filter((id): id is string => typeof id === "string" && id !== "") : [];
  return [...new Set([...own, ...kind.ports])];
}

/** The ports that are drawn: that of failures only where it leads somewhere. */
export function shownPorts(node: FlowNode, edges: readonly FlowEdge[]): string[] {
  const used = new Set(edges.filter((edge) => edge.from === node.id).map(portOf));
  const own = portsOf(node);
  return [...own.filter((port) => port !== "error" || node.on_error === "branch" || used.has("error")), ...[...used].filter((port) => !own.includes(port))];
}

export function portOf(edge: FlowEdge): string {
  return edge.port ?? "next";
}

/** The name of an edge, by which it is chosen. */
export function edgeId(edge: FlowEdge): string {
  return `${edge.from}:${portOf(edge)}:${edge.to}`;
}
