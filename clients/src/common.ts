// What both TypeScript clients need: where the service is, comparisons, and the events of a streamed run.

import assert from "node:assert/strict";

function variable(name: string): string {
  const value = process.env[name];
  assert(value, `${name} is not set`);
  return value;
}

export const url = variable("URL");
export const key = variable("KEY");

/** The demo's collection of products. */
export const products = 1;

/** The body of a response that must be one of success. */
export function success<Body>({ data, error }: { data?: Body; error?: unknown }): Body {
  assert(data !== undefined, JSON.stringify(error));
  return data;
}

/** Calls `attempt` until it gives something other than `undefined`. */
export async function eventually<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < 300; tries += 1) {
    const value = await attempt();
    if (value !== undefined) return value;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("it took more than 30 seconds");
}

export interface ServerSentEvent {
  event: string;
  data: unknown;
}

/** The events of a `text/event-stream`, whose data is JSON. */
export async function serverSentEvents(response: Response): Promise<ServerSentEvent[]> {
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/);
  const events: ServerSentEvent[] = [];
  for (const block of (await response.text()).split("\n\n")) {
    const field = (name: string): string =>
      block
        .split("\n")
        .filter((line) => line.startsWith(`${name}:`))
        .map((line) => line.slice(name.length + 1).trim())
        .join("\n");
    // A block without data is a comment that keeps the connection alive.
    if (field("data")) events.push({ event: field("event"), data: JSON.parse(field("data")) });
  }
  return events;
}

/** Starts a run and reads its events, as a program without a generated client would. */
export async function streamRun(body: object): Promise<ServerSentEvent[]> {
  return serverSentEvents(
    await fetch(`${url}/runs`, {
      method: "POST",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
    }),
  );
}
