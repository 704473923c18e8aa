// The journeys through the looks of a collection: the board and the calendar.

import assert from "node:assert/strict";
import { check } from "./checks.mjs";
import { stored } from "./collection-changes.mjs";

/** Cards moved by mouse, by menu and by keyboard, one that is refused and goes back, a new record of a column, and a saved board. */
export async function board({ view, call, folder, path, here }) {
  const { page } = view;
  const column = (name) => page.getByRole("region", { name, exact: true });
  const card = (title) => page.getByRole("listitem").filter({ has: page.getByRole("link", { name: title, exact: true }) });
  const dialog = page.getByRole("dialog");
  await page.goto(here);
  await page.getByRole("button", { name: "Board" }).click();
  await page.waitForURL(/look=board/);
  await column("Received").getByRole("listitem").first().waitFor();
  await column("Done").getByText(String((await call("GET", `${path}/aggregate?metrics=count&group_by=state`)).groups.find(({ group }) => group.state === "done").values.count), { exact: true }).waitFor();
  await check(view, "collection-board", folder);
  const titles = await column("Received").getByRole("link").allInnerTexts();
  const item = async (title) => (await call("GET", `${path}?limit=100`)).find((one) => one.title === title);
  await card(titles[0]).dragTo(column("Done"));
  await column("Done").getByText(titles[0]).waitFor();
  await stored(() => item(titles[0]), ({ data }) => data.state === "done", "it is done");

  await card(titles[1]).getByRole("button").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", { name: "In repair" }).waitFor();
  await check(view, "collection-board-menu", folder);
  await page.keyboard.press("Enter");
  await column("In repair").getByText(titles[1]).waitFor();
  await page.waitForFunction((title) => document.activeElement?.textContent === title, titles[1]);
  await stored(() => item(titles[1]), ({ data }) => data.state === "in_repair", "it is in repair");
  await page.keyboard.press("Control+z");
  await column("Received").getByText(titles[1]).waitFor();
  await stored(() => item(titles[1]), ({ data }) => data.state === "received", "it is back");

  // Somebody else has moved it meanwhile, and then locked another one.
  const [other, locked] = [await item(titles[2]), await item(titles[3])];
  await call("POST", `${path}/${locked.id}/lock`);
  await card(titles[3]).getByRole("button").click();
  await page.getByRole("menuitem", { name: "Done" }).click();
  await page.getByText(`${titles[3]} was not moved.`).waitFor();
  await column("Received").getByText(titles[3]).waitFor();
  await check(view, "collection-board-refused", folder);
  await call("PATCH", `${path}/${other.id}`, { data: { customer: "Rosa Gil" } });
  await card(titles[2]).getByRole("button").click();
  await page.getByRole("menuitem", { name: "No State" }).click();
  await column("No State").getByText(titles[2]).waitFor();
  await stored(() => item(titles[2]), ({ data }) => data.state === undefined && data.customer === "Rosa Gil", "both changes stand");

  await column("Waiting for parts").getByRole("link", { name: "Create record" }).click();
  await dialog.getByLabel("Toy *").fill("Paper dragon");
  await dialog.getByRole("button", { name: "Create record" }).click();
  await page.getByRole("heading", { name: "Paper dragon" }).waitFor();
  assert.equal((await item("Paper dragon")).data.state, "waiting_for_parts");
  await page.getByRole("link", { name: "← All records" }).click();
  await column("Waiting for parts").getByText("Paper dragon").waitFor();

  await page.getByRole("button", { name: "Save as view" }).click();
  await dialog.getByLabel("Name").fill("By state");
  await dialog.getByRole("button", { name: "Save as view" }).click();
  await page.waitForURL(/view=\d+/);
  await page.reload();
  await column("Received").getByRole("listitem").first().waitFor();
  await page.getByRole("button", { name: "Grid" }).click();
  await page.getByRole("grid").getByText("Paper dragon").waitFor();
}

/** On a phone one column at a time, and cards are moved by their menus. */
export async function boardOnPhone({ view, call, folder, path, here }) {
  const { page } = view;
  await page.goto(`${here}?look=board&by=state`);
  const received = page.getByRole("region", { name: "Received", exact: true });
  await received.getByRole("listitem").first().waitFor();
  await check(view, "collection-board", folder);
  const title = await received.getByRole("link").first().innerText();
  await received.getByRole("button").first().click();
  await page.getByRole("menuitem", { name: "Done" }).click();
  await page.getByText(`State of ${title} changed`).waitFor();
  assert.equal((await call("GET", `${path}?limit=100`)).find((one) => one.title === title).data.state, "done");
  await page.getByLabel("Column", { exact: true }).selectOption({ label: await page.getByLabel("Column", { exact: true }).locator("option").filter({ hasText: "Done" }).innerText() });
  await page.getByRole("region", { name: "Done", exact: true }).getByText(title).waitFor();
  await page.getByRole("button", { name: "Previous column" }).click();
  await page.getByRole("region", { name: "Waiting for parts", exact: true }).waitFor();
}

/** A month with records on their days, the whole of a full day, and a new record on a day. */
export async function calendar({ view, call, folder, path, here }) {
  const { page } = view;
  const dialog = page.getByRole("dialog");
  const cell = (day) => page.getByRole("cell").filter({ has: page.locator(`time[datetime="${day}"]`) });
  await page.goto(`${here}?month=2026-11`);
  await page.getByRole("button", { name: "Calendar" }).click();
  await page.waitForURL(/look=calendar/);
  const count = (await call("GET", `${path}/aggregate?metrics=count&group_by=due_on`)).groups.find(({ group }) => group.due_on === "2026-11-20").values.count;
  await cell("2026-11-20").getByText(`+${count - 2} more`).waitFor();
  await check(view, "collection-calendar", folder);
  await cell("2026-11-20").getByRole("button").click();
  await dialog.getByRole("listitem").nth(count - 1).waitFor();
  await check(view, "collection-calendar-day", folder);
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await page.getByRole("button", { name: "Next month" }).click();
  await page.getByRole("heading", { name: "December 2026" }).waitFor();
  await cell("2026-12-24").hover();
  await cell("2026-12-24").getByRole("link", { name: "Create record on" }).click();
  await dialog.getByLabel("Toy *").fill("Paper star");
  await dialog.getByRole("button", { name: "Create record" }).click();
  await page.getByRole("heading", { name: "Paper star" }).waitFor();
  assert.equal((await call("GET", `${path}?limit=1`))[0].data.due_on, "2026-12-24");
  await check(view, "collection-calendar-record", folder);
  await page.getByRole("link", { name: "← All records" }).click();
  await cell("2026-12-24").getByText("Paper star").waitFor();
  // A record that is moved to another day in its own view stands there.
  await cell("2026-12-24").getByRole("link", { name: "Paper star" }).click();
  await page.getByRole("button", { name: "Edit Due on" }).click();
  await page.getByRole("region", { name: "Details" }).locator("input[type=date]").fill("2026-12-28");
  await page.keyboard.press("Enter");
  await cell("2026-12-28").getByText("Paper star").waitFor();
  await page.getByRole("button", { name: "Previous month" }).click();
  await cell("2026-11-20").getByRole("link").first().waitFor();
}

/** On a phone the days are a list. */
export async function calendarOnPhone({ view, folder, here }) {
  const { page } = view;
  await page.goto(`${here}?look=calendar&by=due_on&month=2026-11`);
  await page.getByRole("heading", { name: "Friday, November 20" }).waitFor();
  await check(view, "collection-agenda", folder);
  await page.getByRole("link", { name: "Create record on Friday, November 20" }).click();
  assert.equal(await page.getByRole("dialog").getByLabel("Due on").inputValue(), "2026-11-20");
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Previous month" }).click();
  await page.getByText("No record in October 2026").waitFor();
  await check(view, "collection-agenda-empty", folder);
}
