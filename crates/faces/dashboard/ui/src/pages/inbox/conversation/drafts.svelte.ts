// What was typed and not sent. A draft belongs to its conversation; it survives a reload of the tab, and signing out deletes it.

import { SvelteMap } from "svelte/reactivity";
import { forgetDrafts, readDrafts, storeDrafts } from "../../../lib/drafts";
import { session } from "../../../lib/session.svelte";

export interface Draft {
  text: string;
  note: string;
  isNote: boolean;
  /** The message to which the text replies. */
  quote?: number | undefined;
  /** A quick reply, and what was entered for what it asks. */
  reply?: { id: number; answers: Record<string, string> } | undefined;
}

const none: Draft = { text: "", note: "", isNote: false };
const PAUSE_MS = 400;

class Drafts {
  #all = new SvelteMap<string, Draft>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #owner = session.account?.email ?? "";

  constructor() {
    for (const [name, draft] of Object.entries(readDrafts(this.#owner))) this.#all.set(name, draft as Draft);
    addEventListener("pagehide", () => this.#timer !== undefined && this.#store());
  }

  of(workspace: number, conversation: number): Draft {
    return this.#all.get(`${workspace}/${conversation}`) ?? none;
  }

  /** Whether something is typed that was not sent. */
  has(workspace: number, conversation: number): boolean {
    const draft = this.of(workspace, conversation);
    return draft.text.trim() !== "" || draft.note.trim() !== "" || draft.reply !== undefined;
  }

  set(workspace: number, conversation: number, changes: Partial<Draft>): void {
    const name = `${workspace}/${conversation}`;
    const draft = { ...this.of(workspace, conversation), ...changes };
    if (draft.text || draft.note || draft.isNote || draft.reply || draft.quote) this.#all.set(name, draft);
    else this.#all.delete(name);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#store(), PAUSE_MS);
  }

  #store(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#owner !== session.account?.email) return;
    if (this.#all.size === 0) forgetDrafts();
    else storeDrafts(this.#owner, Object.fromEntries(this.#all));
  }
}

export const drafts = new Drafts();
