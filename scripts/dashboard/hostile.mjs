// Texts of attackers, wherever a customer, a tenant, a model or another program can write one, and the pages that show them.

import assert from "node:assert/strict";
import { open, settled } from "./checks.mjs";
import { MARKS, SOUND, TEXTS, long } from "./hostile-texts.mjs";
import { customer } from "./inbox.mjs";

const AT_ONCE = 4;
/** What a place says when it takes no more requests in this minute, and when it does not take the text. */
const TOO_MANY = /rate_limit/;
const REFUSED = /"type":"(invalid_request_error|validation_error)"|validation|invalid|too_long|not_allowed|conflict|duplicate/;

/** Texts, a few for each record, so that all of them are stored while no list is endless. */
const packed = (records) => Array.from({ length: records }, (_, at) => SOUND.filter((_, index) => index % records === at).join("\n"));
const names = (length, count, from = 0) => [long(length), ...Array.from({ length: count }, (_, at) => TEXTS[(from + at * 5) % TEXTS.length])];

/** Stores what a place takes, and leaves out what it refuses. */
function storage(call) {
  const left = { stored: 0, refused: 0 };
  const undo = [];
  async function store(method, path, body) {
    for (;;) {
      try {
        const made = await call(method, path, body);
        left.stored++;
        return made;
      } catch (error) {
        if (TOO_MANY.test(error.message)) {
          await new Promise((resolve) => setTimeout(resolve, 2000));
          continue;
        }
        assert(REFUSED.test(error.message), error.message);
        left.refused++;
        return undefined;
      }
    }
  }
  /** Stores one of each, and deletes them at the end. Returns those that were taken. */
  async function each(bodies, path, { remove = (id) => `${path}/${id}` } = {}) {
    const made = [];
    const waiting = [...bodies];
    await Promise.all(Array.from({ length: AT_ONCE }, async () => {
      for (let body = waiting.shift(); body; body = waiting.shift()) {
        const one = await store("POST", path, body);
        if (one && remove) undo.push(remove(one.id));
        if (one) made.push(one);
      }
    }));
    return made;
  }
  async function clean() {
    for (const path of undo.reverse()) await call("DELETE", path).catch(() => undefined);
  }
  return { left, store, each, clean, undo };
}

/** Fills what one can read with hostile texts. Returns the pages that show them. */
async function fill({ call, chat, hook, origin }, { store, each, undo }) {
  const contacts = await each([...TEXTS, long(200)].map((text, at) => ({ data: { $name: text, $company: text, $email: `hostile.${at}.${Date.now()}@example.com` }, tags: [text.replace(/[,;\p{Cc}]/gu, "").slice(0, 50)] })), "/contacts");
  const contact = contacts[0];
  await each(packed(6).map((body) => ({ body })), `/contacts/${contact.id}/notes`, { remove: null });
  await store("POST", `/contacts/${contact.id}/notes`, { body: long(20_000) });
  const segments = await each(names(120, 6).map((name) => ({ name, description: TEXTS[0], filter_tree: { field: "$name", op: "eq", value: name } })), "/contacts/segments");
  const fields = await each(names(120, 4, 3).map((label, at) => ({ field_key: `hostile_${at}`, label, type: "text" })), "/variables/contact-fields", { remove: null });
  undo.push(...fields.map((_, at) => `/variables/contact-fields/hostile_${at}`));
  await each(TEXTS.slice(0, 12).map((text, at) => ({ shortcode: `hostile${at}`, title: text, body: text })), "/quick-replies");
  await each(names(500, 8, 20).map((title) => ({ title, contact_id: contact.id, description: TEXTS[14] })), "/workspaces/1/tasks");

  const person = await customer(chat, call, TEXTS[0]);
  for (const text of [...packed(12), long(4000)]) await person.write(text).catch((error) => assert(error.message.endsWith(": 400"), error.message));
  undo.push(`/contacts/${person.contact}`);
  // The network delivers what was written a little later.
  let conversation;
  for (const end = Date.now() + 60_000; !conversation; ) {
    conversation = (await call("GET", "/conversations")).find((one) => one.contact_id === person.contact);
    assert(conversation || Date.now() < end, "the customer's messages have not arrived");
    if (!conversation) await new Promise((resolve) => setTimeout(resolve, 500));
  }

  const agents = await each([...names(100, 14, 1).map((name, at) => ({ name, description: TEXTS[at * 3], instructions: SOUND.filter((text) => !text.includes("{")).join("\n") })), { name: "Long", instructions: long(100_000) }], "/agents");
  const runs = await each([...packed(6), long(20_000)].map((input) => ({ input })), "/runs", { remove: null });

  const collections = await each(names(120, 10, 2).map((name, at) => ({ name, description: TEXTS[at * 7], fields: [{ field_key: "name", label: TEXTS[at], type: "text" }, { field_key: "text", label: TEXTS[at + 20], type: "long_text" }, { field_key: "kind", label: TEXTS[at + 40], type: "select", options: { choices: [{ key: "one", label: TEXTS[at + 14] }, { key: "long", label: long(120) }] } }] })), "/collections");
  const collection = collections.at(-1);
  const items = await each([...TEXTS, long(1000)].map((text, at) => ({ data: { name: text, text: `${text}\n${TEXTS[at % 9]}`, kind: at % 2 ? "one" : "long" } })), `/collections/${collection.id}/items`, { remove: null });
  await each(packed(4).map((body) => ({ body })), `/collections/${collection.id}/items/${items[0].id}/comments`, { remove: null });
  await each(names(120, 4, 6).map((name) => ({ name })), `/collections/${collection.id}/views`, { remove: null });

  const drawn = { nodes: [{ id: "start", type: "trigger" }, ...TEXTS.slice(0, 12).map((text, at) => ({ id: `note_${at}`, type: "note", label: text, config: { text } }))], edges: TEXTS.slice(0, 12).map((_, at) => ({ from: at ? `note_${at - 1}` : "start", to: `note_${at}` })) };
  let flows = await each(names(120, 10, 4).map((name, at) => ({ name, draft: drawn, settings: { description: TEXTS[at * 4] } })), "/workspaces/1/flows");
  if (flows.length === 0) flows = await each([{ name: TEXTS[0] }, { name: long(120) }], "/workspaces/1/flows");
  const target = { type: "agent", id: (await call("GET", "/agents"))[0].id, input: { text: TEXTS[0] } };
  const automations = await each(names(200, 10, 5).map((name, at) => ({ name, description: TEXTS[at * 2], trigger: { type: "keyword", config: { words: [TEXTS[at].slice(0, 50)] } }, target })), "/automations");

  const endpoints = await each([...names(500, 10, 7).map((description) => ({ url: hook, enabled_events: ["item.*"], description, headers: { "X-Hostile": "<script>" } })), ...TEXTS.slice(32, 44).map((text) => ({ url: text, enabled_events: ["item.*"] })), { url: `${hook}?${encodeURIComponent(TEXTS[0])}`, enabled_events: ["item.*"] }], "/webhook-endpoints");
  const inbound = await each(names(100, 8, 8).map((name) => ({ name, description: TEXTS[1], verification: { type: "none" }, capture: true })), "/inbound-webhooks");
  for (const text of [...packed(4), long(50_000)]) {
    const { pathname } = new URL(inbound[0].url ?? origin, origin);
    await fetch(origin + pathname, { method: "POST", headers: { "content-type": "application/json", "x-hostile": "<script>" }, body: JSON.stringify({ text }) });
  }
  for (const [kind, made] of Object.entries({ contacts, segments, fields, agents, runs, collections, items, flows, automations, endpoints, inbound })) assert(made.length > 0, `no ${kind} with a hostile text was taken`);
  return [
    "", "inbox", `inbox/${conversation.id}`, "contacts", ...contacts.slice(0, 2).map(({ id }) => `contacts/${id}`),
    ...["notes", "tasks", "activity"].map((tab) => `contacts/${contact.id}?tab=${tab}`), ...segments.slice(0, 2).map(({ id }) => `contacts?segment=${id}`),
    "agents", ...agents.slice(0, 2).map(({ id }) => `agents/${id}`), `agents/${agents.at(-1).id}`, "agents/playground", "agents/runs", ...runs.map(({ id }) => `agents/runs/${id}`),
    "collections", ...["", "/fields", "/settings", "/activity", `?record=${items[0].id}`, "?look=board&by=kind"].map((part) => `collections/${collection.id}${part}`),
    "flows", ...flows.slice(0, 2).map(({ id }) => `flows/${id}`), "flows/runs", "automations", ...automations.slice(0, 2).map(({ id }) => `automations/${id}`),
    ...["overview", "logs", "events", "webhooks", "inbound", "health", "keys"].map((one) => `developers/${one}`),
    ...endpoints.slice(-2).map(({ id }) => `developers/webhooks/${id}`), ...inbound.slice(0, 2).map(({ id }) => `developers/inbound/${id}`),
    "settings/business", "settings/audit",
  ];
}

/** The names of keys and the profile of the business, which a person writes. Returns how to take them back. */
async function fillAsOwner({ page, origin }) {
  const asked = page.waitForRequest((request) => request.url().includes("/api/v1/") && request.headers().authorization);
  await page.goto(`${origin}/app/1/settings/business`);
  const { authorization } = (await asked).headers();
  const send = async (method, path, body) => {
    const response = await fetch(`${origin}/api/v1/dashboard${path}`, { method, headers: { authorization, "content-type": "application/json", origin }, body: body && JSON.stringify(body) });
    assert(response.status < 500, `${method} ${path}: ${response.status}`);
    return response.ok ? (await response.json()).data : undefined;
  };
  const keys = [];
  for (const name of names(80, 8, 9)) keys.push(await send("POST", "/keys", { name, env: "test", scopes: ["contacts:read"] }));
  const fields = ["name", "legal_name", "description"];
  const { data: before } = await (await fetch(`${origin}/api/v1/business`, { headers: { authorization } })).json();
  assert(keys.some(Boolean), "no key with a hostile name was taken");
  for (const [at, field] of fields.entries()) assert(await send("PATCH", "/business", { [field]: TEXTS[at * 15] }), `${field} of the business was not taken`);
  return async () => {
    for (const key of keys.filter(Boolean)) await send("POST", `/keys/${key.id ?? key.api_key?.id}/revoke`);
    for (const field of fields) await send("PATCH", "/business", { [field]: before[field] ?? null });
  };
}

/** Opens a page; again, while the member has sent too many requests in this minute. */
async function visit(page, address) {
  const refused = page.getByText("Too many requests").first();
  for (;;) {
    await page.goto(address);
    await page.locator("h1").or(refused).first().waitFor();
    await page.waitForFunction(() => document.querySelectorAll("[role=status].loading").length === 0);
    if (!(await refused.isVisible())) return;
    await new Promise((resolve) => setTimeout(resolve, 5000));
  }
}

/** Looks at a page: nothing has run, nothing was asked elsewhere, nothing is wider than the page, and no mark is hidden. */
async function look({ page, width, mistakes }, path) {
  await settled(page);
  const found = await page.evaluate((marks) => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const hidden = [];
    while (texts.nextNode()) if (texts.currentNode.parentElement?.checkVisibility() && new RegExp(marks).test(texts.currentNode.data)) hidden.push(texts.currentNode.data.slice(0, 80));
    const links = [...document.querySelectorAll("[href], [src], [action], [formaction]")].filter((one) => /^(javascript|data|vbscript):/i.test((one.href ?? one.src ?? one.action ?? "").toString()) && one.tagName !== "LINK" && one.tagName !== "IMG");
    const failed = [...document.querySelectorAll(".error[role=alert]")].filter((one) => one.checkVisibility()).map((one) => one.textContent.slice(0, 120));
    return { failed, ran: globalThis.__hostile, polluted: {}.isHostile, wide: document.documentElement.scrollWidth, hidden, links: links.map((one) => one.outerHTML.slice(0, 120)) };
  }, MARKS);
  const where = `${path} at ${width}`;
  assert.deepEqual(found.failed, [], `${where}: it shows an error instead of the texts`);
  assert.equal(found.ran, undefined, `${where}: a text ran`);
  assert.equal(found.polluted, undefined, `${where}: a text changed all objects`);
  assert.deepEqual(found.links, [], `${where}: a text is a link that runs`);
  assert.deepEqual(found.hidden, [], `${where}: marks are hidden`);
  assert(found.wide <= width, `${where}: it is ${found.wide} wide`);
  assert.deepEqual(mistakes.splice(0), [], where);
}

/** Hostile texts on all pages that show what others write, on a desk and on a phone. */
export async function hostileTexts(given) {
  const { browser, origin, state, view, call, folder } = given;
  const store = storage(call);
  const restore = await fillAsOwner({ page: view.page, origin });
  const wrong = [];
  try {
    const pages = await fill(given, store);
    assert(store.left.stored > 250, JSON.stringify(store.left));
    for (const width of [1280, 360]) {
      const look_ = await open(browser, origin, { width, state });
      look_.page.on("dialog", (dialog) => (look_.mistakes.push(`a dialog: ${dialog.message()}`), dialog.dismiss()));
      for (const path of pages) {
        // All pages are looked at, so that one run says everything that is wrong.
        try {
          await visit(look_.page, `${origin}/app/1/${path}`);
          await look(look_, path);
        } catch (error) {
          look_.mistakes.splice(0);
          wrong.push(`${path} at ${width}: ${error.message.split("\n")[0]}`);
        }
        await look_.page.screenshot({ path: `${folder}/hostile-${path.replaceAll(/\W+/g, "-") || "home"}-${width}.png` });
      }
      await look_.context.close();
    }
  } finally {
    await restore();
    await store.clean();
  }
  assert.deepEqual(wrong, []);
}
