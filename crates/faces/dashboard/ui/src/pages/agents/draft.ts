// The settings of an agent as a form has them: texts that people type. What differs from the agent is the change that is sent.

import type { Data } from "../../lib/api";
import type { Schemas } from "../../types/api";

export type Agent = Data<"/agents/{agentId}">;
const text = (value: number | null | undefined): string => (value === null || value === undefined ? "" : String(value));

export function draftOf(agent: Agent) {
  return {
    name: agent.name,
    description: agent.description,
    instructions: agent.instructions,
    model: agent.model as Schemas["Tier"],
    temperature: text(agent.temperature),
    maxOutputTokens: text(agent.max_output_tokens),
    maxSteps: text(agent.max_steps),
    maxToolCalls: text(agent.max_tool_calls),
    timeout: text(agent.timeout_seconds),
    energyRun: text(agent.energy_limit_per_run),
    energyMonth: text(agent.energy_limit_monthly),
    memoryMode: (agent.memory.mode ?? "summary") as Schemas["MemoryMode"],
    memoryMessages: text(agent.memory.max_messages ?? 40),
    pinned: agent.memory.pinned ?? "",
    debounce: text(agent.reply.debounce_seconds ?? 2),
    maxWait: text(agent.reply.max_wait_seconds ?? 15),
    split: agent.reply.split_messages ?? false,
    handoff: agent.handoff.enabled ?? false,
    keywords: (agent.handoff.keywords ?? []).join("\n"),
    resume: text(agent.handoff.resume_after_minutes),
    fallback: agent.fallback_message ?? "",
    format: agent.response_format.type as Schemas["ResponseKind"],
    schema: agent.response_format.schema ? JSON.stringify(agent.response_format.schema, null, 2) : "",
    guardrails: agent.guardrails.length ? JSON.stringify(agent.guardrails, null, 2) : "",
  };
}
export type Draft = ReturnType<typeof draftOf>;

/** Takes what others changed, and keeps what was typed here. */
export function merged(mine: Draft, before: Draft, theirs: Draft): Draft {
  const fields = Object.keys(mine) as (keyof Draft)[];
  return Object.fromEntries(fields.map((field) => [field, mine[field] === before[field] ? theirs[field] : mine[field]])) as Draft;
}

// Number fields of the browser give numbers, and `undefined` or `null` where nothing is typed.
const number = (value: unknown): number | null => (value === "" || value === null || value === undefined ? null : Number(value));
const filled = (value: string): string | null => (value.trim() === "" ? null : value);

/** A field whose text is not JSON. */
export class NotJson extends Error {
  constructor(readonly field: "schema" | "guardrails") {
    super();
  }
}
function json(field: "schema" | "guardrails", value: string): unknown {
  try {
    return JSON.parse(value) as unknown;
  } catch {
    throw new NotJson(field);
  }
}

/** Returns the body of the change. Parts that are objects are sent whole. */
export function patchOf(draft: Draft): Schemas["AgentPatch"] {
  return {
    name: draft.name.trim(),
    description: draft.description,
    instructions: draft.instructions,
    model: draft.model,
    temperature: number(draft.temperature),
    max_output_tokens: number(draft.maxOutputTokens),
    max_steps: number(draft.maxSteps),
    max_tool_calls: number(draft.maxToolCalls),
    timeout_seconds: number(draft.timeout),
    energy_limit_per_run: number(draft.energyRun),
    energy_limit_monthly: number(draft.energyMonth),
    memory: { mode: draft.memoryMode, max_messages: number(draft.memoryMessages) ?? 40, pinned: filled(draft.pinned) },
    reply: { debounce_seconds: number(draft.debounce) ?? 2, max_wait_seconds: number(draft.maxWait) ?? 15, split_messages: draft.split },
    handoff: { enabled: draft.handoff, keywords: draft.keywords.split("\n").map((line) => line.trim()).filter(Boolean), resume_after_minutes: number(draft.resume) },
    fallback_message: filled(draft.fallback),
    response_format: draft.format === "text" ? { type: "text" } : { type: "json_schema", schema: json("schema", draft.schema) as Record<string, unknown> },
    guardrails: draft.guardrails.trim() === "" ? [] : (json("guardrails", draft.guardrails) as Schemas["Guardrail"][]),
  };
}
