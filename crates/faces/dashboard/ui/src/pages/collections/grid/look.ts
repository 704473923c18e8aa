// What of a collection is shown: filter, order, columns and search, as they stand in the address, and how they are asked for.

import { api } from "../../../lib/api";
import { session } from "../../../lib/session.svelte";
import type { Schemas } from "../../../types/api";
import { isText, kinds, resultOf, scopes, type FieldDef, type Item } from "../fields/kinds";
import { PAGE, type Reader } from "./rows.svelte";

export type FilterTree = Schemas["FilterTree"];
export type View = Schemas["CollectionView"];

/** How records are shown. Views of other types are shown as a grid. */
export type Kind = "grid" | "board" | "calendar";

export interface Look {
  kind: Kind;
  /** The key of the field that makes the columns of a board, or puts records on days; the first one that can without it. */
  by: string;
  filter: FilterTree | null;
  sort: string[];
  /** The keys of the visible fields; all without it. */
  columns: string[] | undefined;
  search: string;
}

/** What the address says, else the view. A dash stands for nothing where the view has something. */
export function lookOf(param: (name: string) => string, view: View | undefined): Look {
  const text = (name: string, saved: string) => (param(name) === "-" ? "" : param(name) || saved);
  const kind = param("look") || view?.type;
  const filter = text("filter", view?.filter_tree ? JSON.stringify(view.filter_tree) : "");
  const columns = text("columns", view?.visible_fields?.join(",") ?? "");
  return {
    kind: kind === "board" || kind === "calendar" ? kind : "grid",
    by: param("by") || (view?.group_by[0] ?? ""),
    filter: parse(filter),
    sort: text("sort", view?.sort.join(",") ?? "").split(",").filter(Boolean),
    columns: columns ? columns.split(",") : undefined,
    search: text("q", view?.search ?? ""),
  };
}

function parse(text: string): FilterTree | null {
  try {
    const tree: unknown = text ? JSON.parse(text) : null;
    return typeof tree === "object" ? (tree as FilterTree | null) : null;
  } catch {
    return null;
  }
}

/** The parameters of the address that say a look, as far as it differs from the view. */
export function paramsOf(look: Look, view: View | undefined): Record<string, string> {
  const said = (value: string, saved: string) => (value === saved ? "" : value || "-");
  const { kind, by } = lookOf(() => "", view);
  return {
    look: look.kind === kind ? "" : look.kind,
    by: look.by === by ? "" : look.by,
    filter: said(look.filter ? JSON.stringify(look.filter) : "", view?.filter_tree ? JSON.stringify(view.filter_tree) : ""),
    sort: said(look.sort.join(","), view?.sort.join(",") ?? ""),
    columns: said(look.columns?.join(",") ?? "", view?.visible_fields?.join(",") ?? ""),
    q: said(look.search, view?.search ?? ""),
  };
}

/** Fields whose objects are read along, so that their names can be shown. */
export function expandOf(fields: FieldDef[]): string {
  return fields.filter(({ type }) => type in scopes && session.can(scopes[type])).slice(0, 10).map(({ field_key }) => field_key).join(",");
}

/** The parameters of a request for what a look shows. */
export function queryOf(look: Look, fields: FieldDef[]) {
  const expand = expandOf(fields);
  return {
    ...(look.filter && { filter_tree: JSON.stringify(look.filter) }),
    ...(look.sort.length && { sort: look.sort.join(",") }),
    ...(fields.length && { fields: fields.map(({ field_key }) => field_key).join(",") }),
    ...(expand && { expand }),
  };
}

export const both = (one: FilterTree | null, other: FilterTree): FilterTree => (one ? { and: [one, other] } : other);
const turned = (sort: string[]) => sort.map((key) => (key.startsWith("-") ? key.slice(1) : `-${key}`));

/** The parts of a list from its end. Items without a value are last in both directions of an order, so they come first here. */
function fromEnd(look: Look, fields: FieldDef[]): { filter: FilterTree | null; sort: string[] }[] {
  const [first, ...rest] = look.sort;
  if (first === undefined) return [{ filter: look.filter, sort: ["id"] }];
  const key = first.replace(/^-/, "");
  const field = fields.find(({ field_key }) => field_key === key);
  if (!field || field.required || kinds[field.type].control === undefined && !field.computed) return [{ filter: look.filter, sort: turned(look.sort) }];
  // An empty text is a value in the order, and not in a filter for no value.
  const has: FilterTree = isText(resultOf(field)) ? { field: key, op: "gte", value: "" } : { field: key, op: "neq", value: null };
  return [
    { filter: both(look.filter, { not: has }), sort: rest.length ? turned(rest) : [first.startsWith("-") ? "id" : "-id"] },
    { filter: both(look.filter, has), sort: turned(look.sort) },
  ];
}

/** Reads the pages of what a look shows. `counted` gets the number of matches of a search. */
export function readerOf(collectionId: number, look: Look, fields: FieldDef[], all: FieldDef[], counted: (total: number, isExact: boolean) => void): Reader<Item> {
  const path = { collectionId };
  const query = queryOf(look, fields);
  if (look.search) {
    let pages = 0;
    return async (side, after, signal) => {
      if (side === "end" && !pages) pages = (await api.get("/collections/{collectionId}/items/search", { path, query: { q: look.search, limit: PAGE, page: 1, ...query }, signal })).pagination.pages;
      const page = side === "start" ? Number(after ?? 1) : Number(after ?? pages);
      const answer = await api.get("/collections/{collectionId}/items/search", { path, query: { q: look.search, limit: PAGE, page, ...query }, signal });
      pages = answer.pagination.pages;
      counted(answer.pagination.total, answer.total_is_exact);
      if (side === "start") return { rows: answer.data, next: page < pages ? String(page + 1) : undefined };
      return { rows: answer.data.toReversed(), next: page > 1 ? String(page - 1) : undefined };
    };
  }
  const parts = fromEnd(look, all);
  const list = (part: { filter: FilterTree | null; sort: string[] }, limit: number, after: string, signal: AbortSignal) =>
    api.get("/collections/{collectionId}/items", { path, query: { ...query, ...(part.filter && { filter_tree: JSON.stringify(part.filter) }), ...(part.sort.length && { sort: part.sort.join(",") }), limit, ...(after && { starting_after: after }) }, signal });
  return async (side, after = "", signal) => {
    if (side === "start") {
      const answer = await list(look, PAGE, after, signal);
      return { rows: answer.data, next: (answer.has_more && answer.next_cursor) || undefined };
    }
    const rows: Item[] = [];
    let [part, cursor] = after ? [Number(after.slice(0, 1)), after.slice(2)] : [0, ""];
    while (rows.length < PAGE && parts[part]) {
      const answer = await list(parts[part] as (typeof parts)[number], PAGE - rows.length, cursor, signal);
      rows.push(...answer.data);
      cursor = (answer.has_more && answer.next_cursor) || "";
      if (!cursor) part += 1;
    }
    return { rows, next: parts[part] ? `${part}:${cursor}` : undefined };
  };
}

/** Reads a page of the items of a look that meet another condition too. A search counts them. */
export async function pageWhere(collectionId: number, look: Look, fields: FieldDef[], where: FilterTree, limit: number, after: string | undefined, signal: AbortSignal): Promise<{ rows: Item[]; next: string | undefined; total?: number }> {
  const path = { collectionId };
  const query = { ...queryOf(look, fields), filter_tree: JSON.stringify(both(look.filter, where)), limit };
  if (look.search) {
    const page = Number(after ?? 1);
    const answer = await api.get("/collections/{collectionId}/items/search", { path, query: { ...query, q: look.search, page }, signal });
    return { rows: answer.data, next: page < answer.pagination.pages ? String(page + 1) : undefined, total: answer.pagination.total };
  }
  const answer = await api.get("/collections/{collectionId}/items", { path, query: { ...query, ...(after && { starting_after: after }) }, signal });
  return { rows: answer.data, next: (answer.has_more && answer.next_cursor) || undefined };
}

/** Counts the items of a look by the values of a field. Returns nothing for a search, which cannot be counted so. */
export async function countsBy(collectionId: number, look: Look, by: string, where: FilterTree | null, signal: AbortSignal): Promise<Map<string | null, number> | undefined> {
  if (look.search) return undefined;
  const filter = where ? both(look.filter, where) : look.filter;
  const query = { metrics: "count", group_by: by, ...(filter && { filter_tree: JSON.stringify(filter) }) };
  const { data } = await api.get("/collections/{collectionId}/items/aggregate", { path: { collectionId }, query, signal });
  return new Map(data.groups.map(({ group, values }) => [group[by] === null || group[by] === undefined ? null : String(group[by]), Number(values["count"])]));
}

/** Tells whether an item is still among what a look shows. */
export async function fits(collectionId: number, look: Look, id: number): Promise<boolean> {
  if (!look.filter) return true;
  const query = { filter_tree: JSON.stringify(both(look.filter, { field: "id", op: "eq", value: id })), limit: 1 };
  return (await api.get("/collections/{collectionId}/items", { path: { collectionId }, query })).data.length > 0;
}

/** The request of what is shown, for a shell. */
export function curlOf(collectionId: number, look: Look, fields: FieldDef[], isAll: boolean): string {
  const { fields: names, ...rest } = queryOf(look, fields);
  const parameters: Record<string, string> = { ...(look.search && { q: look.search }), ...rest, ...(!isAll && names && { fields: names }), limit: "100" };
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  const lines = Object.entries(parameters).map(([name, value]) => `  --data-urlencode ${quoted(`${name}=${value}`)}`);
  const address = `${location.origin}/api/v1/collections/${collectionId}/items${look.search ? "/search" : ""}`;
  return [`curl -s -G ${quoted(address)}`, `  -H "Authorization: Bearer $API_KEY"`, ...lines].join(" \\\n");
}
