// The journeys through changes of many records of a collection, and through undo.

import assert from "node:assert/strict";
import { check } from "./checks.mjs";

const TOYS = ["Wooden train", "Tin robot", "Rocking horse", "Music box", "Doll's house", "Puppet theatre", "Spinning top", "Model boat", "Teddy bear", "Kite", "Drum", "Marble run"];
const PEOPLE = ["Ana Torres", "Luis Marín", "Wen Zhao", "Carla Soto", "Iker Etxebarria", "Noor Haddad", "Jonas Weber"];
const day = (at) => `2026-11-${String(1 + (at % 28)).padStart(2, "0")}`;
const changes = (page, method = "PATCH") => page.waitForResponse((answer) => answer.request().method() === method && /\/items/.test(answer.url()));

/** Makes a collection of repairs, with a state and a day, and goes through a journey with it. */
export const withRepairs = (journey) => async (given) => {
  const choices = ["Received", "In repair", "Waiting for parts", "Done"].map((label, at) => ({ label, color: ["gray", "blue", "yellow", "green"][at] }));
  const fields = [
    { label: "Toy", type: "text", required: true }, { label: "Customer", type: "text" }, { label: "State", type: "select", options: { choices } }, { label: "Price", type: "currency", options: { currency: "EUR", precision: 2 } },
    { label: "Due on", type: "date" }, { label: "Paid", type: "boolean" }, { label: "Remarks", type: "long_text" },
  ];
  const collection = await given.call("POST", "/collections", { name: "Repairs", primary_field: "toy", fields });
  const states = ["received", "in_repair", "waiting_for_parts", "done"];
  const rows = Array.from({ length: 60 }, (_, at) => ({ data: { toy: `${TOYS[at % 12]} ${60 - at}`, customer: PEOPLE[at % 7], ...(at % 9 && { state: states[(at * 7) % 4] }), price: 8 + ((at * 37) % 90), due_on: at < 7 ? "2026-11-20" : day(at * 3), paid: at % 3 === 0 } }));
  await given.call("POST", `/collections/${collection.id}/items/bulk-create`, { rows });
  try {
    await journey({ ...given, collection, path: `/collections/${collection.id}/items`, here: `${given.origin}/app/1/collections/${collection.id}` });
  } finally {
    await given.call("DELETE", `/collections/${collection.id}`);
  }
};

/** Waits until the service has a record as it should be. */
export async function stored(read, isSo, what) {
  for (let tries = 0; !isSo(await read()); tries++) assert(tries < 500, what);
}

/** Changes that are taken back by key and by button, a record from the trash, and an undo that is refused. */
export async function undo({ view, call, folder, path, here }) {
  const { page } = view;
  const [item] = await call("GET", `${path}?limit=1`);
  const read = async () => (await call("GET", `${path}/${item.id}`)).data;
  await page.goto(`${here}?columns=toy,customer,price,state`);
  const grid = page.getByRole("grid");
  const first = grid.locator("[aria-rowindex='2']");
  await first.getByText(item.title, { exact: true }).waitFor();
  await grid.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.type("Marta");
  await page.keyboard.press("Enter");
  await page.getByText(`Customer of ${item.title} changed`).waitFor();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowRight");
  await Promise.all([changes(page), page.keyboard.press("Delete")]);
  await page.getByText(`Price of ${item.title} cleared`).waitFor();
  await check(view, "collection-undo", folder);
  // In a text, the key is the browser's.
  await page.keyboard.press("Enter");
  await page.keyboard.type("7");
  await page.keyboard.press("Control+z");
  await page.keyboard.press("Escape");
  assert.equal((await read()).price, undefined);
  await page.keyboard.press("Control+z");
  await page.getByText(`Undone: Price of ${item.title} cleared`).waitFor();
  assert.equal((await read()).price, item.data.price);
  await page.getByRole("button", { name: "Undo one more" }).click();
  await first.getByText(item.data.customer).waitFor();
  await stored(read, ({ customer }) => customer === item.data.customer, "the customer is back");

  // What somebody else has written stays.
  await grid.focus();
  await page.keyboard.type("50");
  await page.keyboard.press("Enter");
  await page.getByText(`Price of ${item.title} changed`, { exact: true }).waitFor();
  await call("PATCH", `${path}/${item.id}`, { data: { price: 60 } });
  await page.getByRole("button", { name: "Undo", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("€60.00").waitFor();
  await dialog.getByText("€50.00").waitFor();
  await check(view, "collection-undo-refused", folder);
  await dialog.getByRole("button", { name: "Keep theirs" }).click();
  await page.getByText(`Not undone: Price of ${item.title}`).waitFor();
  assert.equal((await read()).price, 60);
  await first.getByText("€60.00").waitFor();

  await page.goto(`${here}/items/${item.id}`);
  await page.getByRole("button", { name: "Move to trash" }).click();
  await dialog.getByRole("button", { name: "Move to trash" }).click();
  await page.getByText(`${item.title} moved to the trash`).waitFor();
  await first.getByText(item.title, { exact: true }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo", exact: true }).click();
  await first.getByText(item.title, { exact: true }).waitFor();
  assert.equal((await call("GET", `${path}/${item.id}`)).trashed_at, null);
}

/** Many records are changed, cleared, moved to the trash and brought back; one that is locked stays chosen with the reason. */
export async function bulk({ view, call, folder, collection, path, here }) {
  const { page } = view;
  const items = await call("GET", `${path}?limit=100`);
  const grid = page.getByRole("grid");
  const dialog = page.getByRole("dialog");
  const box = (at) => page.getByRole("checkbox", { name: `Choose ${items[at].title}`, exact: true });
  const states = async (from, to) => (await call("GET", `${path}?limit=100`)).slice(from, to).map(({ data }) => data.state ?? null);
  await page.goto(`${here}?columns=toy,customer,state,price,due_on`);
  await box(0).click();
  await box(5).click({ modifiers: ["Shift"] });
  await page.getByText("6 chosen").waitFor();
  await check(view, "collection-chosen", folder);
  await page.getByRole("button", { name: "Set a field" }).click();
  await dialog.getByLabel("Field").selectOption("state");
  await dialog.getByLabel("New value").selectOption("done");
  await check(view, "collection-bulk-set", folder);
  await dialog.getByRole("button", { name: "Change 6 records" }).click();
  await page.getByText("State changed in").waitFor();
  assert.deepEqual(await states(0, 6), Array(6).fill("done"));
  await page.getByRole("button", { name: "Undo", exact: true }).click();
  await page.getByText("Undone: State changed in").waitFor();
  assert.deepEqual(await states(0, 6), items.slice(0, 6).map(({ data }) => data.state ?? null));

  // By keyboard, with a record that somebody has locked.
  await call("POST", `${path}/${items[2].id}/lock`);
  await grid.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+Space");
  for (const _ of [1, 2, 3]) await page.keyboard.press("Shift+ArrowDown");
  await page.getByText("4 chosen").waitFor();
  await page.getByRole("button", { name: "Clear a field" }).click();
  await dialog.getByLabel("Field").selectOption("customer");
  await dialog.getByRole("button", { name: "Clear it in 4 records" }).click();
  const failures = page.getByRole("alert");
  await failures.getByText("1 record was not changed").waitFor();
  await failures.getByText(items[2].title).waitFor();
  await page.getByText("1 chosen").waitFor();
  await check(view, "collection-bulk-failed", folder);
  assert.deepEqual((await call("GET", `${path}?limit=4`)).map(({ data }) => data.customer ?? null), [null, null, items[2].data.customer, null]);
  await call("POST", `${path}/${items[2].id}/unlock`);
  await page.keyboard.press("Escape");

  // A value that does not fit is refused at its field, and nothing is changed.
  await grid.focus();
  await page.keyboard.press("Control+a");
  await page.getByText(`${items.length} chosen`).waitFor();
  await page.getByRole("button", { name: "Set a field" }).click();
  await dialog.getByLabel("Field").selectOption("price");
  await dialog.getByLabel("New value").fill("cheap");
  await dialog.getByRole("button", { name: `Change ${items.length} records` }).click();
  await dialog.getByText("Must be a number").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Move to trash" }).click();
  await dialog.getByText(`Move ${items.length} records of ${collection.name} to the trash?`).waitFor();
  await check(view, "collection-bulk-trash", folder);
  await dialog.getByRole("button", { name: `Move ${items.length} records` }).click();
  await page.getByText("No record yet").waitFor();
  await page.getByRole("button", { name: "Undo", exact: true }).click();
  await grid.getByText(items[0].title, { exact: true }).waitFor();
  assert.equal((await call("GET", `${path}?limit=100`)).length, items.length);

  await call("POST", `${path}/bulk-delete`, { ids: items.slice(0, 8).map(({ id }) => id) });
  await page.goto(`${here}/trash`);
  await page.getByRole("checkbox").nth(0).click();
  await page.getByRole("checkbox").nth(4).click({ modifiers: ["Shift"] });
  await check(view, "collection-trash-chosen", folder);
  await page.getByRole("button", { name: "Restore 5 records" }).click();
  await page.getByText("5 records are back.").waitFor();
  assert.equal((await call("GET", `${path}?limit=100`)).length, items.length - 3);
}

/** On a phone, records are chosen by their cards. */
export async function bulkOnPhone({ view, call, folder, path, here }) {
  const { page } = view;
  const items = await call("GET", `${path}?limit=3`);
  await page.goto(here);
  for (const { title } of items) await page.getByRole("checkbox", { name: `Choose ${title}`, exact: true }).click();
  await page.getByText("3 chosen").waitFor();
  await check(view, "collection-chosen", folder);
  await page.getByRole("button", { name: "Set a field" }).click();
  await page.getByRole("dialog").getByLabel("Field").selectOption("paid");
  await page.getByRole("dialog").getByLabel("New value").selectOption("true");
  await check(view, "collection-bulk-set", folder);
  await page.getByRole("button", { name: "Change 3 records" }).click();
  await page.getByText("Paid changed in").waitFor();
  await check(view, "collection-bulk-done", folder);
  assert.deepEqual((await call("GET", `${path}?limit=3`)).map(({ data }) => data.paid), [true, true, true]);
}
