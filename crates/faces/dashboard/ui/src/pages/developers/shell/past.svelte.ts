// The requests of this tab, in its memory only: bodies and answers may hold personal data and secrets.

import type { RawAnswer } from "../../../lib/api";
import type { Env } from "../../../lib/session.svelte";
import type { Draft } from "./send";

export interface PastRequest {
  id: number;
  workspace: number;
  operation: string;
  method: string;
  path: string;
  env: Env;
  draft: Draft;
  answer: RawAnswer;
  at: string;
}

const LONGEST = 50;
/** Answers of this many characters are kept together, the newest first. */
const LARGEST = 8_000_000;

class Past {
  all = $state.raw<readonly PastRequest[]>([]);
  /** The bodies that were typed, by workspace and operation. */
  readonly bodies = new Map<string, string>();
  #last = 0;

  add(request: Omit<PastRequest, "id" | "at">): PastRequest {
    this.#last += 1;
    const entry = { ...request, id: this.#last, at: new Date().toISOString() };
    let size = 0;
    this.all = [entry, ...this.all].slice(0, LONGEST).filter(({ answer }) => (size += answer.text.length) <= LARGEST || size === answer.text.length);
    return entry;
  }
}

export const past = new Past();
