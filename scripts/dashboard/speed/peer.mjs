// PocketBase's own dashboard, measured as ours: a list of records.

import assert from "node:assert/strict";
import { load } from "./first-view.mjs";
import { median, number, spread } from "./table.mjs";

const SUPERUSER = { identity: "bench@example.com", password: "bench-bench-bench" };
const RECORDS = 60;

async function fill(origin) {
  const ask = async (path, body, token) => {
    const response = await fetch(origin + path, { method: "POST", headers: { "content-type": "application/json", ...(token && { authorization: token }) }, body: JSON.stringify(body) });
    const answer = await response.json();
    assert(response.ok, `${path}: ${JSON.stringify(answer)}`);
    return answer;
  };
  const { token } = await ask("/api/collections/_superusers/auth-with-password", SUPERUSER);
  const fields = [["number", "text"], ["customer", "text"], ["city", "text"], ["amount", "number"], ["ordered_on", "date"]].map(([name, type]) => ({ name, type }));
  await ask("/api/collections", { name: "orders", type: "base", fields }, token);
  for (let at = 0; at < RECORDS; at++) await ask("/api/collections/orders/records", { number: `A-${at}`, customer: `Customer ${at}`, city: "Vigo", amount: at, ordered_on: "2026-01-15" }, token);
}

async function signIn(site, origin) {
  const context = await site.browser.newContext();
  const page = await context.newPage();
  await page.goto(`${origin}/_/`);
  await page.locator("input[name=identity]").fill(SUPERUSER.identity);
  await page.locator("input[name=password]").fill(SUPERUSER.password);
  await page.keyboard.press("Enter");
  await page.locator("[data-collection-id]").first().waitFor();
  const state = await context.storageState();
  await context.close();
  return state;
}

export async function measurePeer({ site, table, peer, times }) {
  if (!peer) return table.state("PocketBase", "not there");
  await fill(peer);
  const state = await signIn(site, peer);
  const page = { address: `${peer}/_/#/collections?collection=orders`, state, ready: { css: "tr.handle" }, control: { css: ".new-record-btn" }, effect: { css: "[data-pb=recordUpsertModal]" } };
  for (const { isSlow, name, count } of [{ isSlow: false, name: "on this machine", count: times }, { isSlow: true, name: "slowed", count: Math.max(1, Math.ceil(times / 2)) }]) {
    const all = [];
    for (let time = 0; time < count; time++) all.push(await load(site, { ...page, isSlow }));
    const { shift } = await load(site, { ...page, isSlow, control: undefined });
    if (!isSlow) table.state("PocketBase, records of a collection: bytes until it is usable, kB", number(median(all.map(({ bytes }) => bytes)) / 1000));
    table.state(`PocketBase, records of a collection, ${name}: first paint, ms`, spread(all.map(({ paint }) => paint)));
    table.state(`PocketBase, records of a collection, ${name}: usable, ms`, spread(all.map(({ usable }) => usable)));
    table.state(`PocketBase, records of a collection, ${name}: layout shift, score`, number(shift));
  }
  return undefined;
}
