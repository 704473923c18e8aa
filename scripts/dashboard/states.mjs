// Every page, and a record of each kind, while it loads, when its requests fail, in a workspace without data, and for a member who may
// only look.

import assert from "node:assert/strict";
import { check, open, settled } from "./checks.mjs";
import { accept } from "./people.mjs";

const API = "**/api/v1/**";
/** What the frame reads on every page: who the member is, and what happens in the workspace. */
const isOfFrame = (url) => /\/api\/v1\/(dashboard\/me|events\/live)(\?|$)/.test(url);
const REASON = "The database does not answer. Nothing was changed.";
const REFUSAL = { success: false, error: { type: "api_error", code: "service_unavailable", message: REASON }, request_id: "req_01m7y8an3svyntrgbjv54q8v9e" };
/** What Core Web Vitals call a good layout shift on a phone, and half of it at a desk. */
const mostShift = (width) => (width < 720 ? 0.1 : 0.05);
/** The messages of a conversation make room for who answers above them and for what is written below. */
const MOST_SHIFT_OF = { conversation: 0.25 };
const MOST_PRESSES = 5;
const MOST_PRESSED = 8;

/** Runs a check during which the requests of the page wait (`hold`) or are refused (`fail`), until the check lets them pass. */
async function steer(page, first, run) {
  let way = first;
  const held = [];
  let asked = 0;
  const answer = (route) => {
    if (way === "pass" || isOfFrame(route.request().url())) return route.continue();
    asked++;
    if (way === "hold") return held.push(route);
    return route.fulfill({ status: 503, json: REFUSAL });
  };
  const pass = async () => {
    way = "pass";
    // A page that has gone on has given up some.
    await Promise.all(held.splice(0).map((route) => route.continue().catch(() => undefined)));
  };
  await page.route(API, answer);
  try {
    await run({ hasAsked: () => asked > 0, pass });
  } finally {
    await pass();
    await page.unroute(API, answer);
  }
}

/** How far the page has moved since a moment: the sum of its layout shifts. */
const shiftSince = (page, moment) =>
  page.evaluate(
    (since) =>
      new Promise((resolve) => {
        let sum = 0;
        const observer = new PerformanceObserver((list) => {
          for (const { startTime, value } of list.getEntries()) if (startTime > since) sum += value;
        });
        observer.observe({ type: "layout-shift", buffered: true });
        requestAnimationFrame(() => setTimeout(() => resolve(sum)));
      }),
    moment,
  );

/** While nothing is answered, the page has its heading and says that it loads. What was there stays in its place when the rest comes. */
async function loading({ page, view, folder, width }, { address, name }) {
  await steer(page, "hold", async (api) => {
    await page.goto(address);
    await page.locator("main h1").first().waitFor();
    if (api.hasAsked()) await page.locator("main :is(.loading, [aria-busy=true], .wait):visible").first().waitFor();
    // An open conversation has a phone to itself.
    assert((await page.locator(":is(header nav, main) :is(a, button):visible").count()) > 0, `${name} loads without a way on`);
    await check(view, `${name}-loading`, folder);
    const moment = await page.evaluate(() => performance.now());
    await api.pass();
    await settled(page);
    assert.equal(await page.locator("main [role=alert]:visible").count(), 0, `${name} fails after it has loaded`);
    const shift = await shiftSince(page, moment);
    assert(shift <= (MOST_SHIFT_OF[name] ?? mostShift(width)), `${name} moves by ${shift} when the rest comes`);
  });
}

/** When all is refused, the page keeps its heading and says what happened, why, and what to do. Trying again shows it. */
async function failed({ page, view, folder }, { address, name }) {
  await steer(page, "fail", async (api) => {
    await page.goto(address);
    await settled(page);
    const again = page.locator("main").getByRole("button", { name: "Try again" });
    if (api.hasAsked()) {
      await page.locator("main [role=alert]:visible", { hasText: REASON }).first().waitFor();
      assert((await page.locator("main h1").count()) > 0, `${name} fails without its heading`);
      assert((await again.filter({ visible: true }).count()) > 0, `${name} cannot be tried again`);
    }
    await check(view, `${name}-failed`, folder);
    await api.pass();
    // What is read after something else may have to be tried after it.
    for (let presses = 0; (await again.count()) > 0; presses++) {
      assert(presses < MOST_PRESSES, `${name} fails again`);
      await again.evaluateAll((all) => all.forEach((one) => one.click()));
      await settled(page);
    }
    assert.equal(await page.locator("main [role=alert]:visible").count(), 0, `${name} fails after trying again`);
  });
}

/** Without data, a page says what belongs there. No table stands there without rows. */
async function empty({ page, view, folder }, { address, name }) {
  await page.goto(address);
  await settled(page);
  await check(view, `${name}-empty`, folder);
  const found = await page.locator("main").evaluate((main) => ({
    alerts: [...main.querySelectorAll("[role=alert]")].map((one) => one.innerText),
    tables: [...main.querySelectorAll("table")].filter((one) => one.checkVisibility() && one.tBodies[0]?.rows.length === 0).length,
    words: [...main.querySelectorAll("h2, p, li, dd, th, td")].filter((one) => one.checkVisibility()).map((one) => one.innerText).join(" ").split(/\s+/).length,
  }));
  assert.deepEqual({ ...found, words: found.words >= 6 }, { alerts: [], tables: 0, words: true }, name);
}

/** Presses what a page offers, and in a dialog its main button. What copies or sorts, and the own password, is left alone. */
async function press(page, address) {
  const offered = page.locator("main :is(button, summary):not(:disabled, th *, [role=grid] *)").filter({ hasNotText: /^\s*(Copy|Sign out|Change password)/ });
  // What is pressed may offer more, such as another row of a filter: that is not gone into.
  const count = Math.min(await offered.count(), MOST_PRESSED);
  for (let at = 0; at < count; at++) {
    const one = offered.nth(at);
    if (!(await one.isVisible())) continue;
    await one.click();
    await settled(page);
    const dialog = page.locator("dialog[open]");
    if (await dialog.count()) {
      const main = dialog.locator("button:is(.main, .danger):not(:disabled)").first();
      if (await main.count()) await main.click();
      await settled(page);
      if (await dialog.count()) await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
    }
    if (page.url() !== address) await page.goto(address);
    await settled(page);
  }
}

/**
 * A member who may only look sees a page, or reads that it is not for the role. Nothing that it asks or offers is refused. Notes pages
 * that are closed, and links to others. Returns the tabs of the page.
 */
async function viewer({ page, view, folder, width }, { address, name, isTab }, { closed, links }) {
  const refused = [];
  const note = (response) => response.status() === 403 && refused.push(`${response.request().method()} ${response.url()}`);
  page.on("response", note);
  try {
    await page.goto(address);
    await settled(page);
    if (!isTab) await check(view, `${name}-viewer`, folder);
    const isClosed = await page.getByRole("heading", { level: 1, name: /^You cannot open / }).count();
    if (isClosed) closed.add(address);
    else for (const link of await page.locator("main a[href]").evaluateAll((all) => all.map((one) => one.href))) links.set(link.split(/[?#]/)[0], name);
    if (!isClosed && width >= 720) await press(page, address);
  } finally {
    page.off("response", note);
  }
  assert.deepEqual(refused, [], name);
  return page.locator("main nav a").evaluateAll((all) => all.map((one) => one.href));
}

/** Sends a request of the dashboard with the session of a page. */
const asMember = (page, path, body) =>
  page.evaluate(
    async ([path, body]) => {
      const post = async (url, content, headers) => {
        const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(content) });
        if (!answer.ok) throw new Error(`${url}: ${await answer.text()}`);
        return (await answer.json()).data;
      };
      const { token } = await post("/session/token", { workspace: 1, env: "live" });
      return post(`/api/v1${path}`, body, { authorization: `Bearer ${token}` });
    },
    [path, body],
  );

/** Makes a workspace without data with its owner, and a viewer of the first workspace. Returns their sessions. */
export async function inviteGuests({ browser, origin, page }) {
  const made = await asMember(page, "/dashboard/workspaces", { name: "Librería Luna", plan: "pro", owner_email: "luna@example.com", owner_name: "Luna Prat" });
  const { url } = await asMember(page, "/dashboard/invitations", { email: "vera@example.com", name: "Vera Soto", role: "viewer" });
  const join = async (link, name) => {
    const { context } = await accept({ browser, origin, width: 1280 }, link, name);
    const state = await context.storageState();
    await context.close();
    return state;
  };
  return { workspace: made.id, owner: await join(made.invitation_url, "Luna Prat"), viewer: await join(url, "Vera Soto") };
}

/** Looks at all pages in their states. `pages` and `guests.pages` are `{ address, name }`: those of the full and of the empty workspace. */
export async function states({ browser, origin, width, scheme, state, guests, folder, attempt, pages }) {
  const began = Date.now();
  const mode = `${width}, ${scheme}`;
  const each = async (member, list, what, run) => {
    const view = await open(browser, origin, { width, scheme, state: member });
    const given = { view, page: view.page, folder, width };
    for (const one of list) await attempt(`page ${one.name} ${what}, ${mode}`, view, () => run(given, one));
    await view.context.close();
  };
  await each(state, pages, "loading", loading);
  await each(state, pages, "failed", failed);
  await each(guests.owner, guests.pages, "empty", empty);

  const seen = { closed: new Set(), links: new Map() };
  const list = [...pages];
  await each(guests.viewer, list, "for a viewer", async (given, one) => {
    const tabs = await viewer(given, one, seen);
    // The list grows by the tabs of a record while it is gone through.
    const isNew = (address) => address.startsWith(one.address) && !list.some((other) => other.address === address.split("?tab=activity")[0]);
    if (one.isRecord) list.push(...tabs.filter(isNew).map((address) => ({ address, name: `${one.name} ${address.split(/[/=]/).at(-1)}`, isTab: true })));
  });
  assert(seen.closed.size > 0, "a viewer can open every page");
  const wrong = [...seen.links].filter(([link]) => [...seen.closed].some((address) => link === address || link.startsWith(`${address}/`)));
  assert.deepEqual(wrong, [], "links of a viewer to pages that are closed");
  console.log(`        states, ${mode}: ${pages.length} pages and records, ${guests.pages.length} without data, ${((Date.now() - began) / 1000).toFixed(0)} s`);
}
