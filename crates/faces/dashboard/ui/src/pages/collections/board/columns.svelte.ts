// The columns of a board: each reads its own pages.

import { isAbort, toApiError, type ApiError } from "../../../lib/errors";
import type { Item } from "../fields/kinds";
import type { Named } from "../fields/values";

export const PER_COLUMN = 25;

export interface ColumnPage {
  rows: Item[];
  next: string | undefined;
  total?: number;
}

export class Column {
  items = $state.raw<Item[]>([]);
  total = $state<number>();
  next = $state<string>();
  isLoading = $state(true);
  error = $state.raw<ApiError>();
  /** The choice; without a key, the records without a value. */
  readonly choice: Named;
  #read: (after: string | undefined, signal: AbortSignal) => Promise<ColumnPage>;
  #signal = new AbortController().signal;

  constructor(choice: Named, read: (after: string | undefined, signal: AbortSignal) => Promise<ColumnPage>) {
    this.choice = choice;
    this.#read = read;
  }

  /** Reads the first page. */
  begin(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    return this.#take(undefined);
  }

  more(): void {
    if (!this.isLoading && this.next !== undefined) void this.#take(this.next);
  }

  retry(): void {
    void this.#take(this.next);
  }

  has(id: number): boolean {
    return this.items.some((item) => item.id === id);
  }

  /** Places an item, at the top unless it is there already or a place is given. */
  put(item: Item, place = 0): void {
    if (this.has(item.id)) this.items = this.items.map((one) => (one.id === item.id ? item : one));
    else {
      this.items = this.items.toSpliced(place, 0, item);
      if (this.total !== undefined) this.total += 1;
    }
  }

  /** Takes an item away. Returns the place where it was. */
  remove(id: number): number {
    const place = this.items.findIndex((item) => item.id === id);
    if (place < 0) return place;
    this.items = this.items.toSpliced(place, 1);
    if (this.total !== undefined) this.total -= 1;
    return place;
  }

  async #take(after: string | undefined): Promise<void> {
    const signal = this.#signal;
    this.isLoading = true;
    try {
      const page = await this.#read(after, signal);
      if (signal.aborted) return;
      // A card that was moved here stands at the top already.
      this.items = [...(after === undefined ? [] : this.items), ...page.rows.filter(({ id }) => after === undefined || !this.has(id))];
      this.next = page.next;
      if (page.total !== undefined) this.total = page.total;
      this.error = undefined;
    } catch (error) {
      if (signal.aborted || isAbort(error)) return;
      this.error = toApiError(error);
    }
    this.isLoading = false;
  }
}
