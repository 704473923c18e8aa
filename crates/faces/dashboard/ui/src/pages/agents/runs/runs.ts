// Reading runs, and answering their approval requests.

import { api, type Data } from "../../../lib/api";
import { ApiError } from "../../../lib/errors";
import { count } from "../../../lib/format";
import { root } from "../../../lib/root";
import { t } from "../../../text";
import type { Schemas } from "../../../types/api";

export type Run = Data<"/runs/{runId}">;
export type Step = Schemas["RunStep"];

const OPEN: readonly Run["status"][] = ["queued", "in_progress", "requires_action"];

/** Whether a run goes on, or may. */
export const isOpen = (run: Run): boolean => OPEN.includes(run.status);

/** Reads a run with its steps. */
export async function readRun(id: string, signal?: AbortSignal): Promise<Run> {
  const answer = await api.get("/runs/{runId}", { path: { runId: id }, query: { include: ["steps"] }, ...(signal && { signal }) });
  return answer.data;
}

/** Reads a run again and again until it has ended, and calls `take` with each state. */
export async function followRun(id: string, take: (run: Run) => void, signal: AbortSignal, everyMs = 1000): Promise<void> {
  for (;;) {
    const run = await readRun(id, signal);
    if (signal.aborted) return;
    take(run);
    if (!isOpen(run)) return;
    await new Promise((resolve) => setTimeout(resolve, document.hidden ? 5 * everyMs : everyMs));
    if (signal.aborted) return;
  }
}

/** What became of an approval request, call by call. */
export interface Decided {
  object: "approval";
  decision: "approved" | "refused";
  calls: { step_id: string; tool: string; decision: "approved" | "refused" }[];
}

function isDecided(data: unknown): data is Decided {
  const of = data as Partial<Decided> | undefined;
  return of?.object === "approval" && Array.isArray(of.calls);
}

/** Answers an approval request, and returns what the service has recorded. The link is the permission, so the request carries no token. */
export async function decide(url: string, body: { decision: "approve" | "deny"; calls?: string[]; note?: string }): Promise<Decided> {
  // The link has the address that the service is known by; the answer goes to the address of this page.
  const { pathname } = new URL(url);
  let response: Response;
  try {
    response = await fetch(root + pathname.slice(pathname.indexOf("/approvals/")), {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify(body),
      credentials: "omit",
      cache: "no-store",
    });
  } catch {
    throw new ApiError(0, undefined);
  }
  const answer: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw new ApiError(response.status, answer, response.headers);
  // A page of something between here and the service may come with 200; only the recorded decision is a success.
  const data = (answer as { data?: unknown } | undefined)?.data;
  if (!isDecided(data)) throw new ApiError(0, { error: { code: "unexpected_answer", message: t.approval.unclear } });
  return data;
}

/** A duration as people read it. */
export function duration(ms: number): string {
  if (ms < 1000) return t.runs.ms(count(Math.round(ms)));
  if (ms < 60_000) return t.runs.s((ms / 1000).toFixed(1));
  return t.runs.min(Math.floor(ms / 60_000), Math.round((ms % 60_000) / 1000));
}

/** How long something took; `undefined` while it goes on. */
export function took(from: string | null, to: string | null): string | undefined {
  return from !== null && to !== null ? duration(Date.parse(to) - Date.parse(from)) : undefined;
}

/** The Energy of a run. In the test environment nothing is spent, and what it would have been is told. */
export function spent(run: Run): string {
  return run.livemode || run.energy.simulated === 0 ? count(run.energy.amount) : t.runs.simulated(count(run.energy.simulated));
}
