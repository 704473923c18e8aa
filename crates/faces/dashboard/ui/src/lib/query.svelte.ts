// Reading and writing with the states that a page shows.

import { ApiError, isAbort, toApiError } from "./errors";
import { newKey } from "./api";

/** Reads again whenever a value changes that `read` uses before its first `await`. Keeps the old data while it reads. */
export class Query<T> {
  data = $state.raw<T>();
  error = $state.raw<ApiError>();
  isLoading = $state(true);
  #round = $state(0);

  constructor(read: (signal: AbortSignal) => Promise<T>) {
    $effect(() => {
      void this.#round;
      const control = new AbortController();
      this.isLoading = true;
      read(control.signal).then(
        (data) => {
          if (control.signal.aborted) return;
          this.data = data;
          this.error = undefined;
          this.isLoading = false;
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

  reload(): void {
    this.#round += 1;
  }
}

/** A page of a list. */
export interface Page<T> {
  rows: T[];
  /** What `read` needs for the next page; `undefined` at the end. */
  next: string | undefined;
  total?: number;
}

/** The answers of lists, whether they count pages or have cursors. */
export interface ListAnswer<T> {
  data: T[];
  pagination?: { page: number; pages: number; limit: number; total: number };
  has_more?: boolean;
  next_cursor?: string | null;
}

/** Returns a page of a list. */
export function pageOf<T>(answer: ListAnswer<T>): Page<T> {
  const { pagination } = answer;
  if (pagination) {
    const next = pagination.page < pagination.pages ? String(pagination.page * pagination.limit) : undefined;
    return { rows: answer.data, next, total: pagination.total };
  }
  return { rows: answer.data, next: (answer.has_more && answer.next_cursor) || undefined };
}

/** A list that grows page by page. */
export class List<T> {
  #first: Query<Page<T>>;
  #more = $state.raw<{ of: Page<T>; rows: T[]; next: string | undefined }>();
  #read: (after: string | undefined, signal: AbortSignal) => Promise<Page<T>>;
  error = $derived.by(() => this.#first.error ?? this.moreError);
  moreError = $state.raw<ApiError>();
  isLoadingMore = $state(false);

  constructor(read: (after: string | undefined, signal: AbortSignal) => Promise<Page<T>>) {
    this.#read = read;
    this.#first = new Query((signal) => read(undefined, signal));
  }

  get rows(): T[] | undefined {
    const first = this.#first.data;
    return first && this.#more?.of === first ? this.#more.rows : first?.rows;
  }

  get total(): number | undefined {
    return this.#first.data?.total;
  }

  get isLoading(): boolean {
    return this.#first.isLoading;
  }

  get next(): string | undefined {
    const first = this.#first.data;
    return first && this.#more?.of === first ? this.#more.next : first?.next;
  }

  reload(): void {
    this.#first.reload();
  }

  async more(): Promise<void> {
    const [of, next] = [this.#first.data, this.next];
    if (!of || next === undefined || this.isLoadingMore) return;
    this.isLoadingMore = true;
    try {
      const page = await this.#read(next, new AbortController().signal);
      this.moreError = undefined;
      if (of === this.#first.data) this.#more = { of, rows: [...(this.rows ?? []), ...page.rows], next: page.next };
    } catch (error) {
      this.moreError = toApiError(error);
    }
    this.isLoadingMore = false;
  }
}

/** A change: whether it is on its way, and why it failed. A repeated attempt after a lost answer has the same key. */
export class Action {
  isBusy = $state(false);
  error = $state.raw<ApiError>();
  #key = newKey();

  /** Runs a change. Returns its result, or `undefined` if it failed. */
  async run<T>(change: (idempotencyKey: string) => Promise<T>): Promise<T | undefined> {
    if (this.isBusy) return undefined;
    this.isBusy = true;
    try {
      const result = await change(this.#key);
      this.error = undefined;
      this.#key = newKey();
      return result;
    } catch (error) {
      this.error = toApiError(error);
      if (!this.error.isTransient) this.#key = newKey();
      return undefined;
    } finally {
      this.isBusy = false;
    }
  }
}
