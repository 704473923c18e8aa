// Opens every page at the widths of a desk and of a telephone, light and dark, and each of some pages in its states.

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

/** Walks. `attempt(name, view, walk)` notes what fails. */
export async function walk({ browser, origin, state, folder, attempt }) {
  const first = await open(browser, origin, { width: 1280, state });
  const all = await pages(first.page, origin);
  await first.context.close();
  for (const width of [1280, 360]) {
    for (const scheme of ["light", "dark"]) {
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
      for (const [path, name, heading] of RECORDS) {
        await attempt(`page ${name}, ${width}, ${scheme}`, view, async () => {
          await page.goto(`${origin}/app/1/${path}`);
          await page.locator("tbody a").first().click();
          await page.getByRole("heading", { name: heading }).waitFor();
          await settled(page);
          await check(view, name, folder);
        });
      }
      await attempt(`states, ${width}, ${scheme}`, view, () => states({ view, origin, folder }));
      await view.context.close();
    }
  }
  return all.length;
}
