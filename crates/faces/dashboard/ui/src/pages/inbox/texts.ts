// Texts that strangers write, as they can be shown.

import { marked } from "../../lib/marks";
import { root } from "../../lib/root";

const LINK = /https?:\/\/[^\s<>"'\\]+[^\s<>"'\\.,;:!?)\]]/g;

/** Shows the marks that change the direction of text, so that nothing hides behind them. */
export function shown(text: string): string {
  return marked(text);
}

/** Divides a text into words and links. */
export function parts(text: string): { text: string; href?: string }[] {
  const found: { text: string; href?: string }[] = [];
  let at = 0;
  for (const link of text.matchAll(LINK)) {
    if (link.index > at) found.push({ text: text.slice(at, link.index) });
    found.push({ text: link[0], href: link[0] });
    at = link.index + link[0].length;
  }
  if (at < text.length) found.push({ text: text.slice(at) });
  return found;
}

/** Returns the address of a stored file at this host: the page may load nothing from another one. */
export function fileAddress(url: string): string {
  const { pathname, search } = new URL(url, location.href);
  const at = Math.max(pathname.lastIndexOf("/f/"), pathname.lastIndexOf("/d/"));
  return root + pathname.slice(Math.max(0, at)) + search;
}

/** The first letters of a name. */
export function initials(name: string): string {
  const words = shown(name).split(/\s+/).filter(Boolean);
  const letters = [words[0], words.length > 1 ? words.at(-1) : undefined].map((word) => [...(word ?? "")][0] ?? "");
  return letters.join("").toUpperCase();
}
