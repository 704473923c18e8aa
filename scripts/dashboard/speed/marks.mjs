// What it costs that marks which nobody sees are shown (`src/lib/marks.ts`): on the grid, and while an answer is written.

import { scroll } from "./grid.mjs";
import { marksCost } from "./probe.mjs";
import { usage } from "./site.mjs";
import { median, number, p95, quantile } from "./table.mjs";

const ROWS = 3000;
const three = (times) => [0.5, 0.95, 1].map((share) => number(quantile(times, share))).join(" / ");

/** Runs something in a page with or without the marks, and returns what the observer and the main thread did meanwhile. */
async function measure(site, path, isOff, run) {
  const view = await site.view({ probe: marksCost, argument: { isOff } });
  const { page, devtools } = view;
  await page.goto(site.app + path);
  const act = await run(page);
  await page.evaluate(() => Object.assign(globalThis.marks, { frames: [], calls: 0, records: 0 }));
  const before = await usage(devtools);
  await act();
  const after = await usage(devtools);
  const { frames, records } = await page.evaluate(() => globalThis.marks);
  await view.close();
  return { frames, records, thread: (1000 * (after.TaskDuration - before.TaskDuration)) / frames.length };
}

const grid = (rows) => async (page) => {
  await page.getByRole("gridcell").filter({ hasText: "A-" }).first().waitFor();
  return () => scroll(page, rows);
};

const story = async (page) => {
  const field = page.getByLabel("Message", { exact: true });
  await field.fill("Tell me a long story.");
  return async () => {
    await field.press("Enter");
    await page.getByText("Completed").first().waitFor();
  };
};

export async function measureMarks({ site, table, fixtures, items, times }) {
  const rounds = Math.max(1, Math.ceil(times / 3));
  const rows = Math.min(ROWS, items - 100);
  for (const [name, path, run] of [[`scrolling ${rows.toLocaleString("en")} rows`, `collections/${fixtures.collection}`, grid(rows)], ["an answer that is written", "agents/playground", story]]) {
    const [on, off] = [[], []];
    for (let round = 0; round < rounds; round++) {
      off.push(await measure(site, path, true, run));
      on.push(await measure(site, path, false, run));
    }
    const frames = on.flatMap((one) => one.frames);
    table.atMost(`Marks, ${name}: their time per frame, p50 / p95 / longest of ${frames.length}`, p95(frames), 1, "ms", three(frames));
    table.state(`Marks, ${name}: main thread per frame with and without, ms; changes per frame`, `${number(median(on.map(({ thread }) => thread)))}, ${number(median(off.map(({ thread }) => thread)))}; ${number(on[0].records / on[0].frames.length)}`);
  }
}
