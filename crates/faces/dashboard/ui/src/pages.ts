// The pages of the dashboard: the rail, the tabs of a section, the palette and the shortcuts come from this table. A page
// that does not exist is in none of them.

import type { Component } from "svelte";
import { t } from "./text";

export interface PageDef {
  /** The address below the workspace. All addresses below it are the page's own. */
  path: string;
  label: string;
  /** The scope or permission of the operation that the page lives from. Members without it do not see the page. */
  needs?: string;
  load: () => Promise<{ default: Component }>;
}

export interface Section {
  id: string;
  label: string;
  /** The path of a drawing of 24 × 24. */
  icon: string;
  /** The second key after `g`. */
  key: string;
  pages: readonly PageDef[];
}

export const sections: readonly Section[] = [
  {
    id: "home",
    label: t.pages.home,
    icon: "M4 11 12 4l8 7v9h-5v-6H9v6H4z",
    key: "h",
    pages: [{ path: "", label: t.pages.home, load: () => import("./pages/home/Home.svelte") }],
  },
  {
    id: "developers",
    label: t.pages.developers,
    icon: "m8 7-5 5 5 5m8-10 5 5-5 5M14 4l-4 16",
    key: "d",
    pages: [
      { path: "developers/events", label: t.pages.events, needs: "events:read", load: () => import("./pages/developers/Events.svelte") },
      { path: "developers/webhooks", label: t.pages.webhooks, needs: "webhooks:manage", load: () => import("./pages/developers/Webhooks.svelte") },
      { path: "developers/usage", label: t.pages.usage, needs: "billing:read", load: () => import("./pages/developers/Usage.svelte") },
    ],
  },
  {
    id: "settings",
    label: t.pages.settings,
    icon: "M4 7h10m4 0h2M4 12h2m4 0h10M4 17h8m4 0h4M14 5v4M8 10v4m6 1v4",
    key: "s",
    pages: [
      { path: "settings/business", label: t.pages.business, load: () => import("./pages/settings/Business.svelte") },
      { path: "settings/team", label: t.pages.team, needs: "conversations:read", load: () => import("./pages/settings/Team.svelte") },
      { path: "settings/billing", label: t.pages.billing, needs: "billing:read", load: () => import("./pages/settings/Billing.svelte") },
    ],
  },
];

const all = sections.flatMap((section) => section.pages.map((page) => ({ section, page })));

/** Returns the page of an address, with its section: the longest path that the address begins with. */
export function find(path: string): { section: Section; page: PageDef } | undefined {
  const matches = all.filter(({ page }) => (page.path === "" ? path === "" : path === page.path || path.startsWith(`${page.path}/`)));
  return matches.sort((one, other) => other.page.path.length - one.page.path.length)[0];
}
