// Facts of flows that only a single flow has: its runs, and the issues of its draft.

import { api } from "../../../lib/api";
import { route } from "../../../lib/route.svelte";
import type { Flow } from "../editor.svelte";

const AT_ONCE = 3;

/** Reads the flows of a list one after the other, a few at a time. */
export function details(rows: () => readonly Flow[]): { of: (flow: Flow) => Flow | undefined } {
  let found = $state.raw(new Map<string, Flow>());
  const key = ({ id, version, published_version }: Flow) => `${id} ${version} ${published_version}`;
  $effect(() => {
    const control = new AbortController();
    const workspaceId = route.workspace;
    const queue = [...rows()];
    const work = async () => {
      for (let flow = queue.shift(); flow && !control.signal.aborted; flow = queue.shift()) {
        const row = flow;
        try {
          const { data } = await api.get("/workspaces/{workspaceId}/flows/{flowId}", { path: { workspaceId, flowId: row.id }, signal: control.signal });
          found = new Map(found).set(key(row), data);
        } catch {
          // The row stays without numbers, which are no reason to fail.
        }
      }
    };
    for (let at = 0; at < AT_ONCE; at++) void work();
    return () => control.abort();
  });
  return { of: (flow) => found.get(key(flow)) };
}
