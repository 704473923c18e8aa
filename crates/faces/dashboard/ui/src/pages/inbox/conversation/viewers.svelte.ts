// Who else has the conversation open, so that two people do not answer the same question.

import { untrack } from "svelte";
import { api, type Data } from "../../../lib/api";
import { t } from "../../../text";
import type { People } from "../people.svelte";

const PATH = "/dashboard/conversations/{conversationId}/viewer";
type Viewer = Data<typeof PATH, "put">["viewers"][number];
/** A report counts for 45 seconds. Others see a change with their next report. */
const EVERY_MS = 10_000;
/** For how long somebody who has stopped typing still writes. */
const STILL_MS = 15_000;

/** Reports that the conversation is open while the tab can be seen, and reads who else has it open. */
export class Viewers {
  others = $state.raw<readonly Viewer[]>([]);
  #isWriting = $state(false);

  /** `text` is what is typed for the contact. */
  constructor(id: number, text: () => string) {
    const path = { conversationId: id };
    let before = untrack(text);
    $effect(() => {
      const now = text();
      if (now === before) return undefined;
      before = now;
      this.#isWriting = now !== "";
      const timer = setTimeout(() => (this.#isWriting = false), STILL_MS);
      return () => clearTimeout(timer);
    });
    $effect(() => {
      const body = { is_writing: this.#isWriting };
      const report = () => {
        if (document.hidden) return;
        // Without an answer the page shows what it knew: this is no reason to disturb anybody.
        api.put(PATH, { path, body }).then(({ data }) => (this.others = data.viewers), () => undefined);
      };
      report();
      const timer = setInterval(report, EVERY_MS);
      document.addEventListener("visibilitychange", report);
      return () => {
        clearInterval(timer);
        document.removeEventListener("visibilitychange", report);
      };
    });
    $effect(() => () => void api.delete(PATH, { path }).catch(() => undefined));
  }
}

/** Says who else is here; those who write come first. */
export function besides(others: readonly Viewer[], people: People): string {
  const writing = others.filter(({ is_writing }) => is_writing);
  const named = (writing.length ? writing : others).map(({ member_id }) => people.member(member_id)?.name ?? t.inbox.unnamed);
  if (named.length === 0) return "";
  return writing.length ? t.viewers.write(named) : t.viewers.look(named);
}
