// What a node or an edge is marked with: issues, differences, or what a run did there.

import { t } from "../../../text";
import type { Schemas } from "../../../types/api";
import type { Difference } from "./graph";
import { edgeId, portOf, type FlowNode, type Graph, type Issue } from "./kinds";

export type Step = Schemas["FlowStep"];
export interface Mark {
  tone?: "ok" | "warn" | "danger" | "running";
  change?: "added" | "changed" | "removed";
  /** A word, which says what the colour says. */
  text?: string;
  /** The ports by which a run went on. */
  ports?: string[];
}

export interface CardData extends Record<string, unknown> {
  node: FlowNode;
  ports: string[];
  mark: Mark | undefined;
  isReadOnly: boolean;
}

export function titleOf(node: FlowNode): string {
  return node.label || node.id;
}

export function issueMarks(issues: readonly Issue[]): Map<string, Mark> {
  const marks = new Map<string, Mark>();
  for (const id of new Set(issues.map((issue) => issue.node_id))) {
    if (id === null) continue;
    const own = issues.filter((issue) => issue.node_id === id);
    const errors = own.filter(({ severity }) => severity === "error").length;
    marks.set(id, errors ? { tone: "danger", text: t.flows.errors(errors) } : { tone: "warn", text: t.flows.warnings(own.length) });
  }
  return marks;
}

export function changeMarks(changes: Difference): Map<string, Mark> {
  return new Map<string, Mark>([
    ...changes.added.map((node): [string, Mark] => [node.id, { change: "added", tone: "ok", text: t.flows.added }]),
    ...changes.changed.map((node): [string, Mark] => [node.id, { change: "changed", tone: "warn", text: t.flows.changed }]),
    ...changes.removed.map((node): [string, Mark] => [node.id, { change: "removed", tone: "danger", text: t.flows.removed }]),
  ]);
}

export const stepTone: Record<Schemas["FlowStepStatus"], "ok" | "warn" | "danger" | "none"> = {
  pending: "warn", running: "none", waiting: "warn", completed: "ok", failed: "danger", skipped: "none", cancelled: "none", unknown: "danger",
};

/** What a run did at each node: its last step there, how many there were, and the ports by which it went on. */
export function stepMarks(steps: readonly Step[]): Map<string, Mark> {
  const marks = new Map<string, Mark>();
  for (const id of new Set(steps.map((step) => step.node_id))) {
    const own = steps.filter((step) => step.node_id === id);
    const last = own.at(-1);
    if (!last) continue;
    const tone = stepTone[last.status];
    const word = t.flows.stepStatus[last.status];
    marks.set(id, {
      ...(last.status === "running" ? { tone: "running" as const } : tone === "none" ? {} : { tone }),
      text: own.length > 1 ? t.flows.times(word, own.length) : word,
      ports: [...new Set(own.map((step) => step.port).filter((port) => port !== null))],
    });
  }
  return marks;
}

/** The edges by which a run went. */
export function wentEdges(graph: Graph, steps: readonly Step[]): Set<string> {
  const went = new Set(steps.map((step) => `${step.node_id}:${step.port ?? ""}`));
  const reached = new Set(steps.map((step) => step.node_id));
  return new Set(graph.edges.filter((edge) => went.has(`${edge.from}:${portOf(edge)}`) && reached.has(edge.to)).map(edgeId));
}
