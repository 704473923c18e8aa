// From the press of a key to the frame that shows it, in a conversation of 500 messages.

import assert from "node:assert/strict";
import { MESSAGES } from "./fixtures.mjs";
import { keyPresses } from "./probe.mjs";
import { usage } from "./site.mjs";
import { number, p95, quantile } from "./table.mjs";

const TEXT = "We have the wooden train in blue and in red, and we keep one for you until Saturday evening at eight o'clock, with a box.";
/** As fast as somebody who writes with ten fingers. */
const BETWEEN_MS = 70;

/** Opens the conversation and reads all its messages. */
export async function openWhole(view, site, { conversation, person }, count) {
  const { page } = view;
  await page.goto(`${site.app}inbox/${conversation}`);
  await page.locator("[data-message]").first().waitFor();
  await page.waitForFunction((wanted) => {
    document.querySelector("[role=log]").scrollTop = 0;
    return document.querySelectorAll("[data-message]").length >= wanted;
  }, count);
  return page.getByLabel(`Message to ${person.name}`);
}

export async function measureTyping({ site, table, fixtures }) {
  const view = await site.view({ probe: keyPresses });
  const field = await openWhole(view, site, fixtures, MESSAGES);
  await field.click();
  const before = await usage(view.devtools);
  await field.pressSequentially(TEXT, { delay: BETWEEN_MS });
  assert.equal(await field.inputValue(), TEXT);
  await view.page.waitForFunction((count) => globalThis.presses.length >= count, TEXT.length);
  const times = await view.page.evaluate(() => globalThis.presses);
  const after = await usage(view.devtools);
  const count = await view.page.locator("[data-message]").count();
  await view.close();
  table.atMost(`Key press to paint in a conversation of ${count} messages, p50 / p95 / longest of ${times.length}`, p95(times), 50, "ms", [0.5, 0.95, 1].map((share) => number(quantile(times, share))).join(" / "));
  const perKey = (name) => number((1000 * (after[name] - before[name])) / times.length);
  table.state("The same: processor time of the main thread per key (scripts; layout), ms", `${perKey("TaskDuration")} (${perKey("ScriptDuration")}; ${perKey("LayoutDuration")})`);
}
