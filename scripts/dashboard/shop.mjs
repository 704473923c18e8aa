// A morning in the shop of the demo, so that pages show a business at work: customers write over the simulator, an agent answers most of
// them, and a person one.

import assert from "node:assert/strict";

async function simulate(chat, path, body) {
  const response = await fetch(`${chat}/control${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  assert(response.ok, `${path}: ${response.status}`);
}

const CUSTOMERS = [
  { name: "Irene Vidal", phone: "34655010203", company: "Vidal Interiors", stage: "won", asks: ["Good morning! Do you have the oak side table in stock?"] },
  { name: "Hugo Serrano", phone: "34655010204", stage: "new", asks: ["When do you open on Saturday?"] },
  { name: "Paula Iglesias", phone: "34655010205", company: "Café Luna", stage: "won", asks: ["We need six linen tablecloths for the café. Can you send an offer?"] },
  { name: "Tomás Rey", phone: "34655010206", stage: "won", asks: ["Do you wrap presents?", "It is for a birthday on Friday."] },
  { name: "Clara Benítez", phone: "34655010207", stage: "new", asks: ["How much is delivery to Valencia?"] },
  { name: "Nuria Campos", phone: "34655010208", company: "Estudio Campos", stage: "won", asks: ["Can I return a lamp that I bought last week?"] },
  { name: "Andrés Molina", phone: "34655010209", stage: "won", asks: ["Is the wooden train set suitable for a child of two?"] },
];

/** The customer whom a person answers. */
export const MAIN = { name: "Rosa Iturbe", phone: "34655010210", company: "Iturbe Decoración", stage: "won", asks: ["Hello, my order 4711 arrived this morning, and one of the two chairs is scratched."] };

const write = (chat, { phone }, body) => simulate(chat, `/users/${phone}/actions`, { do: "text", body });

async function until(what, isSo) {
  for (let tries = 0; tries < 200; tries++) {
    const found = await isSo();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  throw new Error(`shop: ${what} does not happen`);
}

/** The conversation of a contact. */
export const conversationOf = async (call, id) => (await call("GET", `/conversations?contact_id=${id}`))[0];

/** Lets the customers write, each once. */
export async function openShop({ call, chat }) {
  for (const person of [...CUSTOMERS, MAIN]) {
    const data = { $name: person.name, $phone: `+${person.phone}`, ...(person.company && { $company: person.company }), $stage: person.stage };
    const { contact } = await call("POST", "/contacts/upsert", { data });
    if (await conversationOf(call, contact.id)) continue;
    await simulate(chat, "/users", { name: person.name, phone: person.phone });
    if (person === MAIN) await call("PUT", `/contacts/${contact.id}/autopilot`, { enabled: false });
    for (const text of person.asks) await write(chat, person, text);
    const conversation = await until(`a conversation of ${person.name}`, () => conversationOf(call, contact.id));
    if (person === MAIN) continue;
    await until(`an answer to ${person.name}`, async () => (await call("GET", `/conversations/${conversation.id}/messages`)).some(({ direction }) => direction === "outbound"));
  }
}

/** A customer writes once more. */
export const writeAs = (chat, person, text) => write(chat, person, text);
