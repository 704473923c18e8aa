// A mapping as a form: rows in place of objects, so that a row can be without a name while it is written.

import type { Schemas } from "../../../types/api";

export interface MappingDraft {
  eventType: string;
  conditions: { from: string; op: Schemas["InboundComparison"]; value: string }[];
  vars: { name: string; from: string; type: Schemas["InboundVariableType"]; required: boolean; fallback: string }[];
  contact: { matchOn: Schemas["InboundContactMatch"] | ""; field: string; create: boolean; fields: { key: string; from: string }[] };
}

/** Writes a value so that it can be typed: texts as they are, anything else as JSON. */
function written(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") return JSON.stringify(value);
  // A text that reads as another value keeps its quotes.
  return typeof read(value) === "string" ? value : JSON.stringify(value);
}

function read(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

export function draftOf(mapping: Schemas["InboundMapping"] | null | undefined): MappingDraft {
  const contact = mapping?.contact;
  return {
    eventType: mapping?.event_type ?? "",
    conditions: (mapping?.conditions ?? []).map(({ from, op, value }) => ({ from, op, value: written(value) })),
    vars: Object.entries(mapping?.vars ?? {}).map(([name, one]) => ({ name, from: one.from, type: one.type ?? "any", required: one.required ?? false, fallback: written(one.default) })),
    contact: { matchOn: contact?.match_on ?? "", field: contact?.field ?? "", create: contact?.create ?? false, fields: Object.entries(contact?.fields ?? {}).map(([key, from]) => ({ key, from })) },
  };
}

/** Returns the mapping of what was typed, or `null` if nothing was. Rows without a name or source are left out. */
export function mappingOf(draft: MappingDraft): Schemas["InboundMapping"] | null {
  const vars = draft.vars.filter(({ name, from }) => name.trim() || from.trim());
  const conditions = draft.conditions.filter(({ from }) => from.trim());
  const { matchOn, field, create, fields } = draft.contact;
  const mapping: Schemas["InboundMapping"] = {
    ...(draft.eventType.trim() && { event_type: draft.eventType.trim() }),
    ...(conditions.length && { conditions: conditions.map(({ from, op, value }) => ({ from: from.trim(), op, ...(!op.endsWith("exists") && { value: read(value) }) })) }),
    ...(vars.length && {
      vars: Object.fromEntries(vars.map(({ name, from, type, required, fallback }) => [name.trim(), { from: from.trim(), ...(type !== "any" && { type }), ...(required && { required }), ...(fallback.trim() && { default: read(fallback) }) }])),
    }),
    ...(matchOn && { contact: { match_on: matchOn, ...(matchOn === "field" && { field: field.trim() }), create, fields: Object.fromEntries(fields.filter(({ key, from }) => key.trim() && from.trim()).map(({ key, from }) => [key.trim(), from.trim()])) } }),
  };
  return Object.keys(mapping).length ? mapping : null;
}
