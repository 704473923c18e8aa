// The objects that a text typed into the search can be the id of. The kinds of ids are many, so this comes when somebody searches.

import { inspectorPath, pagePath, recognize } from "../lib/ids";
import { route } from "../lib/route.svelte";
import { session } from "../lib/session.svelte";
import { t } from "../text";

/** Returns the objects with the page of each: its own, or the inspector. */
export function objectsOf(text: string, hasPage: (path: string) => boolean): { label: string; group: string; href: string }[] {
  return recognize(text)
    .filter(({ kind }) => session.sees(kind.needs))
    .map((target) => ({ label: target.id, group: t.kinds[target.kind.name], href: route.link(pagePath(target, hasPage) ?? inspectorPath(target)) }));
}
