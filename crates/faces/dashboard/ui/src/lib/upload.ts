// Storing files, with how much of them has been sent: `fetch` does not say it.

import { deliver, newKey, refusal, type Data } from "./api";
import { ApiError } from "./errors";
import { root } from "./root";

export type Stored = Data<"/files", "post">;

interface Options {
  /** The key of the upload. Repeated, it stores no second file. */
  idempotencyKey?: string;
  /** Called with the share that has been sent. */
  progress?: (share: number) => void;
}

function send(file: File, token: string, idempotencyKey: string, progress: Options["progress"]): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `${root}/api/v1/files`);
    request.setRequestHeader("authorization", `Bearer ${token}`);
    request.setRequestHeader("accept", "application/json");
    request.setRequestHeader("idempotency-key", idempotencyKey);
    request.upload.onprogress = ({ loaded, total }) => progress?.(total > 0 ? loaded / total : 0);
    request.onload = () => {
      const headers = ["x-request-id", "retry-after"].map((name): [string, string] => [name, request.getResponseHeader(name) ?? ""]);
      // An empty body must be `null`: some statuses allow no other.
      resolve(new Response(request.responseText || null, { status: request.status, headers: headers.filter(([, value]) => value) }));
    };
    request.onerror = () => reject(new ApiError(0, undefined));
    const form = new FormData();
    form.set("file", file);
    request.send(form);
  });
}

/** Stores a file in the workspace. */
export async function upload(file: File, { idempotencyKey = newKey(), progress }: Options = {}): Promise<Stored> {
  const response = await deliver((token) => send(file, token, idempotencyKey, progress));
  if (!response.ok) throw await refusal(response);
  return ((await response.json()) as { data: Stored }).data;
}
