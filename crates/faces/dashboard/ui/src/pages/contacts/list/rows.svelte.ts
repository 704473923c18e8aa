// The rows of a list that only goes forward. Pages that were left are forgotten, and read again by their anchor.

import { api } from "../../../lib/api";
import { isAbort, toApiError, type ApiError } from "../../../lib/errors";
import type { Contact } from "../fields";

export interface Wanted {
  q?: string;
  sort?: string;
  filter_tree?: string;
  segment_id?: number;
  trashed?: boolean;
}
interface Page {
  after: string | undefined;
  count: number;
  rows: Contact[] | undefined;
}

const LIMIT = 100;
/** How many pages have their rows in memory. */
const KEPT = 40;

export class Rows {
  pages = $state.raw<readonly Page[]>([]);
  error = $state.raw<ApiError>();
  isLoading = $state(true);
  isLoadingMore = $state(false);
  /** Grows with every list that is read from its beginning. */
  generation = $state(0);
  #next: string | undefined;
  #round = $state(0);
  #wanted: () => Wanted;
  #control = new AbortController();

  constructor(wanted: () => Wanted) {
    this.#wanted = wanted;
    $effect(() => {
      void this.#round;
      const query = wanted();
      const control = new AbortController();
      this.#control = control;
      this.isLoading = true;
      api.get("/contacts", { query: { ...query, limit: LIMIT }, signal: control.signal }).then(
        (answer) => {
          if (control.signal.aborted) return;
          this.pages = [{ after: undefined, count: answer.data.length, rows: answer.data }];
          this.#next = answer.next_cursor ?? undefined;
          this.error = undefined;
          this.isLoading = false;
          this.generation += 1;
        },
        (error: unknown) => {
          if (control.signal.aborted || isAbort(error)) return;
          this.error = toApiError(error);
          this.isLoading = false;
        },
      );
      return () => control.abort();
    });
  }

  get count(): number {
    return this.pages.reduce((sum, page) => sum + page.count, 0);
  }

  get isWhole(): boolean {
    return this.#next === undefined;
  }

  get loaded(): Contact[] {
    return this.pages.flatMap((page) => page.rows ?? []);
  }

  /** Returns the rows of a part of the list. Those that are not in memory are `undefined`. */
  slice(from: number, to: number): (Contact | undefined)[] {
    const found: (Contact | undefined)[] = [];
    let start = 0;
    for (const page of this.pages) {
      for (let at = Math.max(from, start); at < Math.min(to, start + page.count); at++) found.push(page.rows?.[at - start]);
      start += page.count;
    }
    return found;
  }

  /** Reads what is missing of a part of the list, and the next page where it comes near the end. */
  async reach(from: number, to: number): Promise<void> {
    // What has failed is read again when somebody asks for it.
    if (this.isLoadingMore || this.isLoading || this.error) return;
    let start = 0;
    for (const [at, page] of this.pages.entries()) {
      if (!page.rows && start < to && start + page.count > from) return this.#read(at, page.after);
      start += page.count;
    }
    if (to > start - LIMIT / 2 && this.#next !== undefined) return this.#read(this.pages.length, this.#next);
  }

  async #read(at: number, after: string | undefined): Promise<void> {
    const { signal } = this.#control;
    this.isLoadingMore = true;
    try {
      const answer = await api.get("/contacts", { query: { ...this.#wanted(), limit: LIMIT, ...(after && { starting_after: after }) }, signal });
      if (signal.aborted) return;
      const pages = [...this.pages];
      if (at === pages.length) this.#next = answer.next_cursor ?? undefined;
      pages[at] = { after, count: answer.data.length, rows: answer.data };
      this.pages = pages.map((page, other) => (Math.abs(other - at) > KEPT / 2 ? { ...page, rows: undefined } : page));
      this.error = undefined;
    } catch (error) {
      if (!signal.aborted && !isAbort(error)) this.error = toApiError(error);
    } finally {
      this.isLoadingMore = false;
    }
  }

  reload(): void {
    this.#round += 1;
  }

  /** Shows another state of contacts. They keep their places until the list is read again. */
  replace(changed: readonly Contact[]): void {
    const by = new Map(changed.map((contact) => [contact.id, contact]));
    this.pages = this.pages.map((page) => (page.rows?.some(({ id }) => by.has(id)) ? { ...page, rows: page.rows.map((row) => newer(row, by.get(row.id))) } : page));
  }

  remove(ids: ReadonlySet<number>): void {
    this.pages = this.pages.map((page) => {
      const rows = page.rows?.filter(({ id }) => !ids.has(id));
      return rows ? { ...page, rows, count: rows.length } : page;
    });
  }
}

const newer = (row: Contact, other: Contact | undefined) => (other && other.version >= row.version ? other : row);
