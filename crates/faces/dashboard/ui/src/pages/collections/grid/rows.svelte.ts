// The rows of a list of any length that can only be read forward from an anchor: pages of 100, the anchor of each page seen,
// and the rows of a few pages around those that are looked at.

import { untrack } from "svelte";
import { isAbort, toApiError, type ApiError } from "../../../lib/errors";

/** The end of the list that pages are counted from. */
export type Side = "start" | "end";

export interface RowPage<T> {
  /** From the end, the last row is the first. */
  rows: T[];
  /** The anchor of the next page; `undefined` if there is none. */
  next: string | undefined;
}

/** Reads the page after an anchor. All pages but the last have `PAGE` rows. */
export type Reader<T> = (side: Side, after: string | undefined, signal: AbortSignal) => Promise<RowPage<T>>;

export const PAGE = 100;
/** Pages whose rows are kept. */
const KEPT = 40;
/** Rows that are read before they are looked at. */
const AHEAD = 50;
const AT_ONCE = 2;

export class Rows<T> {
  /** Rises when a row changes. */
  revision = $state(0);
  /** The rows that have a place: those of all pages that were read, if kept or not. */
  reached = $state(0);
  /** Whether the other end was reached. */
  isComplete = $state(false);
  isLoading = $state(true);
  side = $state<Side>("start");
  error = $state.raw<ApiError>();
  /** Rises when the list begins again. */
  generation = $state(0);

  #round = $state(0);
  #read: Reader<T> = () => Promise.reject(new Error("not started"));
  #control = new AbortController();
  #pages = new Map<number, T[]>();
  #anchors: (string | undefined)[] = [undefined];
  #wanted: number[] = [0];
  #reading = new Set<number>();
  #stale = new Set<number>();

  /** `reader` runs again whenever a value changes that it uses; the list then begins again. */
  constructor(reader: () => Reader<T>) {
    $effect(() => {
      void this.#round;
      this.#read = reader();
      untrack(() => this.#begin("start"));
      return () => this.#control.abort();
    });
  }

  reload(): void {
    this.#round += 1;
  }

  /** Reads from the other end. */
  turn(side: Side): void {
    this.#begin(side);
  }

  /** Returns the row at a place, counted from the first that is reached. */
  at(place: number): T | undefined {
    void this.revision;
    const index = this.#index(place);
    return this.#pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  /** Tells which places are looked at. */
  want(from: number, to: number): void {
    const [low, high] = [this.#index(from), this.#index(to)].sort((one, other) => one - other) as [number, number];
    const first = Math.max(0, Math.floor(low / PAGE));
    const last = Math.min(Math.floor((high + AHEAD) / PAGE), this.#anchors.length - 1);
    this.#wanted = Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);
    this.#pump();
  }

  /** Returns the rows between two places, those of other pages too. */
  between(from: number, to: number): Promise<T[]> {
    const [low, high] = [this.#index(from), this.#index(to)].sort((one, other) => one - other) as [number, number];
    return this.#slice(low, high + 1);
  }

  /** Returns the first rows of the whole list. */
  first(most: number): Promise<T[]> {
    return this.#slice(0, most);
  }

  async #slice(low: number, high: number): Promise<T[]> {
    const { signal } = this.#control;
    const found: T[] = [];
    const begin = Math.floor(low / PAGE);
    let anchor = this.#anchors[begin];
    for (let page = begin; page * PAGE < high; page++) {
      const kept = this.#stale.has(page) ? undefined : this.#pages.get(page);
      const { rows, next } = kept ? { rows: kept, next: this.#anchors[page + 1] } : await this.#read(this.side, anchor, signal);
      found.push(...rows.slice(Math.max(0, low - page * PAGE), high - page * PAGE));
      if (next === undefined) break;
      anchor = next;
    }
    return found;
  }

  /** The rows that are kept. */
  get kept(): T[] {
    return [...this.#pages.values()].flat();
  }

  /** Changes the rows that are kept. */
  update(change: (row: T) => T | undefined): void {
    for (const rows of this.#pages.values()) {
      rows.forEach((row, at) => (rows[at] = change(row) ?? row));
    }
    this.revision += 1;
  }

  /** Reads again what is looked at, because rows came, went or moved. The places of the rows stay about the same. */
  refresh(): void {
    if (this.reached === 0) return this.reload();
    for (const page of [...this.#pages.keys(), ...this.#wanted]) this.#stale.add(page);
    this.#pump();
  }

  #index(place: number): number {
    return this.side === "start" ? place : this.reached - 1 - place;
  }

  // The rows of before stay until the first page of the new list is there.
  #begin(side: Side): void {
    this.#control.abort();
    const control = (this.#control = new AbortController());
    this.isLoading = true;
    this.#reading.clear();
    this.#reading.add(0);
    this.#read(side, undefined, control.signal).then(
      (page) => {
        if (control.signal.aborted) return;
        this.#pages.clear();
        this.#stale.clear();
        this.#anchors = [undefined];
        this.side = side;
        this.generation += 1;
        this.isLoading = false;
        this.isComplete = false;
        this.#take(0, page);
      },
      (error: unknown) => {
        if (control.signal.aborted || isAbort(error)) return;
        this.#reading.clear();
        this.isLoading = false;
        this.error = toApiError(error);
      },
    );
  }

  #pump(): void {
    while (this.#reading.size < AT_ONCE) {
      const page = this.#wanted.find((one) => (!this.#pages.has(one) || this.#stale.has(one)) && !this.#reading.has(one));
      if (page === undefined || page >= this.#anchors.length || (this.isComplete && page * PAGE >= this.reached)) return;
      const { signal } = this.#control;
      this.#reading.add(page);
      this.#read(this.side, this.#anchors[page], signal).then(
        (found) => !signal.aborted && this.#take(page, found),
        (error: unknown) => {
          if (signal.aborted || isAbort(error)) return;
          this.#reading.delete(page);
          this.error = toApiError(error);
        },
      );
    }
  }

  #take(page: number, { rows, next }: RowPage<T>): void {
    this.error = undefined;
    this.#reading.delete(page);
    this.#pages.set(page, rows);
    const isStale = this.#stale.delete(page);
    const isLast = page >= this.#anchors.length - 1;
    if (isLast || next === undefined) {
      this.#anchors.length = page + 1;
      this.reached = page * PAGE + rows.length;
      this.isComplete = next === undefined;
      if (next !== undefined) this.#anchors.push(next);
    } else if (isStale && this.#anchors[page + 1] !== next) {
      // The page ends elsewhere than before, so the next one begins elsewhere.
      this.#anchors[page + 1] = next;
      this.#stale.add(page + 1);
    }
    this.#evict();
    this.revision += 1;
    this.#pump();
  }

  #evict(): void {
    const middle = this.#wanted[Math.floor(this.#wanted.length / 2)] ?? 0;
    const far = [...this.#pages.keys()].sort((one, other) => Math.abs(one - middle) - Math.abs(other - middle));
    for (const page of far.slice(KEPT)) this.#pages.delete(page);
  }
}
