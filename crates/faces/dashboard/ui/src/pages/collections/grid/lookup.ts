// The objects that fields can point to, found by their names.

import { api } from "../../../lib/api";
import type { FieldDef } from "../fields/kinds";
import { nameOf, type Named } from "../fields/values";

const LIMIT = 20;

/** Returns what a field can point to. */
export async function find(field: FieldDef, text: string, signal: AbortSignal): Promise<Named[]> {
  const named = (rows: { id: number | string }[], note: (row: never) => string | undefined) =>
    rows.map((row) => ({ key: String(row.id), label: nameOf(row as Record<string, unknown>, row.id), note: note(row as never) }));
  if (field.type === "relation" && field.options.target_collection_id) {
    const path = { collectionId: field.options.target_collection_id };
    const found = text
      ? await api.get("/collections/{collectionId}/items/search", { path, query: { q: text, limit: LIMIT }, signal })
      : await api.get("/collections/{collectionId}/items", { path, query: { limit: LIMIT }, signal });
    return named(found.data, (row: { id: number }) => `#${row.id}`);
  }
  if (field.type === "contact") {
    const { data } = await api.get("/contacts", { query: { limit: LIMIT, ...(text && { q: text }) }, signal });
    return named(data, (row: { id: number }) => `#${row.id}`);
  }
  if (field.type === "user") {
    const { data } = await api.get("/team", { signal });
    return named(data.filter(({ name, email }) => `${name} ${email}`.toLowerCase().includes(text.toLowerCase())).slice(0, LIMIT), (row: { email: string }) => row.email);
  }
  if (field.type === "file") {
    const { data } = await api.get("/media", { query: { limit: LIMIT, ...(text && { q: text }) }, signal });
    return named(data, (row: { mime_type: string }) => row.mime_type);
  }
  return [];
}
