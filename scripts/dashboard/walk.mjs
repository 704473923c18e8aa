// Opens every page at the widths of a desk and of a telephone, light and dark, and in its states (states.mjs). A tablet, a wide screen, and
// what a reader changes (looks.mjs) see every page once.

import assert from "node:assert/strict";
import { check, open, settled } from "./checks.mjs";
import { extremes } from "./journeys.mjs";
import { spaceText, speakLonger } from "./looks.mjs";
import { openShop } from "./shop.mjs";
import { inviteGuests, states } from "./states.mjs";

/** All pages of a workspace: the links of the rail, their tabs, and the tabs in them. */
async function pages(page, origin, workspace = 1) {
  const home = `${origin}/app/${workspace}/`;
  const found = new Set([home]);
  for (const address of found) {
    await page.goto(address);
    await settled(page).catch((error) => Promise.reject(new Error(`${address}: ${error.message}`)));
    const links = await page.locator("nav a").evaluateAll((all) => all.map((one) => one.href.split("?")[0]));
    for (const one of links) if (one.startsWith(home)) found.add(one);
  }
  return [...found].map((address) => ({ address, name: address.slice(home.length).replaceAll("/", "-") || "home" }));
}

/** The first record of a list: where it is, the link that opens it, and what stands in it if it comes late. */
const RECORDS = [
  ["inbox", "conversation", "[data-conversation] a, a[data-conversation]", "[role=log]"],
  ["contacts", "contact", "[data-row='0'] a"],
  ["agents", "agent", "tbody a", "main form"],
  ["agents/1/versions", "agent-version", "tbody a", "[data-record] h2, [data-record] h3"],
  ["agents/runs", "run", "tbody a", "[data-record] :is(h1, h2, h3)"],
  ["channels", "channel", "tbody a"],
  ["collections", "collection", "tbody a"],
  ["flows", "flow", "tbody a"],
  ["automations", "automation", "tbody a"],
  ["developers/keys", "key", "tbody a", "[data-record] :is(h1, h2)"],
  ["developers/logs", "request", "tbody a", "[data-record] :is(h1, h2)"],
  ["developers/events", "event", "tbody a", "[data-record] :is(h1, h2)"],
  ["developers/webhooks", "endpoint", "tbody a"],
  ["settings/team", "member", "tbody a", "[data-record] :is(h1, h2)"],
];

/** Where the first records are. */
async function records(page, origin) {
  const found = [];
  for (const [path, name, link] of RECORDS) {
    await page.goto(`${origin}/app/1/${path}`);
    await settled(page);
    found.push({ name, isRecord: true, address: await page.locator(link).first().evaluate((one) => one.href) });
  }
  return found;
}

/** How pages are looked at, whether records are opened too, and in which scheme the states. All of it with reduced motion. */
const LOOKS = [
  { width: 1280, schemes: ["light", "dark"], hasRecords: true, statesIn: "light" },
  { width: 360, schemes: ["light", "dark"], hasRecords: true, statesIn: "dark" },
  { width: 768 },
  { width: 1920 },
  // A desk of 1280 pixels at 400 %.
  { width: 320, look: "reflow" },
  { width: 1280, look: "longer", prepare: speakLonger },
  { width: 360, look: "spaced", prepare: spaceText },
  { width: 1280, look: "forced", forcedColors: "active" },
];

/** What is cut off without saying so, and what moves although the reader asked for none. */
async function look(page, where) {
  const found = await page.evaluate(() => {
    const isCut = (one) => {
      const style = getComputedStyle(one);
      return one.checkVisibility() && one.clientWidth > 1 && /hidden|clip/.test(style.overflowX) && style.textOverflow !== "ellipsis" && one.scrollWidth > one.clientWidth + 1;
    };
    return {
      cut: [...document.querySelectorAll("main *")].filter((one) => !one.closest(".svelte-flow, svg, input, select, textarea, [role=grid], .visually-hidden") && isCut(one)).map((one) => one.outerHTML.slice(0, 160)),
      moving: document.getAnimations().filter(({ playState }) => playState === "running").length,
    };
  });
  assert.deepEqual(found, { cut: [], moving: 0 }, where);
}

/** The owner of a workspace without data, with its pages, and a viewer. */
async function guestsOf({ browser, origin }, page) {
  const guests = await inviteGuests({ browser, origin, page });
  const { context, page: own } = await open(browser, origin, { width: 1280, state: guests.owner });
  const found = await pages(own, origin, guests.workspace);
  await context.close();
  return { ...guests, pages: found };
}

/** Walks. `attempt(name, view, walk)` notes what fails. */
export async function walk(given) {
  const { browser, origin, state, folder, attempt, call, chat, hook } = given;
  let guests;
  const endpoints = await call("GET", "/webhook-endpoints");
  if (endpoints.length === 0) await call("POST", "/webhook-endpoints", { url: hook, enabled_events: ["contact.*"], description: "Orders" });
  await openShop({ call, chat });
  const first = await open(browser, origin, { width: 1280, state });
  const all = await pages(first.page, origin);
  await first.context.close();
  const chosen = process.env.LOOKS?.split(",");
  for (const { width, schemes = ["light"], look: kind, prepare, forcedColors, hasRecords, statesIn } of LOOKS) {
    if (chosen && !chosen.includes(kind ?? String(width))) continue;
    for (const scheme of schemes) {
      const view = await open(browser, origin, { width, scheme, state });
      const { page } = view;
      const mode = [width, kind, scheme].filter(Boolean).join(", ");
      if (forcedColors) await page.emulateMedia({ forcedColors });
      await prepare?.(view);
      const see = async (name) => {
        await settled(page);
        await look(page, `${name}, ${mode}`);
        await check(view, kind ? `${name}-${kind}` : name, folder);
      };
      for (const { address, name } of all) {
        await attempt(`page ${name}, ${mode}`, view, async () => {
          await page.goto(address);
          await see(name);
        });
      }
      for (const [path, name, link, content] of hasRecords ? RECORDS : []) {
        await attempt(`page ${name}, ${mode}`, view, async () => {
          await page.goto(`${origin}/app/1/${path}`);
          await settled(page);
          await page.locator(link).first().click();
          await page.waitForURL((url) => url.pathname !== `/app/1/${path}`);
          if (content) await page.locator(content).first().waitFor();
          await see(name);
        });
      }
      if (statesIn) await attempt(`extremes, ${mode}`, view, () => extremes({ view, origin, folder }));
      if (statesIn === scheme) {
        guests ??= await guestsOf(given, page);
        await states({ browser, origin, folder, attempt, state, guests, pages: [...all, ...(await records(page, origin))], width, scheme });
      }
      await view.context.close();
    }
  }
  return all.length;
}
