// The journeys through Shell, Inspector and Inbound webhooks.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { check, settled } from "./checks.mjs";

const operation = (page) => page.getByRole("combobox", { name: "Operation" });
const answer = (page) => page.getByRole("region", { name: "Answer" });

/** An operation is completed by its name, sent in the test environment, refused with a reason, and asked about before it destroys. */
export async function shell({ view, origin, folder, call }) {
  const { page } = view;
  await page.goto(`${origin}/app/1/developers/shell`);
  await operation(page).waitFor();
  await page.getByRole("link", { name: "createContact", exact: false }).first().waitFor();
  await check(view, "shell", folder);
  await operation(page).fill("create conta");
  await page.getByRole("option", { name: /^POST createContact / }).first().waitFor();
  await check(view, "shell-completion", folder);
  await page.getByRole("option", { name: /^POST createContact / }).first().click();
  await page.waitForURL(/operation=createContact$/);
  const body = page.getByLabel("Body", { exact: true });

  // A mistake in the JSON is shown where it is, and nothing is sent.
  await body.fill('{\n  "data": {\n    "$name": "Elena Prats",\n  }\n}');
  await page.getByText("Line 4:").waitFor();
  await page.getByRole("button", { name: /^Send/ }).click();
  assert.equal(await answer(page).count(), 0);
  await check(view, "shell-mistake", folder);
  const email = `elena.prats.${Date.now()}@example.com`;
  await body.fill(JSON.stringify({ data: { $name: "Elena Prats", $email: email } }));
  await page.getByRole("button", { name: /^Send/ }).click();
  await answer(page).getByText("201 Created").waitFor();
  await answer(page).getByText("Test", { exact: true }).waitFor();
  await check(view, "shell-answer", folder);
  await answer(page).getByRole("button", { name: /^Headers/ }).click();
  await answer(page).getByText("x-request-id").waitFor();

  // The same request again is refused, with the reason of the API.
  await page.getByRole("button", { name: /^Send/ }).click();
  await answer(page).getByText("duplicate_value").first().waitFor();
  await check(view, "shell-refused", folder);
  // The history brings the answer before back.
  await page.getByRole("region", { name: "History" }).getByRole("button").nth(1).click();
  await answer(page).getByText("201 Created").waitFor();
  await page.getByRole("button", { name: "Copy as curl" }).waitFor();
  const command = await page.locator("textarea.visually-hidden").first().inputValue();
  assert(command.includes("Bearer $KEY") && !command.includes("eyJ"), command);

  // What reaches people is refused in the test environment.
  const contact = (await call("GET", `/contacts/email:${email}`)).id;
  await page.goto(`${origin}/app/1/developers/shell?operation=sendContactMessage&contactId=${contact}`);
  await page.getByText("The test environment refuses this operation").waitFor();
  await page.getByRole("button", { name: /^Send/ }).click();
  await answer(page).getByText("test_mode_restricted").first().waitFor();

  // A required value is asked for; what cannot be taken back is confirmed; the address holds the request.
  await page.goto(`${origin}/app/1/developers/shell?operation=deleteContact`);
  await page.getByRole("button", { name: /^Send/ }).click();
  await page.getByText("The request needs a value here.").waitFor();
  await page.getByLabel("contactId").fill(String(contact));
  await page.getByLabel("Live", { exact: true }).check();
  await page.getByRole("button", { name: /^Send/ }).click();
  await page.getByRole("heading", { name: "Send deleteContact?" }).waitFor();
  assert(page.url().includes(`contactId=${contact}`) && page.url().includes("env=live"), page.url());
  await check(view, "shell-confirm", folder);
  await page.getByRole("button", { name: "Cancel" }).click();
  assert.equal(await answer(page).count(), 0);
  await page.getByRole("button", { name: /^Send/ }).click();
  await page.getByRole("button", { name: "Send DELETE" }).click();
  await answer(page).getByText("200 OK").waitFor();
}

/** The same by the keyboard alone. */
export async function shellByKeyboard({ view, origin }) {
  const { page } = view;
  await page.goto(`${origin}/app/1/developers/shell`);
  await operation(page).waitFor();
  await page.waitForFunction(() => document.activeElement?.getAttribute("role") === "combobox");
  await page.keyboard.type("list contacts");
  await page.keyboard.press("Enter");
  await page.waitForURL(/operation=listContacts/);
  await page.keyboard.press("Control+Enter");
  await answer(page).getByText("200 OK").waitFor();
  await operation(page).focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.type("getcontact");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await page.waitForURL(/operation=getContact$/);
  for (let presses = 0; presses < 12 && !(await page.getByLabel("contactId").evaluate((field) => field === document.activeElement)); presses++) await page.keyboard.press("Tab");
  await page.keyboard.type("999999999");
  await page.keyboard.press("Control+Enter");
  await answer(page).getByText("404 Not found").waitFor();
}

/** An id of an event opens the event; an id in it opens the next object; a number asks what it is; the palette finds both. */
export async function inspector({ view, origin, folder, call }) {
  const { page } = view;
  const created = await call("POST", "/contacts", { data: { $name: "Nuria Soler" } });
  const [event] = (await call("GET", `/events?contact_id=${created.id}&limit=1`)) ?? [];
  await page.goto(`${origin}/app/1/developers/inspector`);
  await page.getByLabel("Id", { exact: true }).waitFor();
  await settled(page);
  await check(view, "inspector", folder);
  await page.getByLabel("Id", { exact: true }).fill(event.id);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Event", exact: true }).waitFor();
  await page.getByRole("heading", { name: /^Deliveries/ }).waitFor();
  await settled(page);
  await check(view, "inspector-event", folder);
  await page.getByRole("region", { name: "Object" }).getByRole("link", { name: String(created.id), exact: true }).first().click();
  await page.waitForURL(`${origin}/app/1/developers/inspector/contact/${created.id}`);
  await page.getByRole("heading", { name: "Contact", exact: true }).waitFor();
  await page.getByRole("table", { name: "Events" }).getByRole("link").first().waitFor();
  await settled(page);
  await check(view, "inspector-contact", folder);

  await page.getByLabel("Id", { exact: true }).fill(String(created.id));
  await page.keyboard.press("Enter");
  await page.getByText("Each kind of object has numbers of its own.").waitFor();
  await check(view, "inspector-number", folder);
  await page.getByRole("link", { name: "Contact", exact: true }).click();
  await page.getByRole("heading", { name: "Contact", exact: true }).waitFor();
  await page.getByLabel("Id", { exact: true }).fill("evt_00000000000000000000000000");
  await page.getByRole("button", { name: "Inspect" }).click();
  await page.getByText("There is no Event").waitFor();
  await check(view, "inspector-missing", folder);
  await page.getByLabel("Id", { exact: true }).fill("nothing like an id");
  await page.keyboard.press("Enter");
  await page.getByText("No id of this service looks like that").waitFor();

  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search" }).fill(event.id);
  await page.keyboard.press("Enter");
  await page.waitForURL(`${origin}/app/1/developers/events/${event.id}`);
  await page.getByRole("heading", { name: "Payload" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search" }).fill(event.request.id);
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(`developers/(logs|inspector)/${event.request.id}`));
}

/** An inbound webhook is created; a signed request appears; a forged one says why it was rejected; a mapping is tried and stored. */
export async function inboundWebhooks({ view, origin, folder }) {
  const { page } = view;
  const secret = "redsys-7f21-firma";
  const send = (url, body, key) => fetch(url, { method: "POST", headers: { "content-type": "application/json", "x-signature": createHmac("sha256", key).update(body).digest("hex") }, body });
  await page.goto(`${origin}/app/1/developers/inbound`);
  await settled(page);
  await check(view, "inbound", folder);
  await page.getByRole("button", { name: "Create inbound webhook" }).first().click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name", { exact: true }).fill("Pagos de la tienda");
  await form.getByLabel("Secret").fill(secret);
  await form.getByText("Duplicates, answer and limits").click();
  await form.getByLabel("Allowed addresses").fill("nowhere");
  await form.getByRole("button", { name: "Create inbound webhook" }).click();
  await form.getByRole("alert").waitFor();
  assert.equal(await form.getByLabel("Allowed addresses").getAttribute("aria-invalid"), "true");
  await check(view, "inbound-refused", folder);
  await form.getByLabel("Allowed addresses").fill("");
  await form.getByRole("button", { name: "Create inbound webhook" }).click();
  await page.getByRole("heading", { level: 1, name: "Pagos de la tienda" }).waitFor();
  await page.getByText("Nothing was received yet").waitFor();
  await check(view, "inbound-empty", folder);

  // The address is hidden until it is asked for.
  const address = page.getByLabel("Address", { exact: true });
  assert((await address.innerText()).endsWith("••••••••"));
  await page.getByRole("button", { name: "Reveal" }).click();
  const url = await address.innerText();
  assert.match(url, /\/hooks\/[\w-]{20,}$/);
  await page.getByRole("button", { name: "Hide" }).click();

  assert.equal((await send(url, '{"id": 1, "total": "19.90", "status": "paid"}', secret)).status, 202);
  assert.equal((await send(url, '{"id": 2, "total": "5.00", "status": "paid"}', "another secret")).status, 400);
  await page.getByRole("table", { name: "Received requests" }).getByText("Accepted").waitFor();
  await page.getByRole("table", { name: "Received requests" }).getByText("The signature is wrong").first().waitFor();
  await check(view, "inbound-requests", folder);
  await page.getByRole("table", { name: "Received requests" }).getByRole("link", { name: "Rejected" }).first().click();
  await page.getByText("The sender signs with another secret").waitFor();
  await settled(page);
  await check(view, "inbound-rejected", folder);
  await page.goto(page.url().replace(/\/whr_.*/, ""));
  await page.getByRole("table", { name: "Received requests" }).getByRole("link", { name: "Accepted" }).first().click();
  await page.getByRole("region", { name: "Payload" }).getByText('"total": "19.90"').waitFor();
  await page.getByRole("definition").getByRole("link", { name: /^evt_/ }).waitFor();

  await page.getByRole("button", { name: "Add mapping" }).click();
  const mapping = page.getByRole("dialog");
  await mapping.getByRole("button", { name: "Add variable" }).click();
  await mapping.getByLabel("Name of the variable").nth(1).fill("total");
  await mapping.getByLabel("Source").nth(1).fill("$.total");
  await mapping.getByLabel("Type", { exact: true }).nth(1).selectOption("number");
  await mapping.getByRole("button", { name: "Add condition" }).click();
  await mapping.getByLabel("Source").nth(2).fill("$.status");
  await mapping.getByLabel("Value").fill("paid");
  await mapping.getByRole("button", { name: "JSON" }).click();
  assert.deepEqual(JSON.parse(await mapping.getByLabel("Mapping", { exact: true }).inputValue()), {
    conditions: [{ from: "$.status", op: "eq", value: "paid" }], vars: { id: { from: "$.id" }, total: { from: "$.total", type: "number" } },
  });
  await mapping.getByRole("button", { name: "Form" }).click();
  await page.getByRole("button", { name: "Try on received requests" }).click();
  await page.getByRole("region", { name: "Result" }).getByText("Mapped").first().waitFor();
  await check(view, "inbound-mapping", folder);
  await page.getByRole("button", { name: "Save mapping" }).click();
  await page.getByRole("button", { name: "Edit mapping" }).waitFor();

  await page.getByRole("button", { name: "Replace address" }).click();
  await page.getByRole("dialog").getByLabel("Accept the old address for").selectOption("0");
  await page.getByRole("dialog").getByRole("button", { name: "Replace address" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.equal((await send(url, "{}", secret)).status, 404);
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.getByRole("dialog").getByLabel("Name", { exact: true }).fill("Pagos");
  await page.getByRole("dialog").getByRole("button", { name: "Save changes" }).click();
  await page.getByRole("heading", { level: 1, name: "Pagos", exact: true }).waitFor();
  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByRole("button", { name: "Disable inbound webhook" }).click();
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByRole("button", { name: "Disable" }).waitFor();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete inbound webhook" }).click();
  await page.waitForURL(`${origin}/app/1/developers/inbound`);
}
