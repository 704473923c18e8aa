// The messages of one conversation: the newest first, older ones on demand, ticks while somebody looks.

import { untrack } from "svelte";
import { api } from "../../../lib/api";
import { type ApiError, isAbort, toApiError } from "../../../lib/errors";
import type { Message } from "../people.svelte";

const LIMIT = 50;
const NEWEST = 30;
/** How often the ticks are read while some of them may still change, and otherwise. */
const BUSY_MS = 2_000;
const CALM_MS = 10_000;
/** A message that was not read by then is looked for calmly. */
const BUSY_FOR_MS = 120_000;
/** How many pages are read to find a message of a search. */
const MOST_PAGES = 20;

/** What of a message can change. The links of files are new in each answer. */
function state(message: Message): string {
  const { updated_at, status, edited_at, deleted_at, error, reactions, attachments, content } = message;
  return JSON.stringify([updated_at, status, edited_at, deleted_at, error, reactions, content, attachments.map((file) => [file.id, file.status, file.transcript_status])]);
}

export class Thread {
  readonly id: number;
  /** Oldest first. */
  messages = $state.raw<readonly Message[]>([]);
  isLoading = $state(true);
  isLoadingOlder = $state(false);
  error = $state.raw<ApiError>();
  olderError = $state.raw<ApiError>();
  older = $state.raw<string>();

  #control = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #ticks = 0;
  #also: () => void;

  /** `also` runs from time to time, while the conversation is visible. */
  constructor(id: number, also: () => void) {
    this.id = id;
    this.#also = also;
    $effect(() => {
      // The first request reads the address, whose changes must not end this thread.
      untrack(() => void this.reload());
      const seen = () => {
        if (!document.hidden) void this.refresh();
      };
      document.addEventListener("visibilitychange", seen);
      return () => {
        document.removeEventListener("visibilitychange", seen);
        clearTimeout(this.#timer);
        this.#control.abort();
      };
    });
  }

  async #page(limit: number, after?: string) {
    const query = { paginate: true, limit, ...(after && { starting_after: after }) };
    const answer = await api.get("/conversations/{conversationId}/messages", { path: { conversationId: this.id }, query, signal: this.#control.signal });
    return { rows: answer.data.toReversed(), next: (answer.has_more && answer.next_cursor) || undefined };
  }

  async reload(): Promise<void> {
    try {
      const { rows, next } = await this.#page(LIMIT);
      this.messages = rows;
      this.older = next;
      this.error = undefined;
    } catch (error) {
      if (isAbort(error)) return;
      this.error = toApiError(error);
    }
    this.isLoading = false;
    this.#plan();
  }

  /** Reads the newest messages again. */
  async refresh(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      const { rows } = await this.#page(NEWEST);
      const known = new Map(this.messages.map((message) => [message.id, message]));
      const first = rows[0];
      // So much is new that there is a gap.
      if (first && rows.length === NEWEST && !rows.some(({ id }) => known.has(id)) && this.messages.length > 0) return await this.reload();
      const changed = rows.filter((row) => !known.has(row.id) || state(row) !== state(known.get(row.id) as Message));
      if (changed.length) {
        for (const row of changed) known.set(row.id, row);
        this.messages = [...known.values()].sort((one, other) => one.id - other.id);
      }
      this.error = undefined;
    } catch (error) {
      if (isAbort(error)) return;
      // What is shown stays; the next attempt follows.
    }
    this.#plan();
  }

  #plan(): void {
    clearTimeout(this.#timer);
    if (this.#control.signal.aborted) return;
    const since = Date.now() - BUSY_FOR_MS;
    const isBusy = this.messages.slice(-NEWEST).some(({ status, created_at }) => (status === "queued" || status === "sending" || status === "sent" || status === "delivered") && Date.parse(created_at) > since);
    this.#timer = setTimeout(() => {
      if (document.hidden) return;
      this.#ticks += 1;
      if (this.#ticks % (isBusy ? 5 : 1) === 0) this.#also();
      void this.refresh();
    }, isBusy ? BUSY_MS : CALM_MS);
  }

  async loadOlder(): Promise<void> {
    const after = this.older;
    if (after === undefined || this.isLoadingOlder) return;
    this.isLoadingOlder = true;
    try {
      const { rows, next } = await this.#page(LIMIT, after);
      this.messages = [...rows, ...this.messages];
      this.older = next;
      this.olderError = undefined;
    } catch (error) {
      if (!isAbort(error)) this.olderError = toApiError(error);
    }
    this.isLoadingOlder = false;
  }

  /** Reads back until a message is there. Returns whether it was found. */
  async reach(message: number): Promise<boolean> {
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      if (this.messages.some(({ id }) => id === message)) return true;
      if (this.older === undefined || this.olderError || (this.messages[0]?.id ?? 0) < message) return false;
      await this.loadOlder();
    }
    return false;
  }
}
