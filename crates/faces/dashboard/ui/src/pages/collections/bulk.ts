// Changes of many records: few requests, and a result for each record.

import { api } from "../../lib/api";
import { toApiError, type ApiError } from "../../lib/errors";
import { t } from "../../text";
import type { Schemas } from "../../types/api";
import type { Item } from "./fields/kinds";

/** A record that was not changed, and why. */
export interface Failure {
  id: number;
  title: string;
  message: string;
}
type Named = Pick<Item, "id" | "title">;
type Progress = (done: number) => void;

/** Requests take up to 1,000 records; smaller ones show how far it is. */
const AT_ONCE = 200;
/** Records that an undo brings back from the trash, because each of them is a request. */
export const MOST_RESTORED = 200;
/** Records that are read at once. */
const READ_AT_ONCE = 100;
/** Records that are restored at the same time. Each is a request. */
const RESTORED_AT_ONCE = 4;
const LONGEST_WAIT_S = 70;

const wait = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

/** Sends a request again if there were too many in this minute. */
async function patiently<T>(send: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await send();
    } catch (thrown) {
      const error = toApiError(thrown);
      if (error.code !== "rate_limited" || tries > 3) throw error;
      await wait(Math.min(LONGEST_WAIT_S, error.retryAfter ?? 5));
    }
  }
}

const because = (error: ApiError) => error.message || (t.errors.titles[error.code] ?? error.code);
function reason(error: Schemas["BulkResult"]["error"]): string {
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  if (code === "version_conflict") return t.undo.byOther;
  // The place in the request says nothing to people: they see the record and the field.
  const text = (message ?? code ?? "").replace(/^`rows\[\d+\](\.[\w.]+)?` /, "");
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Runs a bulk request for each part of the records. A part that is refused as a whole fails with all of its records. */
async function inParts<T extends Named>(rows: readonly T[], send: (part: T[]) => Promise<{ data: Schemas["BulkReport"] }>, progress: Progress | undefined) {
  const done: { row: T; status: Schemas["BulkStatus"] }[] = [];
  const failed: Failure[] = [];
  for (let from = 0; from < rows.length; from += AT_ONCE) {
    const part = rows.slice(from, from + AT_ONCE);
    try {
      const { data } = await patiently(() => send(part));
      for (const result of data.results) {
        const row = part[result.index];
        if (!row) continue;
        if (result.status === "error") failed.push({ id: row.id, title: row.title, message: reason(result.error) });
        else done.push({ row, status: result.status });
      }
    } catch (thrown) {
      const message = because(toApiError(thrown));
      failed.push(...part.map(({ id, title }) => ({ id, title, message })));
    }
    progress?.(Math.min(rows.length, from + AT_ONCE));
  }
  return { done, failed };
}

/** Reads a field of records as it is now, with their versions. */
export async function readMany(collectionId: number, rows: readonly Named[], fieldKey: string): Promise<{ found: Item[]; failed: Failure[] }> {
  const found: Item[] = [];
  const failed: Failure[] = [];
  for (let from = 0; from < rows.length; from += READ_AT_ONCE) {
    const part = rows.slice(from, from + READ_AT_ONCE);
    const query = { filter_tree: JSON.stringify({ field: "id", op: "in", value: part.map(({ id }) => id) }), fields: fieldKey, limit: READ_AT_ONCE };
    try {
      const { data } = await patiently(() => api.get("/collections/{collectionId}/items", { path: { collectionId }, query }));
      found.push(...data);
      failed.push(...part.filter(({ id }) => !data.some((item) => item.id === id)).map(({ id, title }) => ({ id, title, message: t.bulk.isGone })));
    } catch (thrown) {
      const message = because(toApiError(thrown));
      failed.push(...part.map(({ id, title }) => ({ id, title, message })));
    }
  }
  return { found, failed };
}

/** A change of a record, for the version that is known. */
export interface Change {
  item: Item;
  data: Record<string, unknown>;
}

/** Changes records, each for its version. The records that were changed have their new version. */
export async function updateMany(collectionId: number, changes: readonly Change[], progress?: Progress): Promise<{ changed: Item[]; unchanged: Item[]; failed: Failure[] }> {
  const rows = changes.map((change) => ({ ...change, id: change.item.id, title: change.item.title }));
  const send = (part: typeof rows) =>
    api.post("/collections/{collectionId}/items/bulk-update", { path: { collectionId }, body: { mode: "partial", rows: part.map(({ id, item, data }) => ({ id, version: item.version, data })) } });
  const { done, failed } = await inParts(rows, send, progress);
  const of = (isChanged: boolean) => done.filter(({ status }) => (status === "updated") === isChanged);
  return {
    changed: of(true).map(({ row: { item, data } }) => ({ ...item, version: item.version + 1, data: { ...item.data, ...data } })),
    unchanged: of(false).map(({ row }) => row.item),
    failed,
  };
}

/** Moves records to the trash. Returns those that are there. */
export async function trashMany<T extends Named>(collectionId: number, rows: readonly T[], progress?: Progress): Promise<{ trashed: T[]; failed: Failure[] }> {
  const send = (part: T[]) => api.post("/collections/{collectionId}/items/bulk-delete", { path: { collectionId }, body: { mode: "partial", ids: part.map(({ id }) => id) } });
  const { done, failed } = await inParts(rows, send, progress);
  return { trashed: done.map(({ row }) => row), failed };
}

/** Brings records back from the trash: a request each. */
export async function restoreEach(collectionId: number, rows: readonly Named[], progress?: Progress): Promise<Failure[]> {
  const left = [...rows];
  const failed: Failure[] = [];
  const work = async () => {
    for (let row = left.shift(); row; row = left.shift()) {
      const { id, title } = row;
      try {
        await patiently(() => api.post("/collections/{collectionId}/items/{itemId}/restore", { path: { collectionId, itemId: id } }));
      } catch (thrown) {
        failed.push({ id, title, message: because(toApiError(thrown)) });
      }
      progress?.(rows.length - left.length);
    }
  };
  await Promise.all(Array.from({ length: RESTORED_AT_ONCE }, work));
  return failed;
}
