// One typed way to the API. A request is what a key could have sent: same addresses, bodies and answers.

import { untrack } from "svelte";
import type { paths } from "../types/api";
import { ApiError } from "./errors";
import { root } from "./root";
import { route } from "./route.svelte";
import { session, type Env } from "./session.svelte";

type Method = "get" | "put" | "post" | "patch" | "delete";
type Operation<P extends keyof paths, M extends Method> = NonNullable<paths[P][M]>;
/** The paths that have an operation of a method. */
export type PathsOf<M extends Method> = {
  [P in keyof paths]: [undefined] extends [paths[P][M]] ? never : P;
}[keyof paths];

type Parameters<O, In extends string> = O extends { parameters: { [K in In]?: infer Q } } ? (Q extends undefined ? never : Q) : never;
type Body<O> = O extends { requestBody?: { content: { "application/json": infer B } } } ? B : never;
type Success = 200 | 201 | 202;
/** The body of the answer of an operation. */
export type Answer<P extends keyof paths, M extends Method = "get"> =
  Operation<P, M> extends { responses: infer R }
    ? { [S in keyof R]: S extends Success ? (R[S] extends { content: { "application/json": infer B } } ? B : never) : never }[keyof R]
    : never;
/** The `data` of the answer of an operation. */
export type Data<P extends keyof paths, M extends Method = "get"> = Answer<P, M> extends { data: infer D } ? D : never;
/** One row of a list. */
export type Row<P extends keyof paths> = Data<P> extends (infer R)[] ? R : never;

/** The parts of a request. */
export type Options<P extends keyof paths, M extends Method> = {
  path?: Parameters<Operation<P, M>, "path">;
  query?: Partial<NonNullable<Parameters<Operation<P, M>, "query">>>;
  body?: Body<Operation<P, M>>;
  /** The version of the object that the change is meant for. */
  ifMatch?: string | number;
  /** The key of a write. Repeated, it has no second effect. */
  idempotencyKey?: string;
  /** The environment of the request; live without it. */
  env?: Env;
  signal?: AbortSignal;
};

const BASE = "/api/v1";

/** Returns a new idempotency key. `crypto.randomUUID` is missing on plain connections. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function address(path: string, parts: Record<string, unknown> = {}, query: Record<string, unknown> = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(parts[name])));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return `${root}${BASE}${filled}${text ? `?${text}` : ""}`;
}

/** Sends a request until it is answered by more than the end of a session. Returns any answer, also a refusal. */
export async function deliver(send: (token: string) => Promise<Response>, env?: Env): Promise<Response> {
  // The workspace of the tab when the request is made: another tab has its own. A page reads again when what it asks for changes,
  // not whenever the address does.
  const workspace = untrack(() => route.workspace);
  for (let attempt = 0; ; attempt++) {
    const response = await send(await session.token(workspace, env));
    if (response.ok) return response;
    // The session has ended, or its token: with another token, and after signing in, the request is sent again.
    if (response.status === 401 && attempt < 2) {
      session.forget(workspace);
      continue;
    }
    const error = await refusal(response.clone());
    if (error.code === "workspace_blocked" || error.code === "missing_scope") session.doubt();
    if (error.code !== "reauthentication_required" || attempt > 2) return response;
    await session.prove(workspace, error);
  }
}

/** Returns what a request was refused with. */
export async function refusal(response: Response): Promise<ApiError> {
  const body: unknown = await response.json().catch(() => undefined);
  return new ApiError(response.status, body, response.headers);
}

async function ask(url: string, init: RequestInit & { headers: Headers }, token: string): Promise<Response> {
  init.headers.set("authorization", `Bearer ${token}`);
  try {
    return await fetch(url, { ...init, credentials: "omit", cache: "no-store" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, undefined);
  }
}

/** Returns the answer if it is a success. */
async function exchange(method: string, url: string, accept: string, options: Options<keyof paths, Method>): Promise<Response> {
  const headers = new Headers({ accept });
  const init: RequestInit & { headers: Headers } = { method: method.toUpperCase(), headers };
  if (options.signal) init.signal = options.signal;
  if (options.body !== undefined) {
    headers.set("content-type", "application/json");
    init.body = JSON.stringify(options.body);
  }
  if (options.ifMatch !== undefined) headers.set("if-match", `"${options.ifMatch}"`);
  if (method !== "get") headers.set("idempotency-key", options.idempotencyKey ?? newKey());
  const response = await deliver((token) => ask(url, init, token), options.env);
  if (!response.ok) throw await refusal(response);
  return response;
}

/** A request of any method and path, as somebody has written it. */
export interface RawRequest {
  method: string;
  /** The path below `/api/v1`, with its query. */
  path: string;
  headers?: Record<string, string>;
  body?: BodyInit | undefined;
  env?: Env;
  signal?: AbortSignal;
}

/** What was answered, success or refusal. */
export interface RawAnswer {
  status: number;
  headers: [string, string][];
  text: string;
  /** The size of the body. */
  bytes: number;
  /** From sending it to the last byte of the answer. */
  milliseconds: number;
}

/** Sends any request with the session. Refusals are answers too; it throws if there is none. */
export async function request({ method, path, headers, body, env, signal }: RawRequest): Promise<RawAnswer> {
  const init: RequestInit & { headers: Headers } = { method, headers: new Headers(headers) };
  if (body !== undefined) init.body = body;
  if (signal) init.signal = signal;
  const started = performance.now();
  const response = await deliver((token) => ask(`${root}${BASE}${path}`, init, token), env);
  const data = await response.arrayBuffer();
  const milliseconds = Math.round(performance.now() - started);
  return { status: response.status, headers: [...response.headers], text: new TextDecoder().decode(data), bytes: data.byteLength, milliseconds };
}

async function send<P extends keyof paths, M extends Method>(method: M, path: P, options: Options<P, M>): Promise<Answer<P, M>> {
  const url = address(path, options.path as Record<string, unknown>, options.query);
  const response = await exchange(method, url, "application/json", options as Options<keyof paths, Method>);
  return (await response.json().catch(() => undefined)) as Answer<P, M>;
}

/** Sends a request and returns the answer as it arrives: a stream of events, or a file. */
export async function open<P extends keyof paths, M extends Method>(method: M, path: P, accept: string, options: Options<P, M> = {}): Promise<Response> {
  const url = address(path, options.path as Record<string, unknown>, options.query);
  return exchange(method, url, accept, options as Options<keyof paths, Method>);
}

export const api = {
  get: <P extends PathsOf<"get">>(path: P, options: Options<P, "get"> = {}) => send("get", path, options),
  post: <P extends PathsOf<"post">>(path: P, options: Options<P, "post"> = {}) => send("post", path, options),
  put: <P extends PathsOf<"put">>(path: P, options: Options<P, "put"> = {}) => send("put", path, options),
  patch: <P extends PathsOf<"patch">>(path: P, options: Options<P, "patch"> = {}) => send("patch", path, options),
  delete: <P extends PathsOf<"delete">>(path: P, options: Options<P, "delete"> = {}) => send("delete", path, options),
};
