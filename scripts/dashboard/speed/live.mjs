// What happens elsewhere until it is shown: a message that a customer writes, and the first word of an agent's answer.

import assert from "node:assert/strict";
import { openWhole } from "./typing.mjs";
import { whenShown } from "./probe.mjs";
import { pause } from "./site.mjs";
import { median, number, p95, quantile } from "./table.mjs";

const BETWEEN_MS = 300;
const three = (times) => [0.5, 0.95, 1].map((share) => number(quantile(times, share))).join(" / ");

/** A customer writes into the open conversation. */
async function messages({ site, table, fixtures, times }) {
  const view = await site.view({ probe: whenShown });
  const { page } = view;
  await openWhole(view, site, fixtures, 50);
  const whole = [];
  const shown = [];
  for (let at = 0; at < times; at++) {
    const text = `Ping ${Date.now()}`;
    const seen = page.evaluate((wanted) => globalThis.shown("[data-message]", wanted), text);
    const written = Date.now();
    await fixtures.person.write(text);
    const { at: when } = await seen;
    const [{ content, created_at }] = await site.call("GET", `/conversations/${fixtures.conversation}/messages?paginate=true&limit=1`);
    assert.equal(content, text);
    whole.push(when - written);
    shown.push(when - Date.parse(created_at));
    await pause(BETWEEN_MS);
  }
  await view.close();
  table.atMost(`A customer's message stored → shown in the open conversation, p50 / p95 / longest of ${times}`, p95(shown), 500, "ms", three(shown));
  table.state("The same from the moment in which the customer sends it, ms", three(whole));
}

/** The model of `model.mjs` says when it said its first word. */
async function tokens({ site, table, times }) {
  const view = await site.view({ probe: whenShown });
  const { page } = view;
  await page.goto(`${site.app}agents/playground`);
  const field = page.getByLabel("Message", { exact: true });
  const all = [];
  for (let at = 0; at < times; at++) {
    const count = await page.locator(".answer").count();
    await field.fill("What does the clock say?");
    const seen = page.evaluate((known) => globalThis.shown(`.turn:nth-of-type(${known + 1}) .answer p.text`, String.raw`\d{13}`), count);
    await field.press("Enter");
    const { at: when, text } = await seen;
    all.push(when - Number(text.match(/\d{13}/)[0]));
    await page.getByText("Completed").nth(count).waitFor();
  }
  await view.close();
  table.atMost(`First token of a run sent by the model → shown in the playground, p50 / p95 / longest of ${times}`, p95(all), 50, "ms", three(all));
  return median(all);
}

export async function measureLive(given) {
  await messages(given);
  await tokens(given);
}
