// The one table of shortcuts: what the keys do, and what the `?` sheet lists.

import { untrack } from "svelte";
import { settings } from "./settings.svelte";

export interface Shortcut {
  /** `g h`, `?`, `mod+k`. `mod` is ⌘ on a Mac and Ctrl elsewhere. */
  keys: string;
  label: string;
  run: () => void;
  /** Whether it takes this press. If not, the browser does. */
  takes?: (event: KeyboardEvent) => boolean;
}

const SEQUENCE_MS = 1200;
export const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);

class Keys {
  #layers = $state.raw<readonly (readonly Shortcut[])[]>([]);
  #pending = "";
  #pendingAt = 0;

  constructor() {
    addEventListener("keydown", (event) => this.#press(event));
  }

  get all(): Shortcut[] {
    return this.#layers.flat();
  }

  /** Adds the shortcuts of a part of the page, and returns what takes them away again. */
  add(shortcuts: readonly Shortcut[]): () => void {
    // Effects call this, and must not run again because of it.
    this.#layers = [...untrack(() => this.#layers), shortcuts];
    return () => (this.#layers = this.#layers.filter((layer) => layer !== shortcuts));
  }

  #press(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.isComposing) return;
    const isMod = isMac ? event.metaKey : event.ctrlKey;
    const target = event.target as HTMLElement;
    const isTyping = target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
    const isOverPage = document.querySelector("dialog[open]") !== null;
    if (!isMod && (isTyping || isOverPage || event.altKey || event.ctrlKey || event.metaKey || !settings.hasKeys)) return;
    const key = isMod ? `mod+${event.key.toLowerCase()}` : event.key;
    const sequence = performance.now() - this.#pendingAt < SEQUENCE_MS ? `${this.#pending} ${key}` : key;
    const open = this.all.filter(({ takes }) => takes?.(event) ?? true);
    const found = open.findLast(({ keys }) => keys === sequence) ?? open.findLast(({ keys }) => keys === key);
    [this.#pending, this.#pendingAt] = [key, found ? 0 : performance.now()];
    if (!found) return;
    event.preventDefault();
    found.run();
  }
}

export const keys = new Keys();
