// The ids of the API: which object an id names, which operation reads it, and which page shows it.

import { api } from "./api";
import { ApiError } from "./errors";
import { route } from "./route.svelte";

type Read = (id: string, signal: AbortSignal) => Promise<object>;

interface Definition {
  /** What ids of this kind begin with. Kinds without one have numbers. */
  prefix?: string;
  /** The scope or permission of the operation that reads it. */
  needs: string;
  /** The public operation that reads it, and the parameter that takes the id. */
  by?: readonly [operation: string, parameter?: string];
  read: Read;
  /** Pages that show it, the best first: the path of the page, and what follows it for one object. */
  pages?: readonly [page: string, tail?: string][];
}

/** How many parents are asked at the same time for an object that can only be read below its parent. */
const AT_ONCE = 6;

const data = async <T>(answer: Promise<{ data: T }>): Promise<T> => (await answer).data;
const missing = () => new ApiError(404, { error: { code: "not_found", message: "" } });

/** Finds an object by its id in a list, for kinds that no operation reads one by one. */
async function among(list: Promise<{ data: readonly object[] }>, id: string): Promise<object> {
  const found = (await list).data.find((one) => "id" in one && String(one.id) === id);
  if (!found) throw missing();
  return found;
}

/** Reads an object below each parent until one has it. */
async function below<P>(parents: readonly P[], read: (parent: P) => Promise<object>): Promise<object> {
  for (let at = 0; at < parents.length; at += AT_ONCE) {
    const results = await Promise.allSettled(parents.slice(at, at + AT_ONCE).map(read));
    for (const result of results) {
      if (result.status === "fulfilled") return result.value;
      if (!(result.reason instanceof ApiError) || result.reason.status !== 404) throw result.reason;
    }
  }
  throw missing();
}

async function delivery(id: string, signal: AbortSignal): Promise<object> {
  const { data: endpoints } = await api.get("/webhook-endpoints", { signal });
  return below(endpoints, (endpoint) => data(api.get("/webhook-endpoints/{endpointId}/deliveries/{deliveryId}", { path: { endpointId: endpoint.id, deliveryId: id }, signal })));
}

async function received(id: string, signal: AbortSignal): Promise<object> {
  const { data: webhooks } = await api.get("/inbound-webhooks", { signal });
  return below(webhooks, (webhook) => among(api.get("/inbound-webhooks/{inboundWebhookId}/requests", { path: { inboundWebhookId: webhook.id }, query: { id }, signal }), id));
}

async function firing(id: string, signal: AbortSignal): Promise<object> {
  const { data: automations } = await api.get("/automations", { signal });
  return below(automations, ({ id: automationId }) => data(api.get("/automations/{automationId}/executions/{executionId}", { path: { automationId, executionId: id }, signal })));
}

async function invocation(id: string, signal: AbortSignal): Promise<object> {
  const { data: functions } = await api.get("/functions", { signal });
  return below(functions, ({ id: functionId }) => data(api.get("/functions/{functionId}/invocations/{invocationId}", { path: { functionId, invocationId: id }, signal })));
}

async function itemImport(id: string, signal: AbortSignal): Promise<object> {
  const { data: collections } = await api.get("/collections", { signal });
  return below(collections, ({ id: collectionId }) => data(api.get("/collections/{collectionId}/imports/{importId}", { path: { collectionId, importId: id }, signal })));
}

async function item(id: string, signal: AbortSignal): Promise<object> {
  const [collectionId, itemId] = id.split("/").map(Number);
  if (!collectionId || !itemId) throw missing();
  return data(api.get("/collections/{collectionId}/items/{itemId}", { path: { collectionId, itemId }, signal }));
}

/** Whoever knows the address of an inbound webhook can send to it, so its last part is left out. */
async function inboundWebhook(inboundWebhookId: string, signal: AbortSignal): Promise<object> {
  const { data: webhook } = await api.get("/inbound-webhooks/{inboundWebhookId}", { path: { inboundWebhookId }, signal });
  return { ...webhook, url: masked(webhook.url) };
}

/** Returns the address of an inbound webhook without the part that is secret. */
export const masked = (url: string): string => url.replace(/[^/]+$/, "••••••••");

const workspaceId = () => route.workspace;

const definitions = {
  event: { prefix: "evt_", needs: "events:read", by: ["getEvent", "eventId"], read: (eventId, signal) => data(api.get("/events/{eventId}", { path: { eventId }, signal })), pages: [["developers/events"]] },
  run: { prefix: "run_", needs: "runs:read", by: ["getRun", "runId"], read: (runId, signal) => data(api.get("/runs/{runId}", { path: { runId }, query: { include: ["steps"] }, signal })), pages: [["runs"], ["agents/runs"]] },
  request: { prefix: "req_", needs: "logs:read", read: (requestId, signal) => data(api.get("/dashboard/requests/{requestId}", { path: { requestId }, signal })), pages: [["developers/logs"]] },
  key: { prefix: "key_", needs: "keys:manage", read: (keyId, signal) => data(api.get("/dashboard/keys/{keyId}", { path: { keyId }, signal })), pages: [["developers/keys"]] },
  webhook_endpoint: { prefix: "we_", needs: "webhooks:manage", by: ["getWebhookEndpoint", "endpointId"], read: (endpointId, signal) => data(api.get("/webhook-endpoints/{endpointId}", { path: { endpointId }, signal })), pages: [["developers/webhooks"]] },
  webhook_delivery: { prefix: "whd_", needs: "webhooks:manage", by: ["getWebhookDelivery", "deliveryId"], read: delivery },
  inbound_webhook: { prefix: "wh_", needs: "webhooks:manage", by: ["getInboundWebhook", "inboundWebhookId"], read: inboundWebhook, pages: [["developers/inbound"]] },
  received_request: { prefix: "whr_", needs: "webhooks:manage", by: ["listInboundWebhookRequests", "id"], read: received },
  flow_run: { prefix: "frun_", needs: "automations:read", by: ["getFlowRun", "runId"], read: (runId, signal) => data(api.get("/workspaces/{workspaceId}/flow-runs/{runId}", { path: { workspaceId: workspaceId(), runId }, signal })), pages: [["flows/runs"], ["flow-runs"]] },
  automation_execution: { prefix: "atf_", needs: "automations:read", by: ["getAutomationExecution", "executionId"], read: firing },
  function_invocation: { prefix: "inv_", needs: "functions:read", by: ["getFunctionInvocation", "invocationId"], read: invocation },
  invoice: { prefix: "inv_", needs: "billing:read", by: ["getInvoice", "invoiceId"], read: (invoiceId, signal) => data(api.get("/billing/invoices/{invoiceId}", { path: { invoiceId }, signal })) },
  execution: { prefix: "exe_", needs: "billing:read", by: ["getExecution", "executionId"], read: (executionId, signal) => data(api.get("/billing/executions/{executionId}", { path: { executionId }, signal })) },
  ledger_entry: { prefix: "led_", needs: "billing:read", by: ["listEnergyLedger"], read: (id, signal) => among(api.get("/billing/energy/ledger", { query: { limit: 100 }, signal }), id) },
  energy_grant: { prefix: "grant_", needs: "billing:read", by: ["getEnergyBalance"], read: async (id, signal) => among(Promise.resolve({ data: (await api.get("/billing/energy", { signal })).data.grants }), id) },
  payment_method: { prefix: "pm_", needs: "billing:read", by: ["listPaymentMethods"], read: (id, signal) => among(api.get("/billing/payment-methods", { signal }), id) },
  import: { prefix: "imp_", needs: "collections:read", by: ["getImport", "importId"], read: itemImport },
  audit_entry: { prefix: "aud_", needs: "audit:read", read: (id, signal) => among(api.get("/dashboard/audit", { query: { limit: 100 }, signal }), id), pages: [["settings/audit", ""]] },
  session: { prefix: "ses_", needs: "account", read: (id, signal) => among(api.get("/dashboard/me/sessions", { signal }), id) },
  contact: { needs: "contacts:read", by: ["getContact", "contactId"], read: (contactId, signal) => data(api.get("/contacts/{contactId}", { path: { contactId }, signal })), pages: [["contacts"]] },
  conversation: { needs: "conversations:read", by: ["getConversation", "conversationId"], read: (id, signal) => data(api.get("/conversations/{conversationId}", { path: { conversationId: Number(id) }, signal })), pages: [["inbox"], ["conversations"]] },
  agent: { needs: "agents:read", by: ["getAgent", "agentId"], read: (id, signal) => data(api.get("/agents/{agentId}", { path: { agentId: Number(id) }, signal })), pages: [["agents"]] },
  flow: { needs: "automations:read", by: ["getFlow", "flowId"], read: (id, signal) => data(api.get("/workspaces/{workspaceId}/flows/{flowId}", { path: { workspaceId: workspaceId(), flowId: Number(id) }, signal })), pages: [["flows"]] },
  automation: { needs: "automations:read", by: ["getAutomation", "automationId"], read: (id, signal) => data(api.get("/automations/{automationId}", { path: { automationId: Number(id) }, signal })), pages: [["automations"], ["flows/automations"]] },
  function: { needs: "functions:read", by: ["getFunction", "functionId"], read: (id, signal) => data(api.get("/functions/{functionId}", { path: { functionId: Number(id) }, signal })), pages: [["functions"]] },
  skill: { needs: "skills:read", by: ["getSkill", "skillId"], read: (id, signal) => data(api.get("/skills/{skillId}", { path: { skillId: Number(id) }, signal })), pages: [["skills"]] },
  collection: { needs: "collections:read", by: ["getCollection", "collectionId"], read: (id, signal) => data(api.get("/collections/{collectionId}", { path: { collectionId: Number(id) }, signal })), pages: [["collections"]] },
  item: { needs: "items:read", by: ["getItem", "itemId"], read: item },
  task: { needs: "tasks:read", by: ["getTask", "taskId"], read: (id, signal) => data(api.get("/workspaces/{workspaceId}/tasks/{taskId}", { path: { workspaceId: workspaceId(), taskId: Number(id) }, signal })), pages: [["tasks"]] },
  reminder: { needs: "reminders:read", by: ["listReminders"], read: (id, signal) => among(api.get("/reminders", { query: { limit: 100 }, signal }), id) },
  channel: { needs: "channels:read", by: ["getChannel", "channelId"], read: (id, signal) => data(api.get("/channels/{channelId}", { path: { channelId: Number(id) }, signal })), pages: [["channels"]] },
  broadcast: { needs: "conversations:read", by: ["getBroadcast", "broadcastId"], read: (id, signal) => data(api.get("/broadcasts/{broadcastId}", { path: { broadcastId: Number(id) }, signal })), pages: [["broadcasts"]] },
  quick_reply: { needs: "conversations:read", by: ["listQuickReplies"], read: (id, signal) => among(api.get("/quick-replies", { signal }), id) },
  file: { needs: "files:read", by: ["getFile", "fileId"], read: (id, signal) => data(api.get("/files/{fileId}", { path: { fileId: Number(id) }, signal })), pages: [["files"]] },
  variable: { needs: "variables:read", by: ["getVariable", "variableId"], read: (id, signal) => data(api.get("/variables/{variableId}", { path: { variableId: Number(id) }, signal })), pages: [["variables"]] },
  segment: { needs: "contacts:read", by: ["getSegment", "segmentId"], read: (id, signal) => data(api.get("/contacts/segments/{segmentId}", { path: { segmentId: Number(id) }, signal })) },
  team_member: { needs: "conversations:read", by: ["listTeamMembers"], read: (id, signal) => among(api.get("/team", { signal }), id), pages: [["settings/team", ""]] },
} satisfies Record<string, Definition>;

export type KindName = keyof typeof definitions;

export const kinds = Object.entries(definitions).map(([name, definition]) => ({ name: name as KindName, ...(definition as Definition) }));

export type Kind = (typeof kinds)[number];

export const kindOf = (name: string): Kind | undefined => kinds.find((kind) => kind.name === name);

/** An id with its kind. */
export interface Target {
  kind: Kind;
  id: string;
}

const CODED = /^([a-z]+_)[0-9a-hjkmnp-tv-z]{26}$/;

/** Returns what a text can name: an id of the service, a number of any kind, or a phone number or e-mail address of a contact. */
export function recognize(text: string): Target[] {
  const id = text.trim();
  const prefix = CODED.exec(id)?.[1];
  if (prefix) return kinds.filter((kind) => kind.prefix === prefix).map((kind) => ({ kind, id }));
  if (/^[1-9]\d{0,17}$/.test(id)) return kinds.filter((kind) => !kind.prefix && kind.name !== "item").map((kind) => ({ kind, id }));
  const contact = kindOf("contact");
  if (!contact) return [];
  if (/^[^\s@/]+@[^\s@/]+\.[^\s@/]+$/.test(id)) return [{ kind: contact, id: `email:${id}` }];
  if (/^\+[\d\s().-]{6,20}$/.test(id)) return [{ kind: contact, id: `phone:${id.replace(/[^+\d]/g, "")}` }];
  return [];
}

/** Returns the path of the inspector for an object. */
export function inspectorPath({ kind, id }: Target): string {
  const isAmbiguous = !kind.prefix || kinds.filter(({ prefix }) => prefix === kind.prefix).length > 1;
  return `developers/inspector/${isAmbiguous ? `${kind.name}/` : ""}${id.split("/").map(encodeURIComponent).join("/")}`;
}

/** Returns the path of the page that shows an object, if there is one. */
export function pagePath({ kind, id }: Target, hasPage: (path: string) => boolean): string | undefined {
  const page = kind.pages?.find(([path]) => hasPage(path));
  if (!page) return undefined;
  const [path, tail = `/${encodeURIComponent(id)}`] = page;
  return path + tail;
}

// Names of fields that hold the number of another kind than they are called after.
const FIELDS: Record<string, KindName> = {
  default_agent_id: "agent", error_flow_id: "flow", error_file_id: "file", member_id: "team_member", endpoint_id: "webhook_endpoint",
};

/** Returns what the value of a field names, with the object that the field belongs to. */
export function targetOf(field: string, value: unknown, owner: Record<string, unknown> | undefined): Target | undefined {
  if (typeof value === "string" && CODED.test(value)) return recognize(value)[0];
  const isNumber = (typeof value === "number" && value > 0) || (typeof value === "string" && /^[1-9]\d{0,17}$/.test(value));
  if (!isNumber) return undefined;
  const id = String(value);
  if (field === "id") {
    const name = String(owner?.["object"] ?? owner?.["type"] ?? "");
    if (name === "item") return typeof owner?.["collection_id"] === "number" ? named("item", `${owner["collection_id"]}/${id}`) : undefined;
    return named(name, id);
  }
  if (field === "item_id") return typeof owner?.["collection_id"] === "number" ? named("item", `${owner["collection_id"]}/${id}`) : undefined;
  return field.endsWith("_id") ? named(FIELDS[field] ?? field.slice(0, -3), id) : undefined;
}

function named(name: string, id: string): Target | undefined {
  const kind = kindOf(name);
  return kind && !kind.prefix ? { kind, id } : undefined;
}
