// Messages, the notes of the team and the days between them, in the order in which they are read.

import type { Row } from "../../../lib/api";
import type { Message } from "../people.svelte";

export type Note = Row<"/contacts/{contactId}/notes">;
export type Item =
  | { kind: "day"; key: string; at: string }
  | { kind: "note"; key: string; note: Note }
  | { kind: "message"; key: string; message: Message; isFirst: boolean };

/** Messages of one author with less than this between them belong together. */
const TOGETHER_MS = 300_000;

/** `isAll` says whether the first message is there; notes from before the first one shown wait until it is read. */
export function timeline(messages: readonly Message[], notes: readonly Note[], isAll: boolean): Item[] {
  const first = messages[0]?.created_at ?? "";
  const waiting = notes.filter(({ created_at }) => isAll || created_at >= first).sort((one, other) => (one.created_at < other.created_at ? -1 : 1));
  const items: Item[] = [];
  let day = "";
  let before: Message | undefined;
  const enter = (at: string) => {
    const next = new Date(at).toDateString();
    if (next === day) return;
    day = next;
    before = undefined;
    items.push({ kind: "day", key: `day ${next}`, at });
  };
  const take = (until: string) => {
    while (waiting[0] && waiting[0].created_at < until) {
      const note = waiting.shift() as Note;
      enter(note.created_at);
      items.push({ kind: "note", key: `note ${note.id}`, note });
      before = undefined;
    }
  };
  for (const message of messages) {
    take(message.created_at);
    enter(message.created_at);
    const isFirst = !before || before.direction !== message.direction || before.sender.type !== message.sender.type || before.sender.id !== message.sender.id || Date.parse(message.created_at) - Date.parse(before.created_at) > TOGETHER_MS;
    items.push({ kind: "message", key: `message ${message.id}`, message, isFirst });
    before = message;
  }
  take("9999");
  return items;
}
