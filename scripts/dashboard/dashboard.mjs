// Drives the dashboard of a demo.
//
//   node dashboard.mjs ORIGIN START_LINK KEY PICTURES      ends with 1 and says what was not so

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { check, open, settled } from "./checks.mjs";
import { launch } from "./launch.mjs";
import { sessionEnds, states, webhooks } from "./journeys.mjs";

const [origin, link, key, folder] = process.argv.slice(2);
const PERSON = { name: "Marta Ruiz", email: "marta@example.com", password: "correct horse battery" };

async function call(method, path, body) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(`${origin}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
  const answer = await response.json();
  assert(response.ok, `${method} ${path}: ${JSON.stringify(answer)}`);
  return answer.data;
}

// The program of a customer, which takes every second delivery.
let taken = 0;
const receiver = createServer((request, response) => {
  request.resume();
  taken += 1;
  response.writeHead(taken % 2 ? 200 : 503, { "content-type": "application/json" }).end(JSON.stringify({ received: taken % 2 === 1 }));
});
await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve));
const hook = `http://127.0.0.1:${receiver.address().port}/hooks/orders`;

/** All pages: the links of the rail, their tabs, and the tabs in them. */
async function pages(page) {
  const found = new Set([`${origin}/app/1/`]);
  for (const address of found) {
    await page.goto(address);
    await settled(page);
    const links = await page.locator("nav a").evaluateAll((all) => all.map((one) => one.href.split("?")[0]));
    for (const one of links) if (one.startsWith(`${origin}/app/1/`)) found.add(one);
  }
  return [...found];
}

const name = (address) => address.slice(`${origin}/app/1/`.length).replaceAll("/", "-") || "home";

const browser = await launch();
try {
  const first = await open(browser, origin, { width: 1280 });
  await first.page.goto(link);
  await first.page.getByLabel("Your name").fill(PERSON.name);
  await first.page.getByLabel("E-mail address").fill(PERSON.email);
  await first.page.getByLabel("New password").fill(PERSON.password);
  await first.page.getByRole("button", { name: "Create account" }).click();
  await first.page.waitForURL(`${origin}/app/1/`);
  await settled(first.page);

  for (const person of ["Ana Torres", "Luis Marín", "Wen Zhao"]) await call("POST", "/contacts", { data: { $name: person } });
  for (const input of ["Do you have wooden trains?", "When do you open on Saturday?"]) await call("POST", "/runs", { input });

  await webhooks({ browser, origin, view: first, hook, person: PERSON, folder });
  const state = await first.context.storageState();
  const all = await pages(first.page);
  for (const width of [1280, 360]) {
    for (const scheme of ["light", "dark"]) {
      const view = await open(browser, origin, { width, scheme, state });
      for (const address of all) {
        await view.page.goto(address);
        await settled(view.page);
        await check(view, name(address), folder);
      }
      await view.page.goto(`${origin}/app/1/developers/events`);
      await view.page.locator("tbody a").first().click();
      await view.page.getByRole("heading", { name: "Payload" }).waitFor();
      await settled(view.page);
      await check(view, "event", folder);
      await view.page.goto(`${origin}/app/1/developers/webhooks`);
      await view.page.locator("tbody a").first().click();
      await view.page.getByRole("heading", { name: "Deliveries" }).waitFor();
      await settled(view.page);
      await check(view, "endpoint", folder);
      await view.page.locator("tbody a").first().click();
      await view.page.getByRole("heading", { name: "Attempts" }).waitFor();
      await settled(view.page);
      await check(view, "delivery", folder);
      await states({ view, origin, folder });
      await view.context.close();
    }
  }
  await sessionEnds({ browser, origin, state, person: PERSON, folder });
  console.log(`check-dashboard: ${all.length} pages, their states and journeys, 1280 and 360 pixels, light and dark`);
} finally {
  await browser.close();
  receiver.close();
}
