// The quick replies of the workspace, read once, when the first is asked for.

import { api, type Row } from "../../../lib/api";

export type QuickReply = Row<"/quick-replies">;

const AT_ONCE = 100;
const MOST_PAGES = 10;

export class Replies {
  rows = $state.raw<readonly QuickReply[]>([]);
  isLoaded = $state(false);
  #isAsked = false;

  load = (): void => {
    if (this.#isAsked) return;
    this.#isAsked = true;
    void this.#read();
  };

  /** Reads them again when they were changed. */
  renew(): void {
    if (this.#isAsked) void this.#read();
  }

  async #read(): Promise<void> {
    try {
      const rows: QuickReply[] = [];
      let after: string | undefined;
      for (let page = 0; page < MOST_PAGES; page++) {
        const answer = await api.get("/quick-replies", { query: { paginate: true, limit: AT_ONCE, ...(after && { starting_after: after }) } });
        rows.push(...answer.data);
        after = (answer.has_more && answer.next_cursor) || undefined;
        if (after === undefined) break;
      }
      this.rows = rows.sort((one, other) => other.usage_count - one.usage_count || one.shortcode.localeCompare(other.shortcode));
      this.isLoaded = true;
    } catch {
      // The next `/` asks again.
      this.#isAsked = false;
    }
  }
}
