// The grid of a collection of a million items.

import assert from "node:assert/strict";
import { orderNumber } from "./fixtures.mjs";
import { whenShown } from "./probe.mjs";
import { usage } from "./site.mjs";
import { median, number, p95, quantile, spread } from "./table.mjs";

const MB = 1_000_000;
const ROW_PX = 34;
const ROWS = 10_000;
/** Five rows a frame, 300 a second. */
const STEP_PX = 5 * ROW_PX;

/** Sends a key or a click, and says how long it took until a text was shown in the grid. */
async function until(page, text, act) {
  const seen = page.evaluate((wanted) => globalThis.shown("[role=gridcell]", `^${wanted}$`), text);
  const began = Date.now();
  await act();
  return (await seen).at - began;
}

/** Opens the collection from the list of collections, as a person does. Returns how long it took, and the requests before the rows. */
async function openWithin(site, collection, first) {
  const view = await site.view({ probe: whenShown });
  const { page } = view;
  await page.goto(`${site.app}collections`);
  const link = page.locator(`main a[href$="/collections/${collection}"]`).first();
  await link.waitFor();
  const asked = [];
  page.on("request", (request) => request.url().includes("/api/v1/") && asked.push(new URL(request.url()).pathname));
  const [seen, began] = await Promise.all([
    page.evaluate((wanted) => globalThis.shown("[role=gridcell]", `^${wanted}$`), first),
    link.evaluate((one) => {
      const now = Date.now();
      one.click();
      return now;
    }),
  ]);
  return { view, time: seen.at - began, asked: [...asked] };
}

/** Scrolls down, as far as there are rows, and returns the intervals between frames and the most elements. */
export function scroll(page, rows) {
  return page.evaluate(
    ({ distance, step }) =>
      new Promise((resolve) => {
        const grid = document.querySelector("[role=grid]");
        const [intervals, start] = [[], grid.scrollTop];
        let [before, most, frames, waits] = [performance.now(), 0, 0, 0];
        const frame = (now) => {
          intervals.push(now - before);
          before = now;
          if (++frames % 30 === 0) most = Math.max(most, document.querySelectorAll("*").length);
          const top = grid.scrollTop;
          if (top - start >= distance) return resolve({ intervals: intervals.slice(2), most, waits });
          grid.scrollTop = top + step;
          // The end of what was read: the next page is on its way.
          if (grid.scrollTop === top) waits += 1;
          return requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
      }),
    { distance: rows * ROW_PX, step: STEP_PX },
  );
}

export async function measureGrid({ site, table, fixtures, items, times }) {
  const { collection } = fixtures;
  const many = items.toLocaleString("en");
  const openings = [];
  for (let time = 0; time < times; time++) {
    const { view, time: took, asked } = await openWithin(site, collection, orderNumber(items));
    assert(!asked.some((path) => path.endsWith("/aggregate")), "a count is asked for before the first rows");
    openings.push(took);
    await view.close();
  }
  table.atMost(`${many} items: from the click on the collection to its first rows`, median(openings), 300, "ms", spread(openings));

  const { view } = await openWithin(site, collection, orderNumber(items));
  const { page, devtools } = view;
  const before = await usage(devtools);
  const rows = Math.min(ROWS, items - 100);
  const { intervals, most, waits } = await scroll(page, rows);
  const after = await usage(devtools);
  table.atMost(`${many} items: ${rows.toLocaleString("en")} rows scrolled, frame p50 / p95 / longest of ${intervals.length}`, p95(intervals), 20, "ms", [0.5, 0.95, 1].map((share) => number(quantile(intervals, share))).join(" / "));
  table.state(`${many} items: frames that waited for rows while scrolling`, number(waits));
  table.state(`${many} items: main thread per frame while scrolling (scripts; style and layout), ms`, `${number((1000 * (after.TaskDuration - before.TaskDuration)) / intervals.length)} (${number((1000 * (after.ScriptDuration - before.ScriptDuration)) / intervals.length)}; ${number((1000 * (after.LayoutDuration + after.RecalcStyleDuration - before.LayoutDuration - before.RecalcStyleDuration)) / intervals.length)})`);
  table.atMost(`${many} items: elements in the document`, most, 1500, "most");
  table.atMost(`${many} items: heap after scrolling − before`, (after.JSHeapUsedSize - before.JSHeapUsedSize) / MB, 40, "MB");

  const grid = page.getByRole("grid");
  const ends = [];
  for (let time = 0; time < times; time++) {
    await grid.focus();
    ends.push(await until(page, orderNumber(1), () => page.keyboard.press("End")));
    await until(page, orderNumber(items), () => page.keyboard.press("Home"));
  }
  table.state(`${many} items: End → the last row shown, ms`, spread(ends));
  await view.close();
}
