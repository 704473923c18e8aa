// The journeys through Collections.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { check, settled } from "./checks.mjs";

const CITIES = ["Madrid", "Vigo", "Sevilla", "Valencia", "Bilbao"];
const api = (page, method) => page.waitForResponse((answer) => answer.request().method() === method && /\/items/.test(answer.url()));

/** Makes a collection of many orders, every eleventh without an amount. */
export async function manyOrders(call, count) {
  const { id } = await call("POST", "/collections", { name: `Orders of ${count}`, fields: [{ label: "Number", type: "text", required: true }, { label: "Customer", type: "text" }, { label: "City", type: "text" }, { label: "Amount", type: "currency", options: { currency: "EUR", precision: 2 } }, { label: "Ordered on", type: "date" }] });
  for (let from = 0; from < count; from += 1000) {
    const rows = Array.from({ length: Math.min(1000, count - from) }, (_, at) => from + at).map((at) => ({
      data: { number: `A-${String(at + 1).padStart(6, "0")}`, customer: `Customer ${at % 97}`, city: CITIES[at % 5], ...(at % 11 && { amount: ((at * 7919) % 30000) / 100 }), ordered_on: `2026-${String(1 + (at % 12)).padStart(2, "0")}-15` },
    }));
    await call("POST", `/collections/${id}/items/bulk-create`, { rows });
  }
  return id;
}

/** Makes a collection with a field of each kind, and returns it. */
export async function allKinds(call, products) {
  const choices = ["Received", "In repair", "Done"].map((label) => ({ label }));
  const simple = ["long_text", "email", "url", "phone", "number", "percent", "rating", "duration", "integer", "auto_number", "boolean", "date", "datetime", "time", "tags", "contact", "user", "file", "json", "created_at", "updated_at"];
  const fields = [
    { label: "Toy", type: "text", required: true }, ...simple.map((type) => ({ label: `A ${type.replaceAll("_", " ")}`, field_key: `f_${type}`, type })), { label: "Author", type: "created_by" },
    { label: "Price", type: "currency", options: { currency: "EUR", precision: 2 } }, { label: "Status", type: "select", options: { choices } }, { label: "Steps", type: "multi_select", options: { choices } },
    { label: "Parts", type: "relation", options: { target_collection_id: products } }, { label: "Gross", type: "formula", options: { expression: "round({price} * 1.21, 2)" } },
    { label: "Cost", type: "rollup", options: { relation: "parts", field: "price", aggregate: "sum" } }, { label: "Names", type: "lookup", options: { relation: "parts", field: "name" } },
  ];
  const collection = await call("POST", "/collections", { name: "Workshop", primary_field: "toy", fields });
  const rows = Array.from({ length: 45 }, (_, at) => ({ data: { toy: `Toy ${45 - at}`, f_long_text: at % 3 ? "The left wheel is loose." : "", price: 10 + at, status: "received", f_boolean: at % 2 === 0, f_rating: at % 6, f_date: "2026-11-20", parts: [1 + at, 2 + at] } }));
  await call("POST", `/collections/${collection.id}/items/bulk-create`, { rows });
  return collection;
}

/** A long list: scrolled, its last row by one key, filtered and sorted in the address, and had as curl. */
export async function longGrid({ view, origin, key, folder, id, count }) {
  const { page } = view;
  const number = (n) => `A-${String(n).padStart(6, "0")}`;
  await page.goto(`${origin}/app/1/collections/${id}`);
  const grid = page.getByRole("grid");
  await grid.getByText(number(count)).waitFor();
  await check(view, "collection-long", folder);
  for (const rows of [60, 160, 260, 360]) {
    // The list grows as its end comes near.
    await page.waitForFunction(({ y, text }) => ((document.querySelector("[role=grid]").scrollTop = y), [...document.querySelectorAll("[role=gridcell]")].some((cell) => cell.textContent === text)), { y: rows * 34, text: number(count - rows - 2) });
  }
  await grid.focus();
  await page.keyboard.press("End");
  await grid.getByText(number(1), { exact: true }).waitFor();
  assert((await page.locator("*").count()) <= 1500, "the document stays small");
  await page.keyboard.press("ArrowUp");
  assert.equal(await grid.locator("[aria-selected=true]").first().innerText(), number(2));
  await page.keyboard.press("Home");
  await grid.getByText(number(count), { exact: true }).waitFor();

  await page.getByRole("button", { name: "Filter" }).click();
  await page.getByRole("button", { name: "Add condition" }).click();
  await page.getByLabel("Field").selectOption("city");
  await page.getByLabel("Value").fill("Vigo");
  await page.getByLabel("Value").press("Enter");
  await page.getByRole("columnheader", { name: "Amount" }).getByRole("button").click();
  await page.waitForURL(/filter=.*sort=amount|sort=amount.*filter=/);
  await page.reload();
  await grid.getByText("Vigo").first().waitFor();
  assert.equal(await grid.getByText("Madrid").count(), 0);
  await grid.focus();
  // Records without a value are last in both directions.
  await page.keyboard.press("End");
  await page.getByText("Counted from the end").waitFor();
  await grid.locator(".at").getByText("A-").waitFor();
  const last = await grid.locator(".at").innerText();
  await page.getByRole("button", { name: "Filter (1)" }).click();
  await check(view, "collection-filter", folder);
  await page.getByRole("button", { name: "As curl" }).click();
  await page.getByRole("button", { name: "Go to the start" }).click();
  await grid.locator("[aria-rowindex='2'] [role=gridcell]").first().waitFor();
  const first = await grid.locator("[aria-rowindex='2'] [role=gridcell]").first().innerText();
  const command = await page.locator("pre").innerText();
  const answer = JSON.parse(execFileSync("sh", ["-c", command], { env: { ...process.env, API_KEY: key } }));
  assert.equal(answer.data[0].data.number, first);
  assert.notEqual(first, last);
  await check(view, "collection-curl", folder);
}

/** Cells of several kinds edited by keyboard, an empty text and no value, and two people who save one value. */
export async function cells({ view, origin, call, folder, collection }) {
  const { page } = view;
  const path = `/collections/${collection.id}/items`;
  const [item] = (await call("GET", `${path}?limit=1`));
  const read = async () => (await call("GET", `${path}/${item.id}`)).data;
  // A value is shown before the service has it.
  const stored = async (price) => {
    for (let tries = 0; (await read()).price !== price; tries++) assert(tries < 500, `the price is ${price}`);
  };
  await page.goto(`${origin}/app/1/collections/${collection.id}?columns=toy,f_long_text,price,status,f_boolean,f_rating,f_date,f_duration,f_tags,parts`);
  const grid = page.getByRole("grid");
  await grid.getByText(item.data.toy, { exact: true }).waitFor();
  await grid.focus();
  // A change for an older version is sent again by the page.
  const saved = () => page.waitForResponse((answer) => answer.request().method() === "PATCH" && /\/items/.test(answer.url()) && answer.status() !== 409);
  const type = async (keys, text, end = "Enter") => {
    for (const one of keys) await page.keyboard.press(one);
    if (text !== undefined) await page.keyboard.type(text);
    await Promise.all([saved(), page.keyboard.press(end)]);
    if (end === "Enter") await page.keyboard.press("ArrowUp");
  };
  await type(["Enter", "Control+a"], "Tin robot");
  await grid.getByText("Tin robot").waitFor();
  await type(["ArrowRight", "Enter", "Control+a", "Delete"], undefined, "Control+Enter");
  await grid.locator("[aria-rowindex='2']").getByText("empty text").waitFor();
  assert.equal((await read()).f_long_text, "");
  await page.keyboard.press("ArrowUp");
  await Promise.all([api(page, "PATCH"), page.keyboard.press("Delete")]);
  await grid.locator("[aria-rowindex='2']").getByText("empty text").waitFor({ state: "detached" });
  assert.equal("f_long_text" in (await read()), false);
  await type(["ArrowRight"], "12.5");
  await grid.getByText("€12.50").waitFor();
  await type(["ArrowRight", "Enter"], "done");
  await grid.locator("[aria-rowindex='2']").getByText("Done").waitFor();
  await Promise.all([api(page, "PATCH"), (async () => { await page.keyboard.press("ArrowRight"); await page.keyboard.press("Enter"); })()]);
  await type(["ArrowRight", "ArrowRight", "ArrowRight"], "1:30");
  await type(["ArrowRight"], "wood, gift");
  await grid.locator("[aria-rowindex='2']").getByText("gift").waitFor();
  const data = await read();
  assert.deepEqual([data.toy, data.price, data.status, data.f_duration, data.f_tags], ["Tin robot", 12.5, "done", 5400, ["wood", "gift"]]);
  await check(view, "collection-cells", folder);

  // What the service refuses stays with its reason.
  await page.keyboard.press("Control+ArrowLeft");
  for (const _ of [1, 2]) await page.keyboard.press("ArrowRight");
  await page.keyboard.type("many");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("must be a number").waitFor();
  await check(view, "collection-refused", folder);
  await page.getByRole("button", { name: "Edit again" }).click();
  assert.equal(await grid.getByRole("textbox").inputValue(), "many");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Discard" }).click();
  await grid.focus();
  // A change of another field is kept; one of the same field is shown.
  await page.keyboard.type("20");
  await call("PATCH", `${path}/${item.id}`, { data: { toy: "Tin robot of Luis" } });
  await page.keyboard.press("Enter");
  await grid.getByText("Tin robot of Luis").waitFor();
  await stored(20);
  assert.equal((await read()).toy, "Tin robot of Luis");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.type("30");
  await call("PATCH", `${path}/${item.id}`, { data: { price: 25 } });
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("€25.00").waitFor();
  await dialog.getByText("€30.00").waitFor();
  await check(view, "collection-conflict", folder);
  await dialog.getByRole("button", { name: "Save mine" }).click();
  await grid.getByText("€30.00").waitFor();
  await stored(30);
  await page.goto(`${origin}/app/1/collections/${collection.id}`);
  await grid.getByText("Tin robot of Luis").waitFor();
  await check(view, "collection-kinds", folder);
}

/** A record with a comment and its history, moved to the trash and restored. */
export async function record({ view, origin, call, folder, collection }) {
  const { page } = view;
  const details = page.getByRole("region", { name: "Details" });
  const [, item] = await call("GET", `/collections/${collection.id}/items?limit=2`);
  await call("PATCH", `/collections/${collection.id}/items/${item.id}`, { data: { price: 99 } });
  await page.goto(`${origin}/app/1/collections/${collection.id}/items/${item.id}`);
  await page.getByRole("heading", { name: item.title }).waitFor();
  await check(view, "record", folder);
  await details.getByRole("link", { name: "Comments" }).click();
  await page.getByLabel("Comment").fill("The customer will call again.");
  await page.getByRole("button", { name: "Add comment" }).click();
  await page.getByText("The customer will call again.", { exact: true }).first().waitFor();
  await page.getByRole("button", { name: "Resolve" }).waitFor();
  await check(view, "record-comment", folder);
  await details.getByRole("link", { name: "Activity" }).click();
  await page.getByRole("button", { name: "Restore Price of before" }).click();
  await page.getByText("Changed").nth(1).waitFor();
  await check(view, "record-activity", folder);
  assert.equal((await call("GET", `/collections/${collection.id}/items/${item.id}`)).data.price, item.data.price);
  for (const part of ["Files", "Links"]) {
    await details.getByRole("link", { name: part, exact: true }).click();
    await settled(page);
    await check(view, `record-${part.toLowerCase()}`, folder);
  }
  await page.getByRole("button", { name: "Move to trash" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Move to trash" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.goto(`${origin}/app/1/collections/${collection.id}/trash`);
  await page.getByText(item.title, { exact: true }).waitFor();
  await check(view, "collection-trash", folder);
  await page.getByRole("button", { name: `Restore ${item.title}` }).click();
  await page.getByText("The trash is empty").waitFor();
  assert.equal((await call("GET", `/collections/${collection.id}/items/${item.id}`)).trashed_at, null);
}

/** A field with choices is created, and a file with mistakes is imported. */
export async function fieldsAndImport({ view, origin, call, folder, collection }) {
  const { page } = view;
  await page.goto(`${origin}/app/1/collections/${collection.id}/fields`);
  await page.getByRole("button", { name: "Add field" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name", { exact: true }).fill("Shelf");
  await form.getByLabel("Kind").selectOption("select");
  for (const choice of ["Left", "Right"]) {
    await form.getByLabel("Name of a new choice").fill(choice);
    await form.getByRole("button", { name: "Add choice" }).click();
  }
  await check(view, "field-create", folder);
  await form.getByRole("button", { name: "Add field" }).click();
  await page.getByRole("button", { name: "Shelf", exact: true }).waitFor();
  const { fields } = await call("GET", `/collections/${collection.id}`);
  assert.deepEqual(fields.at(-1).options.choices.map(({ label }) => label), ["Left", "Right"]);

  await page.goto(`${origin}/app/1/collections/${collection.id}/imports`);
  await page.getByRole("button", { name: "Import file" }).first().click();
  const rows = ["Toy;Cost in euro;Shelf;Remark", "Kite;4,50;Left;red", "Drum;much;Left;blue", ";3,00;Right;green", "Top;2,00;Right;"].join("\n");
  await form.getByLabel("Or paste rows").fill(rows);
  await form.getByRole("button", { name: "Read the file" }).click();
  await form.getByLabel("Field of column Cost in euro").selectOption("price");
  await form.getByRole("button", { name: "Try again" }).click();
  await form.getByText("reject 2").waitFor();
  await check(view, "import-try", folder);
  await form.getByRole("button", { name: "Import 2 records" }).click();
  await page.locator("dl").getByText("Completed with errors").waitFor();
  await page.getByText("Row 2", { exact: true }).or(page.getByText("Row 3", { exact: true })).first().waitFor();
  await check(view, "import-report", folder);
  const found = await call("GET", `/collections/${collection.id}/items/search?q=Kite`);
  assert.equal(found[0].data.price, 4.5);
}
