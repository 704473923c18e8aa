// The names of what tools can cover. What the member may not read is left out.

import { api } from "../../lib/api";
import { route } from "../../lib/route.svelte";
import { session } from "../../lib/session.svelte";

export interface Reference {
  id: number;
  name: string;
}

export class References {
  constructor(readonly lists: Record<string, Reference[]>) {}

  of(type: string, id: number): string | undefined {
    return this.lists[type]?.find((one) => one.id === id)?.name;
  }
}

export async function references(signal: AbortSignal): Promise<References> {
  const path = { workspaceId: route.workspace };
  const [collections, agents, functions, flows] = await Promise.all([
    session.can("collections:read") ? api.get("/collections", { signal }) : undefined,
    api.get("/agents", { signal }),
    session.can("functions:read") ? api.get("/functions", { signal }) : undefined,
    session.can("automations:read") ? api.get("/workspaces/{workspaceId}/flows", { path, signal }) : undefined,
  ]);
  const list = (answer: { data: readonly { id: number; name: string }[] } | undefined) => (answer?.data ?? []).map(({ id, name }) => ({ id, name }));
  const all = list(collections);
  return new References({ collection_items: all, collection_search: all, agent: list(agents), function: list(functions), flow: list(flows) });
}
