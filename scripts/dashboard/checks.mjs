// What is checked on every picture.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// Texts that a program writes when it has forgotten something.
const FORGOTTEN = /\b(undefined|null|NaN)\b|\[object/;
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"];

/** Opens a page and notes whatever a browser complains about. */
export async function open(browser, origin, { width, height = width < 720 ? 740 : 800, scheme = "light", state } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: "reduce", hasTouch: width < 720, ...(state && { storageState: state }) });
  context.setDefaultTimeout(120_000);
  const mistakes = [];
  // An answer with the status of an error is noted by the browser too; what the page makes of it is checked on its own.
  const isAnswer = (text) => text.startsWith("Failed to load resource: the server responded");
  context.on("console", (message) => message.type() === "error" && !isAnswer(message.text()) && mistakes.push(message.text()));
  context.on("weberror", (error) => mistakes.push(String(error.error())));
  context.on("request", (request) => /^(data|blob):/.test(request.url()) || request.url().startsWith(origin) || mistakes.push(`it asks ${request.url()}`));
  const page = await context.newPage();
  await page.addInitScript(() => document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`)));
  return { context, page, mistakes, width, scheme };
}

/** Waits until nothing is loading. */
export async function settled(page) {
  await page.locator("h1").first().waitFor();
  await page.waitForFunction(() => document.querySelectorAll("[role=status].loading").length === 0);
}

/** Checks the page as it is, and takes its picture. */
export async function check(view, name, folder) {
  const { page, width, scheme, mistakes } = view;
  const where = `${name} at ${width}, ${scheme}`;
  const found = await page.evaluate((forgotten) => {
    const overlay = document.querySelector("dialog[open]") ?? document.body;
    const small = [...overlay.querySelectorAll("button, a, input, select, summary")].filter((one) => {
      const box = one.getBoundingClientRect();
      const inline = getComputedStyle(one).display === "inline";
      return one.checkVisibility() && !inline && box.width > 1 && (box.height < 24 || box.width < 24) && !/checkbox|radio/.test(one.type ?? "") && box.bottom > 0;
    });
    // Payloads are shown as they are, and there `null` is a value.
    const texts = [...document.body.querySelectorAll("*")].filter((one) => one.checkVisibility() && !one.closest("pre, code, script"));
    const own = texts.flatMap((one) => [...one.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE).map(({ data }) => data)).join("\n");
    return {
      wide: document.documentElement.scrollWidth,
      forgotten: own.match(new RegExp(forgotten))?.[0],
      small: small.map((one) => one.outerHTML.slice(0, 120)),
    };
  }, FORGOTTEN.source);
  assert(found.wide <= width, `${where}: it is ${found.wide} wide`);
  assert.equal(found.forgotten, undefined, where);
  assert.deepEqual(found.small, [], `${where}: too small to hit`);
  await page.evaluate(axe);
  const { violations } = await page.evaluate((rules) => globalThis.axe.run(document, { runOnly: rules, resultTypes: ["violations"] }), RULES);
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.any[0]?.message ?? node.all[0]?.message ?? ""}`).join(" | ")}`);
  await page.screenshot({ path: `${folder}/${name}-${width}-${scheme}.png` });
  assert.deepEqual(told, [], where);
  assert.deepEqual(mistakes.splice(0), [], where);
}
