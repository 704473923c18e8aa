// What belongs to an object or refers to it, as far as operations can list it.

import { api } from "../../../lib/api";
import { targetOf, type KindName, type Target } from "../../../lib/ids";
import { route } from "../../../lib/route.svelte";
import { t } from "../../../text";

export interface Reference {
  title: string;
  /** The scope or permission of the operation. */
  needs: string;
  read: (id: string, signal: AbortSignal) => Promise<{ data: readonly object[] }>;
}

/** The newest of a list; all of it is on the page of its area. */
export const LIMIT = 20;
const limit = LIMIT;
const all = t.references;
const workspace = () => ({ workspaceId: route.workspace });
const requests = async (query: object, signal: AbortSignal) => ({ data: (await api.get("/dashboard/requests", { query: { ...query, page_size: limit }, signal })).data.requests });
const audit: Reference = { title: all.audit, needs: "audit:read", read: (target, signal) => api.get("/dashboard/audit", { query: { target, limit }, signal }) };

const references: Partial<Record<KindName, readonly Reference[]>> = {
  event: [{ title: all.deliveries, needs: "events:read", read: (eventId, signal) => api.get("/events/{eventId}/deliveries", { path: { eventId }, query: { limit }, signal }) }],
  webhook_endpoint: [{ title: all.deliveries, needs: "webhooks:manage", read: (endpointId, signal) => api.get("/webhook-endpoints/{endpointId}/deliveries", { path: { endpointId }, query: { limit }, signal }) }, audit],
  inbound_webhook: [{ title: all.received, needs: "webhooks:manage", read: (inboundWebhookId, signal) => api.get("/inbound-webhooks/{inboundWebhookId}/requests", { path: { inboundWebhookId }, query: { limit }, signal }) }, audit],
  key: [{ title: all.requests, needs: "logs:read", read: (key_id, signal) => requests({ key_id }, signal) }, audit],
  team_member: [{ title: all.requests, needs: "logs:read", read: (id, signal) => requests({ member_id: Number(id) }, signal) }, audit],
  contact: [
    { title: all.conversations, needs: "conversations:read", read: (id, signal) => api.get("/conversations", { query: { contact_id: Number(id), limit }, signal }) },
    { title: all.tasks, needs: "tasks:read", read: (id, signal) => api.get("/workspaces/{workspaceId}/tasks", { path: workspace(), query: { contact_id: Number(id), limit }, signal }) },
    { title: all.reminders, needs: "reminders:read", read: (id, signal) => api.get("/reminders", { query: { contact_id: Number(id), limit }, signal }) },
    { title: all.flowRuns, needs: "automations:read", read: (id, signal) => api.get("/workspaces/{workspaceId}/flow-runs", { path: workspace(), query: { contact_id: Number(id), limit }, signal }) },
    { title: all.events, needs: "events:read", read: (id, signal) => api.get("/events", { query: { contact_id: Number(id), limit }, signal }) },
    { title: all.notes, needs: "contacts:read", read: (contactId, signal) => api.get("/contacts/{contactId}/notes", { path: { contactId }, query: { limit }, signal }) },
  ],
  conversation: [
    { title: all.messages, needs: "conversations:read", read: (id, signal) => api.get("/conversations/{conversationId}/messages", { path: { conversationId: Number(id) }, query: { limit, order: "desc" }, signal }) },
    { title: all.runs, needs: "runs:read", read: (conversation_id, signal) => api.get("/runs", { query: { conversation_id, limit }, signal }) },
  ],
  agent: [
    { title: all.runs, needs: "runs:read", read: (id, signal) => api.get("/runs", { query: { agent_id: Number(id), limit }, signal }) },
    { title: all.tools, needs: "agents:read", read: (id, signal) => api.get("/agents/{agentId}/tools", { path: { agentId: Number(id) }, query: { limit }, signal }) },
    { title: all.versions, needs: "agents:read", read: (id, signal) => api.get("/agents/{agentId}/versions", { path: { agentId: Number(id) }, query: { limit }, signal }) },
  ],
  skill: [{ title: all.agents, needs: "skills:read", read: (id, signal) => api.get("/skills/{skillId}/agents", { path: { skillId: Number(id) }, signal }) }],
  flow: [{ title: all.flowRuns, needs: "automations:read", read: (id, signal) => api.get("/workspaces/{workspaceId}/flow-runs", { path: workspace(), query: { flow_id: Number(id), limit }, signal }) }],
  flow_run: [{ title: all.steps, needs: "automations:read", read: (runId, signal) => api.get("/workspaces/{workspaceId}/flow-runs/{runId}/steps", { path: { ...workspace(), runId }, query: { limit }, signal }) }],
  automation: [{ title: all.executions, needs: "automations:read", read: (id, signal) => api.get("/automations/{automationId}/executions", { path: { automationId: Number(id) }, query: { limit }, signal }) }],
  function: [{ title: all.calls, needs: "functions:read", read: (id, signal) => api.get("/functions/{functionId}/invocations", { path: { functionId: Number(id) }, query: { limit }, signal }) }],
  collection: [
    { title: all.items, needs: "items:read", read: (id, signal) => api.get("/collections/{collectionId}/items", { path: { collectionId: Number(id) }, query: { limit }, signal }) },
    { title: all.fields, needs: "collections:read", read: (id, signal) => api.get("/collections/{collectionId}/fields", { path: { collectionId: Number(id) }, query: { limit }, signal }) },
  ],
  item: [
    { title: all.links, needs: "items:read", read: (id, signal) => api.get("/collections/{collectionId}/items/{itemId}/links", { path: itemPath(id), query: { direction: "in", limit }, signal }) },
    { title: all.comments, needs: "items:read", read: (id, signal) => api.get("/collections/{collectionId}/items/{itemId}/comments", { path: itemPath(id), query: { limit }, signal }) },
    { title: all.activity, needs: "items:read", read: (id, signal) => api.get("/collections/{collectionId}/items/{itemId}/activity", { path: itemPath(id), query: { limit }, signal }) },
  ],
  task: [
    { title: all.subtasks, needs: "tasks:read", read: (id, signal) => api.get("/workspaces/{workspaceId}/tasks/{taskId}/subtasks", { path: { ...workspace(), taskId: Number(id) }, query: { limit }, signal }) },
    { title: all.comments, needs: "tasks:read", read: (id, signal) => api.get("/workspaces/{workspaceId}/tasks/{taskId}/comments", { path: { ...workspace(), taskId: Number(id) }, query: { limit }, signal }) },
    { title: all.activity, needs: "tasks:read", read: (id, signal) => api.get("/workspaces/{workspaceId}/tasks/{taskId}/activity", { path: { ...workspace(), taskId: Number(id) }, query: { limit }, signal }) },
  ],
  channel: [
    { title: all.conversations, needs: "conversations:read", read: (id, signal) => api.get("/conversations", { query: { channel_id: Number(id), limit }, signal }) },
    { title: all.templates, needs: "channels:read", read: (id, signal) => api.get("/channels/{channelId}/chatnet/templates", { path: { channelId: Number(id) }, query: { limit }, signal }) },
    audit,
  ],
  broadcast: [{ title: all.recipients, needs: "conversations:read", read: (id, signal) => api.get("/broadcasts/{broadcastId}/recipients", { path: { broadcastId: Number(id) }, query: { limit }, signal }) }],
  variable: [{ title: all.usages, needs: "variables:read", read: (id, signal) => api.get("/variables/{variableId}/usages", { path: { variableId: Number(id) }, signal }) }],
};

function itemPath(id: string): { collectionId: number; itemId: number } {
  const [collectionId = 0, itemId = 0] = id.split("/").map(Number);
  return { collectionId, itemId };
}

export const referencesOf = (kind: KindName): readonly Reference[] => references[kind] ?? [];

/** One row of what refers to an object, of whatever kind it is. */
export interface ReferenceRow {
  key: string;
  text: string;
  state: string;
  at: string | undefined;
  target: Target | undefined;
}

const NAMES = ["title", "name", "display_name", "event_type", "text", "body", "operation", "action", "input", "subject", "node_id", "label", "key", "shortcode", "type"];
const TIMES = ["created_at", "received_at", "at", "started_at", "last_message_at", "updated_at"];

/** Returns what a list shows of an object: its name or text, its state and its time. */
export function rowOf(raw: object, index: number): ReferenceRow {
  const object = raw as Record<string, unknown>;
  const text = (value: unknown): string | undefined => {
    if (typeof value === "string" && value) return value;
    if (value !== null && typeof value === "object" && "text" in value && typeof value.text === "string") return value.text;
    return undefined;
  };
  const isEvent = object["object"] === "event";
  const isVersion = String(object["object"] ?? "").endsWith("_version");
  const named = isVersion ? `${all.version} ${String(object["version"])}` : isEvent ? text(object["type"]) : (text(object["content"]) ?? text(object["last_message"]) ?? NAMES.map((name) => text(object[name])).find(Boolean));
  const id = object["id"] ?? object["version"];
  const at = TIMES.map((name) => object[name]).find((value) => typeof value === "string") as string | undefined;
  return { key: `${String(id ?? "")} ${index}`, text: named ?? String(id ?? ""), state: text(object["status"]) ?? (typeof object["status"] === "number" ? String(object["status"]) : ""), at, target: targetOf("id", id, object) };
}
