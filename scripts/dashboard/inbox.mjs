// The journeys through the inbox.
//
// `chat` is the address of the chat simulator, which `svc serve --demo` prints.

import assert from "node:assert/strict";
import { check, open, settled } from "./checks.mjs";
import { invite } from "./people.mjs";

async function simulate(chat, path, body) {
  const response = await fetch(`${chat}/control${path}`, body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  assert(response.ok, `${path}: ${response.status}`);
  return response.json();
}

/** Adds a customer of the simulator, whom the workspace knows by name and a person answers. */
export async function customer(chat, call, name) {
  const phone = `346${Math.floor(1e7 + Math.random() * 8e7)}`;
  await simulate(chat, "/users", { name, phone });
  const { contact } = await call("POST", "/contacts/upsert", { data: { $name: name, $phone: `+${phone}` } });
  await call("PUT", `/contacts/${contact.id}/autopilot`, { enabled: false });
  return { name, phone, contact: contact.id, write: (body) => simulate(chat, `/users/${phone}/actions`, { do: "text", body }), read: () => simulate(chat, `/users/${phone}/chat?read=true`) };
}

export const row = (page, person) => page.locator(`[data-contact="${person.contact}"]`);
export const field = (page, person) => page.getByLabel(`Message to ${person.name}`);
export const log = (page) => page.getByRole("log", { name: "Messages" });

/** A customer writes, and the conversation appears. A person takes it over, writes, sees the ticks and gives it back. */
export async function takeOver({ view, origin, chat, call, folder }) {
  const { page } = view;
  const person = await customer(chat, call, "Rosa Iturbe");
  await page.goto(`${origin}/app/1/inbox?view=unassigned`);
  await settled(page);
  await person.write("¿Tenéis el tren de madera?");
  await row(page, person).click();
  await log(page).getByText("¿Tenéis el tren de madera?").waitFor();
  await page.getByText("Nobody answers: it waits for a person").waitFor();
  await check(view, "inbox-waiting", folder);
  await page.getByRole("button", { name: "Take over", exact: true }).click();
  await page.locator("[data-answering=you]").waitFor();
  for (const view of ["Needs a person", "Mine"]) {
    await page.getByRole("link", { name: view, exact: true }).click();
    await row(page, person).waitFor();
  }
  await check(view, "inbox-mine", folder);
  await page.getByRole("link", { name: "Open", exact: true }).click();
  await row(page, person).click();
  await field(page, person).fill("Sí, en rojo y en azul.");
  await field(page, person).press("Shift+Enter");
  await page.keyboard.type("¿Cuál te reservo?");
  await page.keyboard.press("Enter");
  await log(page).getByText("¿Cuál te reservo?").waitFor();
  assert.equal(await field(page, person).inputValue(), "");
  await log(page).locator("[data-status=delivered], [data-status=read]").last().waitFor();
  await person.read();
  await log(page).locator("[data-status=read]").last().waitFor();
  // What the customer writes appears in the open conversation, and the list keeps its order under the pointer.
  await row(page, person).hover();
  const before = await page.locator("[data-conversation]").evaluateAll((all) => all.map((one) => one.dataset.conversation));
  const other = await customer(chat, call, "Hernán Quiroga");
  await other.write("Buenas tardes, ¿hasta qué hora abrís?");
  await person.write("El azul, por favor.");
  await log(page).getByText("El azul, por favor.").waitFor();
  await page.getByRole("button", { name: /^↑/ }).waitFor();
  const after = await page.locator("[data-conversation]").evaluateAll((all) => all.map((one) => one.dataset.conversation));
  assert.deepEqual(after, before, "rows moved under the pointer");
  await check(view, "inbox-moved", folder);
  await page.getByRole("button", { name: /^↑/ }).click();
  await row(page, other).waitFor();
  await page.getByRole("button", { name: "Give back" }).click();
  await page.locator("[data-answering=agent]").waitFor();
  // For an hour only.
  await page.getByLabel("For how long").click();
  await page.getByRole("button", { name: "For 1 hour" }).click();
  await page.getByText(/You answer until .+, then the agent/).waitFor();
  await check(view, "inbox-until", folder);
  // Someone else.
  await page.keyboard.press("Escape");
  await page.locator("body").press("a");
  await page.getByRole("button", { name: /Daniel Okafor/ }).first().click();
  await page.getByText(/Daniel Okafor answers until/).waitFor();
}

/** What is typed belongs to its conversation, survives switching and a reload, and is deleted on the way out. */
export async function drafts({ view, origin, chat, call, folder }) {
  const { page } = view;
  const [one, two] = [await customer(chat, call, "Nadia Falcón"), await customer(chat, call, "Ulises Bravo")];
  await one.write("Quiero devolver un puzle.");
  await two.write("¿Envolvéis para regalo?");
  await page.goto(`${origin}/app/1/inbox`);
  await row(page, one).click();
  await field(page, one).fill("Claro, tráelo cuando");
  await row(page, two).click();
  await field(page, two).waitFor();
  assert.equal(await field(page, two).inputValue(), "", "the draft follows into another conversation");
  await row(page, one).getByText("Draft").waitFor();
  await check(view, "inbox-draft", folder);
  await page.reload();
  await row(page, one).click();
  await field(page, one).waitFor();
  assert.equal(await field(page, one).inputValue(), "Claro, tráelo cuando");
  await page.goBack();
  await field(page, two).waitFor();
  assert.equal(await field(page, two).inputValue(), "");
  await page.goForward();
  // Read with the keyboard: the next one, the one before, and the text field.
  await page.locator("body").press("j");
  await page.locator("body").press("k");
  await field(page, one).waitFor();
  await page.locator("body").press("r");
  await page.keyboard.type(" puedas.");
  assert.equal(await field(page, one).inputValue(), "Claro, tráelo cuando puedas.");
  await page.waitForFunction(() => sessionStorage.getItem("svc-drafts")?.includes("puedas"));
  await page.evaluate(() => document.querySelector("a[href$='/sign-out']").addEventListener("click", (event) => event.preventDefault()));
  await page.evaluate(() => document.querySelector("a[href$='/sign-out']").click());
  assert.equal(await page.evaluate(() => sessionStorage.getItem("svc-drafts")), null, "a draft is left after signing out");
}

/** A conversation is closed with a reason, opened again and snoozed; a note stands among its messages. */
export async function states({ view, origin, chat, call, folder }) {
  const { page } = view;
  const person = await customer(chat, call, "Irene Lozano");
  await person.write("Ya llegó, muchas gracias.");
  await page.goto(`${origin}/app/1/inbox`);
  await row(page, person).click();
  await log(page).getByText("Ya llegó, muchas gracias.").waitFor();
  await page.locator("body").press("n");
  await page.getByLabel("Note for the team").fill("Cliente del colegio: factura a fin de mes.");
  await page.keyboard.press("Enter");
  await log(page).getByText("Cliente del colegio: factura a fin de mes.").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("body").press("e");
  await page.getByRole("dialog").getByLabel("Reason").fill("El pedido llegó.");
  await check(view, "inbox-close", folder);
  await page.getByRole("button", { name: "Close conversation" }).click();
  await page.getByText("Closed: El pedido llegó.").waitFor();
  await page.getByRole("link", { name: "Closed", exact: true }).click();
  await row(page, person).click();
  await check(view, "inbox-closed", folder);
  await page.getByRole("button", { name: "Reopen" }).click();
  await page.getByText("Closed: El pedido llegó.").waitFor({ state: "detached" });
  await page.locator("summary").filter({ hasText: "Snooze" }).click();
  await page.getByRole("button", { name: "Until tomorrow, 9:00" }).first().click();
  await page.getByText(/Snoozed until/).waitFor();
  await page.getByRole("link", { name: "Snoozed", exact: true }).click();
  await row(page, person).waitFor();
  // A new message opens it, and the search finds it.
  await person.write("Una pregunta más sobre la xilofonista.");
  await page.goto(`${origin}/app/1/inbox`);
  await row(page, person).waitFor();
  await page.locator("body").press("/");
  await page.keyboard.type("xilofonista");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: /xilofonista/ }).first().click();
  await log(page).locator("article").filter({ hasText: "xilofonista" }).waitFor();
  await check(view, "inbox-search", folder);
  await page.goto(`${origin}/app/1/inbox?q=palabraquenadiedijo`);
  await page.getByText("No message has these words").waitFor();
  await check(view, "inbox-search-empty", folder);
}

/** A quick reply is found by `/`, asks for what it needs, and is filled for the contact. A template follows. */
export async function quickReply({ view, origin, chat, call, folder }) {
  const { page } = view;
  const person = await customer(chat, call, "Samuel Ibarra");
  const shortcode = `llega${Date.now() % 1e6}`;
  await call("POST", "/quick-replies", { shortcode, title: "Entrega", body: "Hola {{contact.$name|}}, tu pedido {{ask.pedido}} llega mañana." });
  await person.write("¿Cuándo llega mi pedido?");
  await page.goto(`${origin}/app/1/inbox`);
  await row(page, person).click();
  await field(page, person).pressSequentially(`/${shortcode.slice(0, 7)}`);
  await page.getByRole("option", { name: new RegExp(shortcode) }).waitFor();
  await check(view, "inbox-quick-replies", folder);
  await page.keyboard.press("Enter");
  await page.getByLabel("pedido", { exact: true }).fill("1042");
  await page.getByText("Hola Samuel Ibarra, tu pedido 1042 llega mañana.").waitFor();
  await check(view, "inbox-quick-reply", folder);
  await page.keyboard.press("Enter");
  await log(page).getByText("Hola Samuel Ibarra, tu pedido 1042 llega mañana.").waitFor();
  await page.getByRole("button", { name: "Template", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Template", { exact: true }).waitFor();
  const inputs = dialog.getByRole("textbox");
  for (let at = 0; at < (await inputs.count()); at++) await inputs.nth(at).fill(at === 0 ? "Samuel" : "1042");
  await check(view, "inbox-template", folder);
  await dialog.getByRole("button", { name: "Send template" }).click();
  await log(page).getByText(/Template order_update/).waitFor();
}

/** On a phone: the list, a conversation, the contact, and back by the gesture. */
export async function phone({ browser, origin, state, chat, call, folder }) {
  const view = await open(browser, origin, { width: 360, state });
  const { page } = view;
  const person = await customer(chat, call, "Olga Miranda");
  await person.write("Hola, ¿abrís hoy?");
  await page.goto(`${origin}/app/1/inbox`);
  await row(page, person).tap();
  await log(page).getByText("Hola, ¿abrís hoy?").waitFor();
  assert.equal(await row(page, person).isVisible(), false);
  await check(view, "inbox-phone", folder);
  await page.getByLabel("More actions").tap();
  await check(view, "inbox-phone-menu", folder);
  await page.getByRole("button", { name: "Contact", exact: true }).tap();
  await page.getByText("Contact since").waitFor();
  await check(view, "inbox-phone-contact", folder);
  await page.goBack();
  await field(page, person).fill("Sí, hasta las 20:00.");
  await page.getByRole("button", { name: "Send", exact: true }).tap();
  await log(page).getByText("Sí, hasta las 20:00.").waitFor();
  await page.goBack();
  await row(page, person).waitFor();
  await page.goForward();
  await page.getByRole("button", { name: "Conversations" }).tap();
  await row(page, person).waitFor();
  await check(view, "inbox-phone-list", folder);
  await view.context.close();
}

/** Two people open one conversation: each sees that the other is there, writes, and leaves. */
export async function together({ browser, origin, view, chat, call, folder }) {
  const { page } = view;
  const person = await customer(chat, call, "Pilar Sáenz");
  await person.write("¿Hacéis envíos a Canarias?");
  const ines = await invite({ browser, origin, page }, { name: "Inés Prado", email: `ines-${Date.now()}@example.com`, role: "agent" });
  for (const one of [page, ines.page]) {
    await one.goto(`${origin}/app/1/inbox`);
    await row(one, person).click();
    await log(one).getByText("¿Hacéis envíos a Canarias?").waitFor();
  }
  await ines.page.getByText("Marta Ruiz also has this open").waitFor();
  await page.getByText("Inés Prado also has this open").waitFor();
  await check(view, "inbox-together", folder);
  await field(ines.page, person).fill("Sí, en tres días.");
  await page.getByText("Inés Prado is writing a reply").waitFor();
  await ines.page.getByRole("link", { name: "Home", exact: true }).first().click();
  await page.getByText(/^Inés Prado (is writing|also has)/).waitFor({ state: "detached" });
  await ines.context.close();
}
