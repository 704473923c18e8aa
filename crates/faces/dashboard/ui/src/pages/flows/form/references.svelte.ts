// The objects that settings refer to by their ids: their names, read when a form first needs them.

import { api } from "../../../lib/api";
import { route } from "../../../lib/route.svelte";

export interface Choice {
  value: number | string;
  text: string;
}

const limit = 100;
const named = (rows: readonly { id: number | string; name?: string | null }[]): Choice[] => rows.map(({ id, name }) => ({ value: id, text: name || `#${id}` }));

const lists: Record<string, () => Promise<Choice[]>> = {
  agent: async () => named((await api.get("/agents", { query: { limit } })).data),
  function: async () => named((await api.get("/functions", { query: { limit } })).data),
  collection: async () => named((await api.get("/collections", { query: { limit } })).data),
  flow: async () => named((await api.get("/workspaces/{workspaceId}/flows", { path: { workspaceId: route.workspace } })).data),
  channel: async () => named((await api.get("/channels", { query: { limit } })).data),
  assignee: async () => named((await api.get("/team", {})).data),
  approver: async () => named((await api.get("/team", {})).data),
  error_flow: async () => lists["flow"]?.() ?? [],
  inbound_webhook: async () => named((await api.get("/inbound-webhooks", { query: { limit } })).data),
};

const known = new Map<string, Promise<Choice[]>>();

/** Returns the objects of a kind. A list that the member may not read is empty: ids can be typed all the same. */
export function choices(name: string): Promise<Choice[]> {
  const kind = name.replace(/_ids?$/, "");
  const key = `${route.workspace}/${kind}`;
  const found = known.get(key) ?? (lists[kind]?.() ?? Promise.resolve([])).catch(() => {
    known.delete(key);
    return [];
  });
  known.set(key, found);
  return found;
}

/** Forgets the lists, so that a form that opens later sees new objects. */
export function forget(): void {
  known.clear();
}
