// Texts that were typed and not sent, kept in this tab only. They are content of the workspace, so they are deleted when the
// person signs out, in this tab or in another, and when the page finds that nobody or somebody else has signed in.

import { root } from "./root";

const KEY = "svc-drafts";
const channel = new BroadcastChannel("svc-drafts");
// On the way to the sign-out nothing is stored again. Back returns to the page as it was.
let isLeaving = false;

interface Stored {
  owner: string;
  drafts: Record<string, unknown>;
}

channel.addEventListener("message", forgetDrafts);
addEventListener("pageshow", () => (isLeaving = false));
addEventListener(
  "click",
  (event) => {
    const link = (event.target as Element).closest?.("a");
    if (link?.pathname !== `${root}/sign-out`) return;
    isLeaving = true;
    forgetDrafts();
    channel.postMessage("sign-out");
  },
  { capture: true },
);

/** Returns the drafts of a person, and deletes those of another. */
export function readDrafts(owner: string): Record<string, unknown> {
  try {
    const stored = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Stored | null;
    if (stored?.owner === owner) return stored.drafts;
    sessionStorage.removeItem(KEY);
  } catch {
    // A browser without storage keeps drafts until the page is closed.
  }
  return {};
}

export function storeDrafts(owner: string, drafts: Record<string, unknown>): void {
  if (isLeaving) return;
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ owner, drafts } satisfies Stored));
  } catch {
    // They hold until the page is closed.
  }
}

export function forgetDrafts(): void {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // There is nothing to delete.
  }
}
