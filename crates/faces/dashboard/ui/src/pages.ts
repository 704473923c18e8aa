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
  /** Whether it stands at the lower end of the rail, apart from what is used all day. */
  isApart?: boolean;
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
    id: "inbox",
    label: t.pages.inbox,
    icon: "M4 13 6 5h12l2 8v6H4zm0 0h5l1 3h4l1-3h5",
    key: "i",
    pages: [{ path: "inbox", label: t.pages.inbox, needs: "conversations:read", load: () => import("./pages/inbox/Inbox.svelte") }],
  },
  {
    id: "contacts",
    label: t.pages.contacts,
    icon: "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7m-6.5 9a6.5 6.5 0 0 1 13 0M16 4.3a3.5 3.5 0 0 1 0 6.4m2 3.6a6.5 6.5 0 0 1 3.5 5.7",
    key: "c",
    pages: [{ path: "contacts", label: t.pages.contacts, needs: "contacts:read", load: () => import("./pages/contacts/Contacts.svelte") }],
  },
  {
    id: "agents",
    label: t.pages.agents,
    icon: "M12 4v3M6 7h12v11H6zM9.5 12h.01M14.5 12h.01M10 15h4M3 11v4m18-4v4",
    key: "a",
    pages: [
      { path: "agents", label: t.pages.agents, needs: "agents:read", load: () => import("./pages/agents/Agents.svelte") },
      { path: "agents/playground", label: t.pages.playground, needs: "runs:execute", load: () => import("./pages/agents/playground/Playground.svelte") },
      { path: "agents/runs", label: t.pages.runs, needs: "runs:read", load: () => import("./pages/agents/runs/Runs.svelte") },
    ],
  },
  {
    id: "channels",
    label: t.pages.channels,
    icon: "M5 5h14v10h-7l-4 4v-4H5zM9 9h6M9 12h4",
    key: "n",
    pages: [{ path: "channels", label: t.pages.channels, needs: "channels:read", load: () => import("./pages/channels/Channels.svelte") }],
  },
  {
    id: "collections",
    label: t.pages.collections,
    icon: "M4 5h16v14H4zM4 10h16M4 14.5h16M10 10v9",
    key: "o",
    pages: [{ path: "collections", label: t.pages.collections, needs: "collections:read", load: () => import("./pages/collections/Collections.svelte") }],
  },
  {
    id: "flows",
    label: t.pages.flows,
    icon: "M4 4h6v6H4zm10 10h6v6h-6zM7 10v4c0 2 1 3 3 3h4",
    key: "f",
    pages: [
      { path: "flows", label: t.pages.flows, needs: "automations:read", load: () => import("./pages/flows/Flows.svelte") },
      { path: "flows/runs", label: t.pages.flowRuns, needs: "automations:read", load: () => import("./pages/flows/runs/Runs.svelte") },
      { path: "automations", label: t.pages.automations, needs: "automations:read", load: () => import("./pages/automations/Automations.svelte") },
    ],
  },
  {
    id: "developers",
    label: t.pages.developers,
    icon: "m8 7-5 5 5 5m8-10 5 5-5 5M14 4l-4 16",
    key: "d",
    isApart: true,
    pages: [
      { path: "developers/overview", label: t.pages.overview, needs: "logs:read", load: () => import("./pages/developers/logs/Overview.svelte") },
      { path: "developers/keys", label: t.pages.apiKeys, needs: "keys:manage", load: () => import("./pages/developers/keys/Keys.svelte") },
      { path: "developers/logs", label: t.pages.logs, needs: "logs:read", load: () => import("./pages/developers/logs/Logs.svelte") },
      { path: "developers/events", label: t.pages.events, needs: "events:read", load: () => import("./pages/developers/Events.svelte") },
      { path: "developers/webhooks", label: t.pages.webhooks, needs: "webhooks:manage", load: () => import("./pages/developers/webhooks/Webhooks.svelte") },
      { path: "developers/inbound", label: t.pages.inbound, needs: "webhooks:manage", load: () => import("./pages/developers/inbound/Inbound.svelte") },
      { path: "developers/usage", label: t.pages.usage, needs: "billing:read", load: () => import("./pages/developers/Usage.svelte") },
      { path: "developers/health", label: t.pages.health, needs: "logs:read", load: () => import("./pages/developers/Health.svelte") },
      { path: "developers/inspector", label: t.pages.inspector, load: () => import("./pages/developers/inspector/Inspector.svelte") },
      { path: "developers/shell", label: t.pages.shell, load: () => import("./pages/developers/shell/Shell.svelte") },
    ],
  },
  {
    id: "settings",
    label: t.pages.settings,
    icon: "M4 7h10m4 0h2M4 12h2m4 0h10M4 17h8m4 0h4M14 5v4M8 10v4m6 1v4",
    key: "s",
    isApart: true,
    pages: [
      { path: "settings/business", label: t.pages.business, load: () => import("./pages/settings/Business.svelte") },
      { path: "settings/team", label: t.pages.team, needs: "conversations:read", load: () => import("./pages/settings/team/Team.svelte") },
      { path: "settings/billing", label: t.pages.billing, needs: "billing:read", load: () => import("./pages/settings/billing/Billing.svelte") },
      { path: "settings/account", label: t.pages.account, needs: "account", load: () => import("./pages/settings/Account.svelte") },
      { path: "settings/audit", label: t.pages.audit, needs: "audit:read", load: () => import("./pages/settings/Audit.svelte") },
    ],
  },
  {
    id: "installation",
    label: t.pages.installation,
    icon: "M4 5h16v6H4zM4 13h16v6H4zM7 8h.01M7 16h.01",
    key: "x",
    isApart: true,
    pages: [
      { path: "installation/overview", label: t.pages.overview, needs: "installation:manage", load: () => import("./pages/installation/Overview.svelte") },
      { path: "installation/workspaces", label: t.pages.workspaces, needs: "installation:manage", load: () => import("./pages/installation/Workspaces.svelte") },
      { path: "installation/accounts", label: t.pages.accounts, needs: "installation:manage", load: () => import("./pages/installation/Accounts.svelte") },
    ],
  },
];

const all = sections.flatMap((section) => section.pages.map((page) => ({ section, page })));

/** Returns the page of an address, with its section: the longest path that the address begins with. */
export function find(path: string): { section: Section; page: PageDef } | undefined {
  const matches = all.filter(({ page }) => (page.path === "" ? path === "" : path === page.path || path.startsWith(`${page.path}/`)));
  return matches.sort((one, other) => other.page.path.length - one.page.path.length)[0];
}

/** Whether there is a page of this path. */
export function hasPage(path: string): boolean {
  return all.some(({ page }) => page.path === path);
}
