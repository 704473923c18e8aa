// The address is the state: `/app/{workspace}/{page}?{filters}`.

import { root } from "./root";

const APP = `${root}/app/`;

class Route {
  #url = $state.raw(new URL(location.href));

  constructor() {
    addEventListener("popstate", () => (this.#url = new URL(location.href)));
    addEventListener("click", (event) => this.#follow(event));
  }

  get #parts(): string[] {
    return this.#url.pathname.slice(APP.length).split("/").filter(Boolean).map(decodeURIComponent);
  }

  /** The workspace of this tab; 0 if the address names none. */
  get workspace(): number {
    const [first = ""] = this.#parts;
    return /^[1-9]\d*$/.test(first) ? Number(first) : 0;
  }

  /** The page, without the workspace. */
  get parts(): string[] {
    return this.workspace ? this.#parts.slice(1) : this.#parts;
  }

  get path(): string {
    return this.parts.join("/");
  }

  get search(): string {
    return this.#url.search;
  }

  /** Returns a parameter of the address. */
  param(name: string): string {
    return this.#url.searchParams.get(name) ?? "";
  }

  /** Returns the address of a page in this workspace. */
  link(path: string, workspace = this.workspace): string {
    return `${APP}${workspace ? `${workspace}/` : ""}${path}`;
  }

  /** Returns the address of this page with other parameters. An empty one is left out. */
  with(parameters: Record<string, string>): string {
    const url = new URL(this.#url);
    for (const [name, value] of Object.entries(parameters)) {
      if (value) url.searchParams.set(name, value);
      else url.searchParams.delete(name);
    }
    return url.pathname + url.search;
  }

  /** Opens an address. Filters replace the entry of the history, so that Back leads to the page before. */
  go(href: string, { replace = false } = {}): void {
    const url = new URL(href, location.href);
    if (url.href === this.#url.href) return;
    history[replace ? "replaceState" : "pushState"](null, "", url);
    if (url.pathname !== this.#url.pathname) scrollTo(0, 0);
    this.#url = url;
  }

  set(parameters: Record<string, string>): void {
    this.go(this.with(parameters), { replace: true });
  }

  #follow(event: MouseEvent): void {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest?.("a");
    if (!link || link.target || link.hasAttribute("download")) return;
    const url = new URL(link.href, location.href);
    if (url.origin !== location.origin || !url.pathname.startsWith(APP) || url.pathname.startsWith(`${APP}assets/`)) return;
    event.preventDefault();
    this.go(url.href);
  }
}

export const route = new Route();
