// How a graph is looked at: drawn, or as an outline. Narrow screens begin with the outline.

import { route } from "../../../lib/route.svelte";

const narrow = matchMedia("(width < 720px)");

class View {
  isNarrow = $state(narrow.matches);

  constructor() {
    narrow.addEventListener("change", (event) => (this.isNarrow = event.matches));
  }

  get isOutline(): boolean {
    const wanted = route.param("view");
    return wanted === "" ? this.isNarrow : wanted === "outline";
  }

  set(isOutline: boolean): void {
    route.set({ view: isOutline ? "outline" : "canvas" });
  }

  get node(): string | undefined {
    return route.param("node") || undefined;
  }

  select(id: string | undefined): void {
    if (id !== this.node) route.set({ node: id ?? "" });
  }
}

export const view = new View();
