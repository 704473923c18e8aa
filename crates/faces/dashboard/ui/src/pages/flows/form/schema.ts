// Forms that are made of JSON Schemas: which control a value has, and how it is read and written.

export interface Schema {
  type?: string | string[];
  description?: string;
  "x-values"?: string;
  enum?: string[];
  const?: unknown;
  oneOf?: Schema[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  pattern?: string;
  format?: string;
  $ref?: string;
  $defs?: Record<string, Schema>;
}

export type Control = "choice" | "text" | "long" | "number" | "switch" | "lines" | "rows" | "group" | "object" | "any" | "condition" | "reference" | "references";

/** Returns a schema without the alternative `null`, and with what it refers to. */
export function plain(schema: Schema, defs: Record<string, Schema> = schema.$defs ?? {}): Schema {
  const { $ref, ...rest } = schema;
  const own: Schema = $ref ? { ...plain(defs[$ref.split("/").at(-1) ?? ""] ?? {}, defs), ...rest } : rest;
  const [only] = (own.oneOf ?? own.anyOf ?? []).filter(({ type }) => type !== "null");
  if (only && !own.type) {
    const { oneOf: _, anyOf: __, ...outer } = own;
    return { ...plain(only, defs), ...outer };
  }
  const values = $ref ? (defs[$ref.split("/").at(-1) ?? ""]?.description ?? own["x-values"]) : own["x-values"];
  return { ...own, $defs: defs, ...(own.enum && values && { "x-values": values }) };
}

const REFERENCES = new Set(["agent_id", "function_id", "collection_id", "flow_id", "channel_id", "assignee_id", "error_flow_id", "approver_ids", "inbound_webhook_id"]);

export function controlOf(name: string, schema: Schema): Control {
  const type = Array.isArray(schema.type) ? schema.type.find((one) => one !== "null") : schema.type;
  if (REFERENCES.has(name)) return type === "array" ? "references" : "reference";
  if (schema.enum) return "choice";
  if (type === "boolean") return "switch";
  if (type === "integer" || type === "number") return "number";
  if (type === "string") return (schema.maxLength ?? 0) > 300 && name !== "sort" && name !== "url" ? "long" : "text";
  if (type === "array") return schema.items?.properties ? "rows" : schema.items?.type === undefined ? "any" : "lines";
  if (type === "object") return schema.properties ? "group" : "object";
  return /\bcondition\b/i.test(schema.description ?? "") && /^(if|filter)$/.test(name) ? "condition" : "any";
}

/** Writes any value as one text: a text as it is, unless it could be read as something else. */
export function print(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" && read(value) === value ? value : JSON.stringify(value, null, 2);
}

/** Reads what `print` writes: JSON where the text is JSON, else the text itself. */
export function read(text: string): unknown {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** Reads a number, or leaves a template as it is. */
export function number(text: string): unknown {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  return Number.isFinite(Number(trimmed)) ? Number(trimmed) : trimmed;
}

/** The sentence that explains one value of a choice. */
export function explained(schema: Schema, value: string): string | undefined {
  const line = schema["x-values"]?.split("\n").find((one) => one.startsWith(`- \`${value}\`:`));
  return line?.slice(line.indexOf(":") + 2);
}

/** Returns an object with another member, or without it. */
export function withMember(object: unknown, name: string, value: unknown): Record<string, unknown> {
  const { [name]: _, ...rest } = isObject(object) ? object : {};
  if (value === undefined) return rest;
  return isObject(object) && name in object ? { ...object, [name]: value } : { ...rest, [name]: value };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
