// A request from what was typed, and the same request as a command.

import type { RawRequest } from "../../../lib/api";
import { newKey } from "../../../lib/api";
import type { Input, Operation } from "./contract";

/** What was typed for a request. */
export interface Draft {
  values: Record<string, string>;
  body: string;
  files: Record<string, File>;
}

/** The names of required parameters without a value. */
export function missing(operation: Operation, { values }: Draft): string[] {
  return operation.inputs.filter((input) => input.isRequired && !values[input.name]).map(({ name }) => name);
}

/** Returns where in a JSON text the mistake is, and what browsers say of it. */
export function jsonMistake(text: string): { line: number; message: string } | undefined {
  if (!text.trim()) return undefined;
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    const message = error instanceof Error ? error.message : "";
    const line = /line (\d+)/.exec(message)?.[1];
    const position = /position (\d+)/.exec(message)?.[1];
    const before = text.slice(0, position === undefined ? text.length : Number(position));
    return { line: line ? Number(line) : before.split("\n").length, message: message.replace(/ \(line.*|, ".*" is not valid JSON$| in JSON at position.*/s, "") };
  }
}

function deep(value: unknown, name: string, add: (name: string, value: string) => void): void {
  if (Array.isArray(value)) value.forEach((one) => deep(one, `${name}[]`, add));
  else if (value !== null && typeof value === "object") for (const [key, one] of Object.entries(value)) deep(one, `${name}[${key}]`, add);
  else add(name, String(value));
}

/** Returns the path of a request with its query, below `/api/v1`. */
export function pathOf(operation: Operation, values: Record<string, string>): string {
  const path = operation.path.replace(/\{(\w+)\}/g, (whole, name: string) => (values[name] ? encodeURIComponent(values[name]) : whole));
  const query: string[] = [];
  const add = (name: string, value: string) => query.push(`${encodeURIComponent(name).replaceAll("%5B", "[").replaceAll("%5D", "]")}=${encodeURIComponent(value)}`);
  for (const input of operation.inputs) {
    const value = values[input.name];
    if (input.in !== "query" || !value) continue;
    if (input.isDeep && !jsonMistake(value)) deep(JSON.parse(value), input.name, add);
    else add(input.name, value);
  }
  return query.length ? `${path}?${query.join("&")}` : path;
}

const headersOf = (operation: Operation, values: Record<string, string>): Record<string, string> =>
  Object.fromEntries(operation.inputs.filter((input) => input.in === "header" && values[input.name]).map(({ name }) => [name, values[name] ?? ""]));

const textBody = (operation: Operation, draft: Draft): string | undefined => (operation.body?.type === "application/json" && draft.body.trim() ? draft.body : undefined);
const formFields = (inputs: Input[], { values, files }: Draft): [string, string | File][] =>
  inputs.flatMap(({ name }) => {
    const value = files[name] ?? values[name];
    return value ? [[name, value] as [string, string | File]] : [];
  });

export function rawRequest(operation: Operation, draft: Draft): RawRequest {
  const headers: Record<string, string> = { accept: "application/json", ...headersOf(operation, draft.values) };
  if (operation.method !== "GET") headers["Idempotency-Key"] ??= newKey();
  const request: RawRequest = { method: operation.method, path: pathOf(operation, draft.values), headers };
  if (operation.body?.type === "multipart/form-data") {
    const form = new FormData();
    for (const [name, value] of formFields(operation.body.inputs, draft)) form.append(name, value);
    request.body = form;
  } else if (operation.body && operation.body.type !== "application/json") {
    headers["content-type"] = operation.body.type;
    request.body = draft.files["body"];
  } else if (textBody(operation, draft) !== undefined) {
    headers["content-type"] = "application/json";
    request.body = draft.body;
  }
  return request;
}

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** Returns a request as a command. The key is read from the environment, so that no secret is in it. */
export function curl(operation: Operation, draft: Draft, base: string): string {
  const lines = [`curl ${operation.method === "GET" ? "" : `-X ${operation.method} `}${quote(base + pathOf(operation, draft.values))}`, '-H "Authorization: Bearer $KEY"'];
  for (const [name, value] of Object.entries(headersOf(operation, draft.values))) lines.push(`-H ${quote(`${name}: ${value}`)}`);
  const body = textBody(operation, draft);
  if (operation.body?.type === "multipart/form-data") {
    for (const [name, value] of formFields(operation.body.inputs, draft)) lines.push(`-F ${quote(typeof value === "string" ? `${name}=${value}` : `${name}=@${value.name}`)}`);
  } else if (operation.body && operation.body.type !== "application/json") {
    lines.push(`-H 'Content-Type: ${operation.body.type}'`, `--data-binary ${quote(`@${draft.files["body"]?.name ?? "FILE"}`)}`);
  } else if (body !== undefined) {
    lines.push("-H 'Content-Type: application/json'", `-d ${quote(body)}`);
  }
  return lines.join(" \\\n  ");
}
