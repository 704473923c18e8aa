// New events of the workspace: one long poll per browser and workspace, which its tabs share. Browsers open six connections
// to a host at most, so a poll per tab would stop the seventh tab.

import { api, type Row } from "./api";
import { toApiError } from "./errors";

export type LiveEvent = Row<"/events">;

const WAIT_SECONDS = 20;
const LONGEST_PAUSE_MS = 30_000;

/** Calls `take` for all new events of a workspace until `signal` is aborted. */
export function follow(workspace: number, take: (events: LiveEvent[]) => void, signal: AbortSignal): void {
  const name = `svc-live-${workspace}`;
  const channel = new BroadcastChannel(name);
  channel.addEventListener("message", ({ data }) => take(data as LiveEvent[]));
  signal.addEventListener("abort", () => channel.close());
  // The tab that has the lock polls for all. It is released when the tab is closed.
  const poll = async () => {
    let [after, pause] = [undefined as number | undefined, 0];
    while (!signal.aborted) {
      try {
        // The first answer only tells where to go on, so it needs no more than one of the newest events.
        const query = { wait_seconds: after === undefined ? 0 : WAIT_SECONDS, limit: after === undefined ? 1 : 100, ...(after !== undefined && { after }) };
        const answer = await api.get("/events/live", { query, signal });
        pause = 0;
        const events = after === undefined ? [] : answer.data;
        after = answer.next_after;
        if (events.length) {
          take(events);
          channel.postMessage(events);
        }
      } catch (error) {
        if (signal.aborted || toApiError(error).isForbidden) return;
        pause = Math.min(LONGEST_PAUSE_MS, pause * 2 + 1000);
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  };
  // Browsers have no locks on plain connections; there every tab polls.
  if (navigator.locks) navigator.locks.request(name, { signal }, poll).catch(() => undefined);
  else void poll();
}
