// Where the lines of Home lead.

import { session } from "../../lib/session.svelte";
import { find, sections, type PageDef } from "../../pages";

/** Returns the first page of these addresses that exists and that the member may open. The address of a section is that of its first page. */
export function pageAt(...paths: string[]): PageDef | undefined {
  const pages = paths.map((path) => find(path)?.page ?? sections.find(({ id }) => id === path)?.pages.find(({ needs }) => session.sees(needs)));
  return pages.find((page) => page !== undefined && session.sees(page.needs));
}
