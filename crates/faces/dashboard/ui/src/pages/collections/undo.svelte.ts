// What was changed on a collection in this tab, and how it is taken back: by an ordinary request for the version that the change left,
// so that nothing is overwritten that somebody else has written since.

import { api } from "../../lib/api";
import { toApiError } from "../../lib/errors";
import { count } from "../../lib/format";
import { route } from "../../lib/route.svelte";
import { t } from "../../text";
import { hasValue, type FieldDef, type Item } from "./fields/kinds";
import { isSame } from "./fields/values";
import { restoreEach, updateMany, type Failure } from "./bulk";
import type { Conflict } from "./grid/saving.svelte";

/** A record as the change left it, and the value of before. */
export interface ValueChange {
  item: Item;
  before: unknown;
}
export type Step = { kind: "value"; field: FieldDef; changes: readonly ValueChange[] } | { kind: "trash"; items: readonly Pick<Item, "id" | "title">[] };

/** What an undo has changed: records with a value of before, or records that are back from the trash. */
export type Undone = { field: FieldDef; items: Item[] } | { field?: undefined; items: readonly Pick<Item, "id" | "title">[] };

export interface Notice {
  text: string;
  isError?: boolean;
  /** Whether an undo has just been made, so that the next one takes back what was before. */
  isUndone?: boolean;
}

const MOST = 20;
const name = (item: Pick<Item, "id" | "title">) => (item.title.length > 60 ? `${item.title.slice(0, 60)}…` : item.title || `#${item.id}`);

export class History {
  steps = $state.raw<readonly Step[]>([]);
  notice = $state.raw<Notice>();
  conflict = $state.raw<Conflict>();
  isBusy = $state(false);
  #collectionId: number;
  #queue: Promise<unknown> = Promise.resolve();
  #pending = new Set<Promise<unknown>>();
  #followers = new Set<(undone: Undone) => void>();

  constructor(collectionId: number) {
    this.#collectionId = collectionId;
  }

  /** Notes a change that can be taken back, and tells of it. */
  push(step: Step): void {
    this.steps = [...this.steps, step].slice(-MOST);
    this.notice = { text: told(step) };
  }

  /** Waits for a change that is on its way before anything is taken back: it may be the one that is meant. */
  track(change: Promise<unknown>): void {
    this.#pending.add(change);
    const end = () => this.#pending.delete(change);
    change.then(end, end);
  }

  /** Calls `take` with what each undo has changed. Returns what ends that. */
  follow(take: (undone: Undone) => void): () => void {
    this.#followers.add(take);
    return () => this.#followers.delete(take);
  }

  /** Takes back the last change, after those that are being taken back. */
  undo(): Promise<unknown> {
    return (this.#queue = this.#queue.then(() => this.#undo()));
  }

  async #undo(): Promise<void> {
    await Promise.allSettled(this.#pending);
    const step = this.steps.at(-1);
    if (!step) return;
    this.isBusy = true;
    try {
      const failed = step.kind === "trash" ? await this.#restore(step.items) : step.changes.length > 1 ? await this.#setMany(step.field, step.changes) : await this.#setOne(step.field, step.changes[0] as ValueChange);
      this.steps = this.steps.filter((one) => one !== step);
      if (typeof failed === "string") this.notice = { text: failed, isError: true };
      else if (failed?.length) this.notice = { text: t.undo.someRefused(count(failed.length), failed.slice(0, 3).map((one) => `${name(one)}: ${one.message}`).join("; ")), isError: true };
      else this.notice = { text: t.undo.done(told(step)), isUndone: true };
    } catch (thrown) {
      // The step stays, so that it can be tried again.
      const error = toApiError(thrown);
      this.notice = { text: t.undo.failed(error.message || (t.errors.titles[error.code] ?? error.code)), isError: true };
    }
    this.isBusy = false;
  }

  #tell(undone: Undone): void {
    if (undone.items.length) for (const take of this.#followers) take(undone);
  }

  // Other fields that were changed in the meantime stay. If it is the same one, what stands there now stays.
  async #setOne(field: FieldDef, { item, before }: ValueChange): Promise<string | undefined> {
    const path = { collectionId: this.#collectionId, itemId: item.id };
    let { version } = item;
    for (;;) {
      try {
        const { data } = await api.patch("/collections/{collectionId}/items/{itemId}", { path, body: { data: { [field.field_key]: before ?? null } }, ifMatch: version });
        this.#tell({ field, items: [data] });
        return undefined;
      } catch (thrown) {
        const error = toApiError(thrown);
        if (error.isTransient) throw error;
        if (error.code !== "version_conflict") return t.undo.refused(field.label, name(item), error.of(`data.${field.field_key}`) ?? (error.message || error.code));
      }
      const { data: current } = await api.get("/collections/{collectionId}/items/{itemId}", { path });
      if (!isSame(current.data[field.field_key], item.data[field.field_key])) {
        await new Promise((choose) => (this.conflict = { field, current, before: item, mine: before, isUndo: true, choose }));
        this.conflict = undefined;
        this.#tell({ field, items: [current] });
        return t.undo.refused(field.label, name(item), t.undo.byOther);
      }
      version = current.version;
    }
  }

  async #setMany(field: FieldDef, changes: readonly ValueChange[]): Promise<Failure[]> {
    const rows = changes.map(({ item, before }) => ({ item, data: { [field.field_key]: before ?? null } }));
    const { changed, failed } = await updateMany(this.#collectionId, rows);
    const before = new Map(changes.map((change) => [change.item.id, change.before]));
    this.#tell({ field, items: changed.map((item) => ({ ...item, data: { ...item.data, [field.field_key]: before.get(item.id) } })) });
    return failed;
  }

  async #restore(items: readonly Pick<Item, "id" | "title">[]): Promise<Failure[]> {
    const failed = await restoreEach(this.#collectionId, items);
    const lost = new Set(failed.map(({ id }) => id));
    this.#tell({ items: items.filter(({ id }) => !lost.has(id)) });
    return failed;
  }
}

/** A change in words. */
function told(step: Step): string {
  if (step.kind === "trash") return step.items.length === 1 ? t.undo.trashed(name(step.items[0] as Item)) : t.undo.trashedMany(count(step.items.length));
  const { field, changes } = step;
  const [first] = changes as [ValueChange];
  if (changes.length > 1) return t.undo.changedMany(field.label, count(changes.length));
  return hasValue(first.item.data[field.field_key]) ? t.undo.changed(field.label, name(first.item)) : t.undo.cleared(field.label, name(first.item));
}

const all = new Map<number, History>();
let workspace = 0;
// What was changed in a workspace is forgotten when the tab leaves it.
$effect.root(() => {
  $effect(() => {
    if (route.workspace !== workspace) all.clear();
    workspace = route.workspace;
  });
});

/** The changes on a collection in this tab. */
export function historyOf(collectionId: number): History {
  const found = all.get(collectionId) ?? new History(collectionId);
  all.set(collectionId, found);
  return found;
}
