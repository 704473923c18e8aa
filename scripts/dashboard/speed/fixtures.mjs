// What the pages show while they are measured: a long conversation, a long collection, a flow.

import assert from "node:assert/strict";
import { customer } from "../inbox.mjs";
import { pause } from "./site.mjs";

export const MESSAGES = 500;
/** So many rows fit into the request of one import. */
const ROWS_OF_IMPORT = 100_000;
const AT_ONCE = 4;
const WAIT_SECONDS = 25;
const WAIT_MS = 120_000;
const CITIES = ["Madrid", "Vigo", "Sevilla", "Valencia", "Bilbao"];
const WORDS = ["wooden", "train", "puzzle", "kite", "for", "Saturday", "please", "blue", "and", "a", "box"];

/** The number that a row shows. */
export const orderNumber = (at) => `A-${String(at).padStart(7, "0")}`;

function csv(from, to) {
  const lines = ["number,customer,city,amount,ordered_on"];
  for (let at = from; at <= to; at++) lines.push(`${orderNumber(at)},Customer ${at % 97},${CITIES[at % 5]},${at % 11 ? ((at * 7919) % 30000) / 100 : ""},2026-${String(1 + (at % 12)).padStart(2, "0")}-15`);
  return lines.join("\n");
}

/** Makes a collection of so many orders by imports, the newest of which has the highest number. */
async function orders(site, count) {
  const fields = [{ label: "Number", type: "text", required: true }, { label: "Customer", type: "text" }, { label: "City", type: "text" }, { label: "Amount", type: "currency", options: { currency: "EUR", precision: 2 } }, { label: "Ordered on", type: "date" }];
  const name = `Orders, ${count}`;
  const before = (await site.call("GET", "/collections")).find((one) => one.name === name);
  if (before) return before.id;
  const { id } = await site.call("POST", "/collections", { name, fields });
  for (let from = 1; from <= count; from += ROWS_OF_IMPORT) {
    let run = await site.call("POST", `/collections/${id}/items/import`, { content: csv(from, Math.min(count, from + ROWS_OF_IMPORT - 1)), wait_seconds: WAIT_SECONDS });
    while (run.status !== "completed" && run.status !== "failed") {
      await pause(500);
      run = await site.call("GET", `/collections/${id}/imports/${run.id}`);
    }
    assert.equal(run.counts.failed, 0, `the import ended as ${run.status}`);
    console.error(`${Math.min(count, from + ROWS_OF_IMPORT - 1)} items`);
  }
  return id;
}

/** Makes a conversation of so many messages, which a person answers. */
async function conversation(site, chat, count) {
  const person = await customer(chat, (...request) => site.call(...request), "Rosa Iturbe");
  const texts = Array.from({ length: count }, (_, at) => `${at + 1}: ${Array.from({ length: 4 + (at % 40) }, (_, word) => WORDS[(at + word * 7) % WORDS.length]).join(" ")}`);
  while (texts.length) await Promise.all(texts.splice(0, AT_ONCE).map((text) => person.write(text)));
  for (const until = Date.now() + WAIT_MS; ; await pause(250)) {
    const [last] = await site.call("GET", `/contacts/${person.contact}/messages?paginate=true&limit=1`);
    if (last && (await stored(site, last.conversation_id)) >= count) return { ...person, conversation: last.conversation_id };
    assert(Date.now() < until, "the messages do not come");
  }
}

async function stored(site, id) {
  for (let [all, after] = [0, ""]; ; ) {
    const { data, next_cursor: next } = await site.ask("GET", `/conversations/${id}/messages?paginate=true&limit=100${after && `&starting_after=${after}`}`);
    all += data.length;
    if (!next) return all;
    after = next;
  }
}

export async function prepare({ site, chat, items, parts }) {
  const isWanted = (...names) => names.some((name) => parts.includes(name));
  const [flow] = await site.call("GET", "/workspaces/1/flows");
  const person = isWanted("views", "typing", "live") ? await conversation(site, chat, isWanted("typing") ? MESSAGES : 60) : undefined;
  const collection = isWanted("views", "grid", "marks") ? await orders(site, items) : undefined;
  return { flow: flow?.id, person, conversation: person?.conversation, collection };
}
