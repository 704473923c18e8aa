// Drives the dashboard of a demo.
//
//   node dashboard.mjs ORIGIN START_LINK KEY PICTURES CHAT      ends with 1 and says what was not so
//
// START_LINK is empty if the owner's account exists already. JOURNEYS names the areas to go through, such as `inbox,contacts`, or single
// journeys, such as `inbox.drafts`; `pages` opens all pages, `pictures` takes those of the
// documentation. Without it, everything is checked, and no pictures of the documentation are taken.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { AREAS } from "./areas.mjs";
import { open, settled } from "./checks.mjs";
import { launch } from "./launch.mjs";
import { takePictures } from "./pictures.mjs";
import { walk } from "./walk.mjs";

const [origin, link, key, folder, chat] = process.argv.slice(2);
const person = { name: "Marta Ruiz", email: "marta@example.com", password: "correct horse battery" };
const chosen = process.env.JOURNEYS?.split(",").filter(Boolean);
for (const one of chosen ?? []) {
  const [area, journey] = one.split(".");
  assert(area === "pages" || area === "pictures" || (AREAS[area] && (!journey || AREAS[area][journey])), `JOURNEYS: there is no ${one}; there are pages, pictures, ${Object.keys(AREAS).join(", ")}`);
}
const isChosen = (area, journey) => !chosen || chosen.includes(area) || chosen.some((one) => (journey ? one === `${area}.${journey}` : one.startsWith(`${area}.`)));

async function call(method, path, body) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(`${origin}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
  const answer = await response.json();
  assert(response.ok, `${method} ${path}: ${JSON.stringify(answer)}`);
  return answer.data;
}

// The program of a customer, which refunds, and takes every second delivery.
let deliveries = 0;
const receiver = createServer((request, response) => {
  request.resume();
  const isTaken = request.url === "/refunds" || ++deliveries % 2 === 1;
  response.writeHead(isTaken ? 200 : 503, { "content-type": "application/json" }).end(JSON.stringify({ received: isTaken }));
});
await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve));
const hook = `http://127.0.0.1:${receiver.address().port}/hooks/orders`;

const browser = await launch();
const failures = [];

/** Runs one check and notes how it ended; the next ones go on. */
async function attempt(name, view, run) {
  const began = Date.now();
  try {
    await run();
    console.log(`ok      ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failures.push(name);
    console.error(`FAILED  ${name}: ${error.stack}`);
    view.mistakes.splice(0);
    await view.page.screenshot({ path: `${folder}/failed-${name.replaceAll(/\W+/g, "-")}.png` }).catch(() => undefined);
  }
}

async function createAccount() {
  const view = await open(browser, origin, { width: 1280 });
  await view.page.goto(link);
  await view.page.getByLabel("Your name").fill(person.name);
  await view.page.getByLabel("E-mail address").fill(person.email);
  await view.page.getByLabel("New password").fill(person.password);
  await view.page.getByRole("button", { name: "Create account" }).click();
  await view.page.waitForURL(`${origin}/app/1/`);
  await settled(view.page);
  await view.context.close();
  for (const name of ["Ana Torres", "Luis Marín", "Wen Zhao"]) await call("POST", "/contacts", { data: { $name: name } });
  for (const input of ["Do you have wooden trains?", "When do you open on Saturday?"]) await call("POST", "/runs", { input });
}

/** Signs in, and returns the session's cookies. */
async function signIn() {
  const view = await open(browser, origin, { width: 1280 });
  await view.page.goto(`${origin}/sign-in`);
  await view.page.getByLabel("E-mail address").fill(person.email);
  await view.page.getByLabel("Password", { exact: true }).fill(person.password);
  await view.page.getByRole("button", { name: "Sign in" }).click();
  await view.page.waitForURL(`${origin}/app/1/`);
  const state = await view.context.storageState();
  await view.context.close();
  return state;
}

try {
  if (link) await createAccount();
  for (const [area, journeys] of Object.entries(AREAS)) {
    if (!isChosen(area)) continue;
    let state = await signIn();
    for (const [name, journey] of Object.entries(journeys)) {
      if (!isChosen(area, name)) continue;
      const view = await open(browser, origin, { width: journey.width ?? 1280, state });
      await attempt(`${area}.${name}`, view, () => journey({ browser, origin, view, state, person, folder, call, chat, hook, key }));
      // A journey may have ended all sessions and signed in again.
      state = await view.context.storageState().catch(() => state);
      for (const context of browser.contexts()) await context.close();
    }
  }
  if (chosen?.includes("pictures")) {
    const view = await open(browser, origin, { width: 1280, state: await signIn() });
    await attempt("pictures", view, () => takePictures({ view, origin, folder, call, chat }));
    await view.context.close();
  }
  const count = isChosen("pages") && (await walk({ browser, origin, state: await signIn(), folder, attempt, call, chat, hook }));
  if (failures.length > 0) {
    console.error(`check-dashboard: ${failures.length} failed: ${failures.join("; ")}`);
    process.exitCode = 1;
  } else {
    console.log(`check-dashboard: ${count ? `${count} pages (${process.env.LOOKS ?? "1280, 360, 768, 1920 and 320 pixels, light and dark, longer, spaced and with forced colours"}), and ` : ""}${chosen?.join(", ") ?? "all journeys"}`);
  }
} finally {
  await browser.close();
  receiver.closeAllConnections();
  receiver.close();
}
