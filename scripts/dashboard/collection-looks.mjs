// The journeys through what is done with many records of a collection: undo, bulk changes, the board and the calendar.

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
async function stored(read, isSo, what) {
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
