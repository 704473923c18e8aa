// What the address says of the list: search, filter, order, segment and columns.

import { route } from "../../../lib/route.svelte";
import { defaultColumns, type FieldDef } from "../fields";
import { parseTree, type Tree } from "./filters";
import type { Wanted } from "./rows.svelte";

class View {
  // The list to which Back leads, and the columns until others are chosen.
  #search: string | undefined;
  #columns = new Map<number, string>();

  /** Whether the list is shown, and not one contact. */
  get isHere(): boolean {
    return route.path === "contacts";
  }
  get tree(): Tree | undefined {
    return parseTree(route.param("filter"));
  }
  get sort(): string {
    return route.param("sort");
  }
  get segment(): number | undefined {
    return Number(route.param("segment")) || undefined;
  }
  get isTrash(): boolean {
    return route.param("trash") !== "";
  }
  get q(): string {
    return route.param("q");
  }
  get isFiltered(): boolean {
    return this.q !== "" || this.tree !== undefined || this.segment !== undefined || this.isTrash;
  }
  get wanted(): Wanted {
    const { tree } = this;
    return {
      ...(this.q && { q: this.q }),
      ...(this.sort && { sort: this.sort }),
      ...(tree && { filter_tree: JSON.stringify(tree) }),
      ...(this.segment && { segment_id: this.segment }),
      ...(this.isTrash && { trashed: true }),
    };
  }
  /** The filters of the list that was shown last. */
  get search(): string {
    if (this.isHere) this.#search = route.search;
    return this.#search ?? "";
  }

  columns(fields: readonly FieldDef[]): string[] {
    const text = route.param("columns") || this.#columns.get(route.workspace) || "";
    const known = text.split(",").filter((key) => fields.some((field) => field.key === key));
    return known.length ? known : defaultColumns(fields);
  }
  setColumns(columns: readonly string[] | undefined): void {
    const text = columns?.join(",") ?? "";
    this.#columns.set(route.workspace, text);
    route.set({ columns: text });
  }
}

export const view = new View();
