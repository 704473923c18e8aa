// The log of requests as the pages of the Workbench read it: filters in the address, pages, and what comes meanwhile.

import { api } from "../../../lib/api";
import { count } from "../../../lib/format";
import { List, type Page } from "../../../lib/query.svelte";
import { route } from "../../../lib/route.svelte";
import { toApiError } from "../../../lib/errors";
import { t } from "../../../text";
import type { Schemas } from "../../../types/api";

export type Logged = Schemas["LoggedRequest"];

export const LOGS = "developers/logs";
const PAGE = 50;
/** A row is written when its request ends, so that of a slow one appears below newer rows. */
const SLOWEST_MS = 60_000;
const PAUSE_MS = 4_000;
const LONGEST_PAUSE_MS = 30_000;
const MOST_FRESH = 500;
/** The filters of the address. `by` is a key, `member-` with the number of a member, or a group of callers. */
export function filters() {
  const value = (name: string) => route.param(name);
  return {
    by: value("by"), operation: value("operation"), result: value("result"), code: value("code"), gate: value("gate"), param: value("param"),
    time: value("time"), from: value("from"), to: value("to"),
  };
}
export type Filters = ReturnType<typeof filters>;

/** The callers of `by`, as the API filters them. */
export function caller(by: string): { key_id?: string; member_id?: number; source?: "program" | "dashboard" } {
  if (by.startsWith("key_")) return { key_id: by };
  if (by.startsWith("member-")) return { member_id: Number(by.slice("member-".length)) };
  if (by === "all") return {};
  return { source: by === "dashboard" ? "dashboard" : "program" };
}

function query({ by, operation, result, code, gate, param, time, from, to }: Filters) {
  const since = /^\d+$/.test(time) ? new Date(Date.now() - Number(time) * 3_600_000).toISOString() : from;
  return {
    ...caller(by),
    ...(operation && { operation }),
    ...(result && { status_class: result as Schemas["StatusClass"] }),
    ...(code && { code }),
    ...(gate && { gate }),
    ...(param && { param }),
    ...(since && { from: since }),
    ...(to && { to }),
  };
}

/** The requests that the address asks for, and those that come while the page is open. */
export class RequestLog {
  list: List<Logged>;
  /** Back to when the search looked; `null` if it got to the end of the log. */
  searchedTo = $state<string | null>(null);
  isPaused = $state(false);
  #fresh = $state.raw<readonly Logged[]>([]);
  #waiting = $state.raw<readonly Logged[]>([]);

  constructor() {
    this.list = new List<Logged>((before, signal) => this.#read(filters(), before, signal));
    $effect(() => {
      const wanted = filters();
      [this.#fresh, this.#waiting] = [[], []];
      if (wanted.to) return undefined;
      const control = new AbortController();
      void this.#follow(wanted, control.signal);
      return () => control.abort();
    });
  }

  get rows(): Logged[] | undefined {
    const read = this.list.rows;
    return read && merged(this.#fresh, read);
  }

  /** The number of requests that came since the pause. */
  get waiting(): number {
    return this.#waiting.length;
  }

  pause(): void {
    this.isPaused = !this.isPaused;
    if (!this.isPaused) [this.#fresh, this.#waiting] = [merged(this.#waiting, this.#fresh).slice(0, MOST_FRESH), []];
  }

  async #read(wanted: Filters, before: string | undefined, signal: AbortSignal): Promise<Page<Logged>> {
    const { data } = await api.get("/dashboard/requests", { query: { ...query(wanted), page_size: PAGE, ...(before && { before }) }, signal });
    this.searchedTo = data.is_complete ? null : data.searched_to;
    return { rows: data.requests, next: data.next_before ?? undefined };
  }

  async #follow(wanted: Filters, signal: AbortSignal): Promise<void> {
    const opened = Date.now();
    let pause = PAUSE_MS;
    while (!signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      if (document.hidden) continue;
      const known = merged(this.#waiting, this.rows ?? []);
      const newest = known[0] ? Date.parse(known[0].created_at) : opened;
      try {
        const { data } = await api.get("/dashboard/requests", { query: { ...query(wanted), from: new Date(newest - SLOWEST_MS).toISOString(), page_size: 100 }, signal });
        pause = PAUSE_MS;
        if (signal.aborted) return;
        const ids = new Set(known.map(({ id }) => id));
        const found = data.requests.filter((row) => !ids.has(row.id));
        if (found.length === 0) continue;
        if (this.isPaused) this.#waiting = merged(found, this.#waiting).slice(0, MOST_FRESH);
        else this.#fresh = merged(found, this.#fresh).slice(0, MOST_FRESH);
      } catch (error) {
        if (signal.aborted || toApiError(error).isForbidden) return;
        pause = Math.min(LONGEST_PAUSE_MS, pause * 2);
      }
    }
  }
}

/** Returns the rows of both, newest first. Ids begin with the time. */
function merged(some: readonly Logged[], others: readonly Logged[]): Logged[] {
  const ids = new Set(some.map(({ id }) => id));
  return [...some, ...others.filter(({ id }) => !ids.has(id))].sort((one, other) => (one.id < other.id ? 1 : -1));
}

/** A time in microseconds as people read it. */
export function duration(micros: number): string {
  if (micros < 10_000) return `${(micros / 1000).toFixed(1)} ms`;
  return micros < 1_000_000 ? `${count(Math.round(micros / 1000))} ms` : `${(micros / 1e6).toFixed(1)} s`;
}

/** The bound below which requests were answered, in milliseconds; `null` is beyond the largest. */
export function bound(ms: number | null): string {
  if (ms === null) return t.overview.over;
  return ms < 1000 ? t.overview.ms(count(ms)) : t.overview.seconds(count(ms / 1000));
}
