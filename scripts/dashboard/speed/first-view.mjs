// The first view of each page: how many bytes it takes, when something can be seen and used, and whether it moves.

import assert from "node:assert/strict";
import { get } from "node:http";
import { firstView } from "./probe.mjs";
import { pause } from "./site.mjs";
import { kilobytes, median, number, p95, spread, sum } from "./table.mjs";

const DIALOG = { css: "dialog[open]" };
const MAIN = { css: "main .button.main" };
const ROW = { css: "main tbody a" };
const KB = 1000;
const KEPT_OPEN_MS = 1500;
const LONGEST_MS = 30_000;

/** The pages, with what is their first data, a control, and what the control shows. */
export const pagesOf = ({ collection, conversation, flow }) => [
  { name: "Home", path: "", ready: { css: "main .card" }, control: { css: "button.search" }, effect: DIALOG },
  { name: "Inbox", path: "inbox", ready: { css: "[data-conversation]" }, control: { css: "[data-conversation] a, a[data-conversation]" }, effect: { css: "section.thread h2", text: " " } },
  { name: "a conversation", path: `inbox/${conversation}`, ready: { css: "[data-message]" }, control: { css: "button.info, .modes button:last-child" }, effect: { css: "aside.open, .composer.note" } },
  { name: "Contacts", path: "contacts", ready: { css: "tr[data-row] a" }, control: MAIN, effect: DIALOG },
  { name: "Agents", path: "agents", ready: ROW, control: MAIN, effect: DIALOG },
  { name: "Playground", path: "agents/playground", ready: { css: ".playground textarea" }, control: { css: "button.search" }, effect: DIALOG },
  { name: "Channels", path: "channels", ready: ROW, control: MAIN, effect: { css: "dialog[open], main form" } },
  { name: "Collections", path: "collections", ready: ROW, control: MAIN, effect: DIALOG },
  { name: "a collection", path: `collections/${collection}`, ready: { css: "[role=gridcell]", text: "A-" }, control: MAIN, effect: DIALOG },
  { name: "Flows", path: "flows", ready: ROW, control: MAIN, effect: DIALOG },
  { name: "a flow on the canvas", path: `flows/${flow}`, ready: { css: ".svelte-flow__node" }, control: { css: "button", text: "Add node" }, effect: DIALOG },
  { name: "Developers", path: "developers/overview", ready: { css: "main h2" }, control: { css: "button.search" }, effect: DIALOG },
  { name: "Keys", path: "developers/keys", ready: ROW, control: MAIN, effect: { css: "main form" } },
  { name: "Logs", path: "developers/logs", ready: ROW, control: { css: "button.search" }, effect: DIALOG },
  { name: "Settings", path: "settings/business", ready: { css: "main h2" }, control: { css: "button.search" }, effect: DIALOG },
  { name: "Installation", path: "installation/overview", ready: { css: "main h2" }, control: { css: "button.search" }, effect: DIALOG },
];

/** Opens an address for the first time. Returns when it was painted and usable, and the bytes that it took until then. */
export async function load(site, { address, state, isSlow, ready, control, effect }) {
  const view = await site.view({ isSlow, state, probe: firstView, argument: { ready, control, effect } });
  const bytes = new Map();
  const types = new Map();
  const add = (requestId, count) => bytes.set(requestId, (bytes.get(requestId) ?? 0) + count);
  view.devtools.on("Network.responseReceived", ({ requestId, type, response }) => (types.set(requestId, type), add(requestId, response.encodedDataLength)));
  view.devtools.on("Network.dataReceived", ({ requestId, encodedDataLength }) => add(requestId, encodedDataLength));
  // What is counted at the end includes what was told before.
  view.devtools.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => bytes.set(requestId, encodedDataLength));
  try {
    await view.page.goto(address, { waitUntil: "commit" });
    await view.page.waitForFunction((name) => globalThis.speed?.at[name] !== undefined, control ? "usable" : "ready", { timeout: LONGEST_MS });
    const taken = sum([...bytes.values()]);
    const code = sum([...bytes].filter(([id]) => types.get(id) === "Script" || types.get(id) === "Stylesheet").map(([, count]) => count));
    // Without a press the page is left alone for a while, and may not move any more.
    if (!control) await pause(KEPT_OPEN_MS);
    const found = await view.page.evaluate(() => ({ ...globalThis.speed.at, shift: globalThis.speed.shift, paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime }));
    return { ...found, bytes: taken, code };
  } finally {
    await view.close();
  }
}

/** Loads a page several times, and once more to see how far it moves. */
export async function loads(site, page, { isSlow, times }) {
  const all = [];
  for (let time = 0; time < times; time++) all.push(await load(site, { ...page, isSlow }));
  const { shift } = await load(site, { ...page, isSlow, control: undefined });
  return { paints: all.map(({ paint }) => paint), usables: all.map(({ usable }) => usable), bytes: Math.max(...all.map(({ bytes }) => bytes)), code: Math.max(...all.map(({ code }) => code)), shift };
}

/** Reads a file as it goes over the network. */
const compressed = (address) =>
  new Promise((resolve, reject) => {
    get(address, { headers: { "accept-encoding": "gzip" } }, (answer) => {
      let size = 0;
      answer.on("data", (part) => (size += part.length));
      answer.on("end", () => resolve(answer.statusCode === 200 ? size : undefined));
    }).on("error", reject);
  });

/** All files of the bundle: those that the page names, and those that they name. */
async function bundle(site) {
  const { cookies } = site.state;
  const page = await fetch(site.app, { headers: { cookie: cookies.map(({ name, value }) => `${name}=${value}`).join("; ") } });
  const html = await page.text();
  const [first] = html.match(/\/app\/assets\/[^"]+/) ?? [];
  assert(first, "the page names no file");
  const folder = `${site.origin}${first.slice(0, first.lastIndexOf("/") + 1)}`;
  const names = (text) => [...text.matchAll(/[\w.-]+\.(?:js|css)\b/g)].map(([name]) => name);
  const sizes = new Map();
  const found = new Set(names(html));
  for (const name of found) {
    const size = await compressed(folder + name);
    if (size === undefined) continue;
    sizes.set(name, size);
    if (name.endsWith(".js")) for (const other of names(await (await fetch(folder + name)).text())) found.add(other);
  }
  return sizes;
}

export async function measureFirstViews({ site, table, fixtures, times }) {
  const sizes = await bundle(site);
  table.atMost(`Whole dashboard, ${sizes.size} files, gzip`, sum([...sizes.values()]) / KB, 600, "kB");
  const pages = pagesOf(fixtures).map((page) => ({ ...page, address: site.app + page.path }));
  const looks = [
    { isSlow: false, count: times, name: "on this machine", paint: 300, usable: 800 },
    { isSlow: true, count: Math.max(1, Math.ceil(times / 2)), name: "slowed", paint: 1800, usable: 3500 },
  ];
  for (const { isSlow, count, name, paint, usable } of looks) {
    const all = [];
    for (const page of pages) {
      try {
        all.push({ page, ...(await loads(site, page, { isSlow, times: count })) });
      } catch (error) {
        table.failed(`${page.name}, ${name}`, error);
      }
    }
    if (!isSlow) for (const { page, bytes, code } of all) table.atMost(`${page.name}: bytes until it is usable; scripts and styles among them`, bytes / KB, 140, "kB", `${kilobytes(bytes)}; ${kilobytes(code)}`);
    for (const { page, paints, usables } of all) {
      table.atMost(`${page.name}, ${name}: first paint`, median(paints), paint, "ms", spread(paints));
      table.atMost(`${page.name}, ${name}: usable`, median(usables), usable, "ms", spread(usables));
    }
    if (all.length === 0) continue;
    table.atMost(`All pages, ${name}: first paint, p95`, p95(all.flatMap(({ paints }) => paints)), paint, "ms");
    table.atMost(`All pages, ${name}: usable, p95`, p95(all.flatMap(({ usables }) => usables)), usable, "ms");
    const worst = all.toSorted((one, other) => other.shift - one.shift)[0];
    table.atMost(`All pages, ${name}: largest layout shift`, worst.shift, 0.05, "score", `${number(worst.shift)} (${worst.page.name})`);
  }
}
