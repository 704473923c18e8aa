// The rows that are chosen to be changed together.

import type { Rows } from "./rows.svelte";

/** Rows that can be chosen at once. */
export const MOST_CHOSEN = 5000;

export class Choice<T extends { id: number }> {
  chosen = $state.raw<ReadonlyMap<number, T>>(new Map());
  /** Whether rows of a range are still being read. */
  isReading = $state(false);
  /** Whether all rows were chosen, or as many as can be. */
  isAll = $state(false);
  #rows: Rows<T>;
  #anchor = 0;
  #round = 0;

  constructor(rows: Rows<T>) {
    this.#rows = rows;
  }

  get size(): number {
    return this.chosen.size;
  }

  has(row: T): boolean {
    return this.chosen.has(row.id);
  }

  /** Chooses the row at a place or no longer; with a range, all rows from the last one. */
  toggle(place: number, isRange = false): void {
    const row = this.#rows.at(place);
    if (!row) return;
    if (isRange && this.size > 0) {
      void this.#add(() => this.#rows.between(this.#anchor, place));
      return;
    }
    this.#anchor = place;
    if (this.has(row)) this.keep((id) => id !== row.id);
    else this.chosen = new Map([...this.chosen, [row.id, row]]);
  }

  async all(): Promise<void> {
    if (await this.#add(() => this.#rows.first(MOST_CHOSEN))) this.isAll = true;
  }

  /** Takes a key of the grid: Shift with a movement chooses the rows from where it began. Returns whether it was one of these keys. */
  press(event: KeyboardEvent, place: number, move: (by: number) => number): boolean {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if ((event.ctrlKey || event.metaKey) && event.key === "a") void this.all();
    else if (event.key === "Escape" && this.size > 0) this.clear();
    else if (event.shiftKey && event.key === " ") this.toggle(place);
    else if (event.shiftKey && by !== 0) this.#extend(place, move(by));
    else return false;
    return true;
  }

  clear(): void {
    this.keep(() => false);
  }

  keep(isKept: (id: number) => boolean): void {
    this.#round += 1;
    this.isReading = false;
    this.isAll = false;
    this.chosen = new Map([...this.chosen].filter(([id]) => isKept(id)));
  }

  /** Takes rows as they are now. */
  update(rows: readonly T[]): void {
    const now = new Map(rows.map((row) => [row.id, row]));
    this.chosen = new Map([...this.chosen].map(([id, row]) => [id, now.get(id) ?? row]));
  }

  #extend(from: number, to: number): void {
    if (this.size === 0) this.#anchor = from;
    void this.#add(() => this.#rows.between(this.#anchor, to));
  }

  async #add(read: () => Promise<T[]>): Promise<boolean> {
    const round = (this.#round += 1);
    this.isReading = true;
    const rows = await read().catch(() => undefined);
    if (round !== this.#round) return false;
    this.isReading = false;
    if (rows) this.chosen = new Map([...this.chosen, ...rows.map((row): [number, T] => [row.id, row])].slice(0, MOST_CHOSEN));
    return rows !== undefined;
  }
}
