// Measures how fast the dashboard is, and writes the table of docs/benchmarks.md.
//
//   node speed.mjs ORIGIN START_LINK KEY CHAT      ITEMS, TIMES, PARTS and PEER are settings: scripts/bench-dashboard
//
// START_LINK is empty if the owner's account exists already.

import assert from "node:assert/strict";
import { measureFirstViews } from "./first-view.mjs";
import { prepare } from "./fixtures.mjs";
import { measureGrid } from "./grid.mjs";
import { measureLive } from "./live.mjs";
import { measureMarks } from "./marks.mjs";
import { measurePeer } from "./peer.mjs";
import { Site } from "./site.mjs";
import { Table } from "./table.mjs";
import { measureTyping } from "./typing.mjs";

const PARTS = { views: measureFirstViews, peer: measurePeer, typing: measureTyping, grid: measureGrid, live: measureLive, marks: measureMarks };
const [origin, link, key, chat] = process.argv.slice(2);
const { ITEMS = "1000000", TIMES = "7", PARTS: chosen = "", PEER: peer = "" } = process.env;
const [items, times] = [Number(ITEMS), Number(TIMES)];
const parts = chosen ? chosen.split(",") : Object.keys(PARTS);
for (const part of parts) assert(PARTS[part], `there is no part ${part}; there are ${Object.keys(PARTS).join(", ")}`);

const table = new Table();
const site = await Site.open({ origin, link, key });
try {
  const fixtures = await prepare({ site, chat, items, parts });
  for (const part of parts) {
    try {
      await PARTS[part]({ site, table, fixtures, items, times: part === "live" ? times * 5 : times, peer, chat });
    } catch (error) {
      table.failed(part, error);
    }
  }
} finally {
  await site.browser.close();
}
console.log(table.toString());
