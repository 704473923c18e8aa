// Saving one value of an item, so that nobody's change is lost.

import { api } from "../../../lib/api";
import { toApiError } from "../../../lib/errors";
import { t } from "../../../text";
import type { FieldDef, Item } from "../fields/kinds";
import { isSame } from "../fields/values";
import { historyOf, type History } from "../undo.svelte";

export type SaveResult = { ok: true } | { ok: false; message: string };

/** Somebody else has changed the value that is saved. */
export interface Conflict {
  field: FieldDef;
  /** The item as it is, and as it was when the edit began. */
  current: Item;
  before: Item;
  mine: unknown;
  /** Whether an undo has met the value. It is then refused, and the value stays. */
  isUndo?: boolean;
  choose: (whose: "mine" | "theirs" | undefined) => void;
}

export class Saving {
  conflict = $state.raw<Conflict>();
  #collectionId: number;
  #history: History;
  #saved: (item: Item, field: FieldDef) => void;

  constructor(collectionId: number, saved: (item: Item, field: FieldDef) => void) {
    this.#collectionId = collectionId;
    this.#history = historyOf(collectionId);
    this.#saved = saved;
  }

  #last = new Map<number, Promise<unknown>>();

  /** Saves a value after those of the same item that are on their way. */
  async save(item: Item, field: FieldDef, value: unknown): Promise<SaveResult> {
    const before = this.#last.get(item.id);
    const result = (before ?? Promise.resolve()).then(() => this.#save(item, field, value));
    this.#last.set(item.id, result);
    this.#history.track(result);
    try {
      return await result;
    } finally {
      if (this.#last.get(item.id) === result) this.#last.delete(item.id);
    }
  }

  /** Saves a value for the version that was edited. Changes of other fields in the meantime stay; for the same field a person chooses. */
  async #save(item: Item, field: FieldDef, value: unknown): Promise<SaveResult> {
    const path = { collectionId: this.#collectionId, itemId: item.id };
    let version = item.version;
    let known = item;
    for (;;) {
      try {
        const { data } = await api.patch("/collections/{collectionId}/items/{itemId}", { path, body: { data: { [field.field_key]: value } }, ifMatch: version });
        if (data.version !== version) this.#history.push({ kind: "value", field, changes: [{ item: data, before: known.data[field.field_key] }] });
        this.#saved(data, field);
        return { ok: true };
      } catch (thrown) {
        const error = toApiError(thrown);
        if (error.code !== "version_conflict") return { ok: false, message: error.of(`data.${field.field_key}`) ?? (error.message || error.code) };
      }
      try {
        const { data: current } = await api.get("/collections/{collectionId}/items/{itemId}", { path });
        if (!isSame(current.data[field.field_key], known.data[field.field_key]) && !isSame(current.data[field.field_key], value)) {
          const before = known;
          const whose = await new Promise<"mine" | "theirs" | undefined>((choose) => (this.conflict = { field, current, before, mine: value, choose }));
          this.conflict = undefined;
          if (whose === undefined) return { ok: false, message: t.conflict.title(field.label) };
          if (whose === "theirs") {
            this.#saved(current, field);
            return { ok: true };
          }
        }
        [version, known] = [current.version, current];
      } catch (thrown) {
        return { ok: false, message: toApiError(thrown).message };
      }
    }
  }
}
