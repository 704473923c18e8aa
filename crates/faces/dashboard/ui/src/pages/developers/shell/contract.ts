// The operations of the API, as its published OpenAPI document describes them. It is loaded when the shell is opened.

import { ApiError } from "../../../lib/errors";
import { root } from "../../../lib/root";

interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  example?: unknown;
  examples?: unknown[];
  format?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
}

interface RawParameter {
  $ref?: string;
  name: string;
  in: "path" | "query" | "header";
  description?: string;
  required?: boolean;
  schema?: Schema;
  example?: unknown;
  style?: string;
}

interface RawOperation {
  operationId: string;
  tags?: string[];
  summary?: string;
  description?: string;
  security?: Record<string, string[]>[];
  parameters?: RawParameter[];
  requestBody?: { required?: boolean; content: Record<string, { schema?: Schema; example?: unknown; examples?: Record<string, { value?: unknown }> }> };
  "x-svc-test-mode"?: string;
  "x-svc-energy"?: boolean;
}

interface Document {
  paths: Record<string, Record<string, RawOperation>>;
  components: { schemas: Record<string, Schema>; parameters: Record<string, RawParameter> };
}

/** A field of a request: a parameter, or a member of its body. */
export interface Input {
  name: string;
  in: "path" | "query" | "header" | "body";
  isRequired: boolean;
  description: string;
  /** Its type in words: `integer, 1 to 100`. */
  type: string;
  /** The values it can have, if they are a closed set. */
  options: string[] | undefined;
  /** A value to begin with. */
  sample: unknown;
  /** Written as an object and sent as `filter[a][b]=c`. */
  isDeep: boolean;
  isFile: boolean;
}

export interface Operation {
  id: string;
  method: string;
  path: string;
  tag: string;
  summary: string;
  description: string;
  scopes: string[];
  inputs: Input[];
  body: { type: string; isRequired: boolean; example: string; inputs: Input[] } | undefined;
  /** Something is lost that cannot be written again. The data of the test environment is that of the live one. */
  isDestructive: boolean;
  /** Not available in the test environment, because it reaches people. */
  isLiveOnly: boolean;
  spendsEnergy: boolean;
}

const METHODS = ["get", "post", "put", "patch", "delete"];
const DESTRUCTIVE = /^(delete|remove|clear|empty|merge|bulkDelete|withdraw|unpublish|cancel|replace)[A-Z]/;
/** The workspace of a request is that of the session's token. */
const SKIPPED = new Set(["X-Svc-Workspace"]);
const DEPTH = 4;

let loaded: Promise<Operation[]> | undefined;

/** Returns all operations, in the order of the document. */
export function operations(): Promise<Operation[]> {
  loaded ??= load().catch((error: unknown) => {
    loaded = undefined;
    throw error;
  });
  return loaded;
}

async function load(): Promise<Operation[]> {
  let response: Response;
  try {
    response = await fetch(`${root}/api/v1/openapi.public.json`, { credentials: "omit", headers: { accept: "application/json" } });
  } catch {
    throw new ApiError(0, undefined);
  }
  const body: unknown = await response.json().catch(() => undefined);
  if (!response.ok || !body) throw new ApiError(response.status, body, response.headers);
  return read(body as Document);
}

function read(document: Document): Operation[] {
  const schema = (one: Schema | undefined): Schema => resolve(document, one);
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    METHODS.flatMap((method) => {
      const raw = methods[method];
      return raw ? [operation(method, path, raw, document, schema)] : [];
    }),
  );
}

function operation(method: string, path: string, raw: RawOperation, document: Document, schema: (one?: Schema) => Schema): Operation {
  const parameters = (raw.parameters ?? []).map((one) => (one.$ref ? document.components.parameters[one.$ref.split("/").at(-1) ?? ""] : one)).filter((one) => one !== undefined);
  return {
    id: raw.operationId,
    method: method.toUpperCase(),
    path,
    tag: raw.tags?.[0] ?? "",
    summary: raw.summary ?? "",
    description: raw.description ?? "",
    scopes: (raw.security ?? []).flatMap((one) => Object.values(one).flat()),
    inputs: parameters.filter((one) => !SKIPPED.has(one.name)).map((one) => input({ ...one, description: one.description ?? schema(one.schema).description ?? "" }, one.schema, schema)),
    body: body(raw.requestBody, schema),
    isDestructive: method === "delete" || DESTRUCTIVE.test(raw.operationId),
    isLiveOnly: raw["x-svc-test-mode"] === "restricted",
    spendsEnergy: raw["x-svc-energy"] === true,
  };
}

function input(one: { name: string; in: Input["in"]; description: string; required?: boolean; example?: unknown; style?: string }, raw: Schema | undefined, schema: (one?: Schema) => Schema): Input {
  const found = schema(raw);
  const values = found.enum ?? (found.type === "boolean" ? [true, false] : undefined);
  return {
    name: one.name,
    in: one.in,
    isRequired: one.required ?? false,
    description: one.description,
    type: words(found, schema),
    options: values?.map(String),
    sample: one.example ?? sample(found, schema, DEPTH),
    isDeep: one.style === "deepObject",
    isFile: found.format === "binary",
  };
}

function body(raw: RawOperation["requestBody"], schema: (one?: Schema) => Schema): Operation["body"] {
  const [type, content] = Object.entries(raw?.content ?? {})[0] ?? [];
  if (type === undefined || !content) return undefined;
  const found = schema(content.schema);
  // A body of several forms has the fields of all of them.
  const forms = [found, ...(found.oneOf ?? found.anyOf ?? found.allOf ?? []).map(schema)];
  const inputs = new Map<string, Input>();
  for (const form of forms) {
    for (const [name, property] of Object.entries(form.properties ?? {})) {
      if (inputs.has(name)) continue;
      inputs.set(name, input({ name, in: "body", description: property.description ?? schema(property).description ?? "", required: found.required?.includes(name) ?? false }, property, schema));
    }
  }
  const example = content.example ?? Object.values(content.examples ?? {})[0]?.value ?? sample(found, schema, DEPTH);
  return { type, isRequired: raw?.required ?? false, example: JSON.stringify(example, null, 2), inputs: [...inputs.values()] };
}

/** Follows references, and takes the form that is not null. */
function resolve(document: Document, one: Schema | undefined): Schema {
  let found = one ?? {};
  for (let steps = 0; steps < 8; steps++) {
    const variants = (found.oneOf ?? found.anyOf)?.filter(({ type }) => type !== "null");
    if (found.$ref) found = document.components.schemas[found.$ref.split("/").at(-1) ?? ""] ?? {};
    else if (variants?.length === 1 && variants[0]) found = variants[0];
    else break;
  }
  const types = Array.isArray(found.type) ? found.type.filter((type) => type !== "null") : undefined;
  return types ? { ...found, type: types.length === 1 ? (types[0] ?? "") : types } : found;
}

function words(one: Schema, schema: (one?: Schema) => Schema): string {
  const type = Array.isArray(one.type) ? one.type.join(" | ") : (one.type ?? "any");
  if (one.enum) return "";
  if (type === "array") {
    const items = schema(one.items);
    return `${words(items, schema) || "string"}[]${items.enum ? `: ${items.enum.join(", ")}` : ""}`;
  }
  const limits = [one.minimum !== undefined && `≥ ${one.minimum}`, one.maximum !== undefined && `≤ ${one.maximum}`, one.maxLength !== undefined && `≤ ${one.maxLength}`].filter(Boolean);
  return [one.format === "date-time" ? "date-time" : type, ...limits].join(", ");
}

function sample(one: Schema, schema: (one?: Schema) => Schema, depth: number): unknown {
  const given = one.example ?? one.examples?.[0] ?? one.default ?? one.const ?? one.enum?.[0];
  if (given !== undefined) return given;
  switch (Array.isArray(one.type) ? one.type[0] : one.type) {
    case "integer":
    case "number":
      return one.minimum ?? 0;
    case "boolean":
      return false;
    case "array":
      return [];
    case "string":
      return "";
    default:
      if (depth === 0) return {};
      return Object.fromEntries((one.required ?? []).map((name) => [name, sample(schema(one.properties?.[name]), schema, depth - 1)]));
  }
}

/** Returns the operations that a text means, the best first: each word has to be in the name, the path, the summary or the tag. */
export function search(all: readonly Operation[], text: string): Operation[] {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  const whole = wanted.join("");
  const rank = (one: Operation): number => {
    const id = one.id.toLowerCase();
    const rest = `${one.method} ${one.path} ${one.summary} ${one.tag}`.toLowerCase();
    if (!wanted.every((word) => id.includes(word) || rest.includes(word))) return 0;
    if (id === whole) return 4;
    return id.startsWith(whole) ? 3 : wanted.every((word) => id.includes(word)) ? 2 : 1;
  };
  return all
    .map((one) => ({ one, rank: rank(one) }))
    .filter((entry) => entry.rank > 0)
    .sort((a, b) => b.rank - a.rank || (a.rank > 2 ? a.one.id.length - b.one.id.length : 0))
    .map(({ one }) => one);
}
