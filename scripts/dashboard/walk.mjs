// Opens every page at the widths of a desk and of a telephone, light and dark, and each of some pages in its states. A tablet and a wide
// screen see every page once, in light.

import { check, open, settled } from "./checks.mjs";
import { states } from "./journeys.mjs";

/** All pages: the links of the rail, their tabs, and the tabs in them. */
async function pages(page, origin) {
  const found = new Set([`${origin}/app/1/`]);
  for (const address of found) {
    await page.goto(address);
    await settled(page);
    const links = await page.locator("nav a").evaluateAll((all) => all.map((one) => one.href.split("?")[0]));
    for (const one of links) if (one.startsWith(`${origin}/app/1/`)) found.add(one);
  }
  return [...found];
}

const nameOf = (address, origin) => address.slice(`${origin}/app/1/`.length).replaceAll("/", "-") || "home";

/** The first record of a list, and what stands in it. */
const RECORDS = [
  ["developers/events", "event", "Payload"],
  ["developers/webhooks", "endpoint", "Deliveries"],
];

/** The widths with their schemes, and whether states and records are opened too. */
const LOOKS = [
  { width: 1280, schemes: ["light", "dark"], isWhole: true },
  { width: 360, schemes: ["light", "dark"], isWhole: true },
  { width: 768, schemes: ["light"] },
  { width: 1920, schemes: ["light"] },
];

/** Walks. `attempt(name, view, walk)` notes what fails. */
export async function walk({ browser, origin, state, folder, attempt, call, hook }) {
  const endpoints = await call("GET", "/webhook-endpoints");
  if (endpoints.length === 0) await call("POST", "/webhook-endpoints", { url: hook, enabled_events: ["contact.*"], description: "Orders" });
  const first = await open(browser, origin, { width: 1280, state });
  const all = await pages(first.page, origin);
  await first.context.close();
  for (const { width, schemes, isWhole = false } of LOOKS) {
    for (const scheme of schemes) {
      const view = await open(browser, origin, { width, scheme, state });
      const { page } = view;
      for (const address of all) {
        const name = nameOf(address, origin);
        await attempt(`page ${name}, ${width}, ${scheme}`, view, async () => {
          await page.goto(address);
          await settled(page);
          await check(view, name, folder);
        });
      }
      for (const [path, name, heading] of isWhole ? RECORDS : []) {
        await attempt(`page ${name}, ${width}, ${scheme}`, view, async () => {
          await page.goto(`${origin}/app/1/${path}`);
          await page.locator("tbody a").first().click();
          await page.getByRole("heading", { name: heading }).waitFor();
          await settled(page);
          await check(view, name, folder);
        });
      }
      if (isWhole) await attempt(`states, ${width}, ${scheme}`, view, () => states({ view, origin, folder }));
      await view.context.close();
    }
  }
  return all.length;
}
