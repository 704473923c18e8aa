// Which nodes runs wait at. A run says at which of its steps it waits, so the steps are read too.

import { api } from "../../../lib/api";
import { t } from "../../../text";
import type { Mark } from "../canvas/marks";

const RUNS = 20;

/** Counts the latest runs of a version that wait, at their nodes. */
export async function waitingMarks(path: { workspaceId: number; flowId: number }, version: number, signal: AbortSignal): Promise<{ marks: Map<string, Mark>; total: number; isMore: boolean }> {
  const { workspaceId } = path;
  const query = { flow_id: path.flowId, status: "waiting" as const, paginate: true, limit: 100 };
  const answer = await api.get("/workspaces/{workspaceId}/flow-runs", { path: { workspaceId }, query, signal });
  const runs = answer.data.filter((run) => run.version === version);
  const nodes = new Map<string, number>();
  for (const run of runs.slice(0, RUNS)) {
    const { data } = await api.get("/workspaces/{workspaceId}/flow-runs/{runId}/steps", { path: { workspaceId, runId: run.id }, signal });
    const waits = new Set(run.waiting_for.map(({ step_position }) => step_position));
    for (const id of new Set(data.filter((step) => waits.has(step.position)).map((step) => step.node_id))) nodes.set(id, (nodes.get(id) ?? 0) + 1);
  }
  const marks = new Map([...nodes].map(([id, count]): [string, Mark] => [id, { tone: "warn", text: t.flowParts.waitHere(count) }]));
  return { marks, total: runs.length, isMore: runs.length > RUNS || answer.has_more === true };
}
