// Storing files, with how much of them has been sent: `fetch` does not say it.

import { untrack } from "svelte";
import { newKey, type Data } from "./api";
import { ApiError } from "./errors";
import { root } from "./root";
import { route } from "./route.svelte";
import { session } from "./session.svelte";

export type Stored = Data<"/files", "post">;

interface Options {
  /** The key of the upload. Repeated, it stores no second file. */
  idempotencyKey?: string;
  /** Called with the share that has been sent. */
  progress?: (share: number) => void;
}

interface Answered {
  status: number;
  body: unknown;
  headers: Headers;
}

function send(file: File, token: string, { idempotencyKey = newKey(), progress }: Options): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `${root}/api/v1/files`);
    request.responseType = "json";
    request.setRequestHeader("authorization", `Bearer ${token}`);
    request.setRequestHeader("accept", "application/json");
    request.setRequestHeader("idempotency-key", idempotencyKey);
    request.upload.onprogress = ({ loaded, total }) => progress?.(total > 0 ? loaded / total : 0);
    request.onload = () => {
      const named = ["x-request-id", "retry-after"].map((name): [string, string] => [name, request.getResponseHeader(name) ?? ""]);
      resolve({ status: request.status, body: request.response, headers: new Headers(named.filter(([, value]) => value)) });
    };
    request.onerror = () => reject(new ApiError(0, undefined));
    const form = new FormData();
    form.set("file", file);
    request.send(form);
  });
}

/** Stores a file in the workspace. When the session has ended, it is sent again after signing in. */
export async function upload(file: File, options: Options = {}): Promise<Stored> {
  const workspace = untrack(() => route.workspace);
  const key = options.idempotencyKey ?? newKey();
  for (let attempt = 0; ; attempt++) {
    const { status, body, headers } = await send(file, await session.token(workspace), { ...options, idempotencyKey: key });
    if (status >= 200 && status < 300) return (body as { data: Stored }).data;
    if (status !== 401 || attempt >= 2) throw new ApiError(status, body, headers);
    session.forget(workspace);
  }
}
