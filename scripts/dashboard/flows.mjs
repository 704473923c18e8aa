// Journeys through flows and automations. Each gets `view`, `origin`, `folder` and `call(method, path, body)`.

import assert from "node:assert/strict";
import { check, settled } from "./checks.mjs";

const node = (page, id) => page.locator(`.svelte-flow__node[data-id="${id}"]`);
const handle = (page, id, port) => node(page, id).locator(port ? `.svelte-flow__handle.source[data-handleid="${port}"]` : ".svelte-flow__handle.target");

async function add(page, kind) {
  await page.getByRole("button", { name: "Add node" }).click();
  const dialog = page.getByRole("dialog", { name: "Add node" });
  await dialog.getByRole("searchbox").fill(kind);
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
}

async function connect(page, from, port, to) {
  const [start, end] = await Promise.all([handle(page, from, port).boundingBox(), handle(page, to).boundingBox()]);
  await page.mouse.move(start.x + start.width / 2, start.y + start.height / 2);
  await page.mouse.down();
  await page.mouse.move(end.x + 2, end.y + 2, { steps: 8 });
  await page.mouse.move(end.x + end.width / 2, end.y + end.height / 2);
  await page.mouse.up();
}

const saved = (page) => page.getByRole("status").filter({ hasText: /^Saved$/ }).waitFor();
const panel = (page, name) => page.getByRole("region", { name: `Settings of ${name}` });

/** A flow is created, drawn, mended where an issue says so, published, tested, and its run is drawn. */
export async function flowOnCanvas({ view, origin, folder }) {
  const { page } = view;
  await page.goto(`${origin}/app/1/flows`);
  await settled(page);
  await check(view, "flows", folder);
  const name = `Parcel price ${Date.now()}`;
  await page.getByRole("button", { name: "Create flow" }).first().click();
  await page.getByRole("dialog").getByLabel("Name").fill(name);
  await page.getByRole("dialog").getByRole("button", { name: "Create flow" }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
  await node(page, "start").waitFor();
  await node(page, "start").click();
  await add(page, "Condition");
  await node(page, "condition").waitFor();
  await add(page, "End");
  await node(page, "end").waitFor();
  await page.locator(".svelte-flow__pane").click({ position: { x: 20, y: 20 } });
  await add(page, "End");
  await node(page, "end_2").waitFor();
  assert.equal(await page.locator(".svelte-flow__edge").count(), 2, "a node that follows another is connected with it");
  await page.getByRole("button", { name: "Show all nodes" }).click();
  await connect(page, "condition", "false", "end_2");
  await page.getByText("Not saved").waitFor();
  await page.waitForFunction(() => document.querySelectorAll(".svelte-flow__edge").length === 3);
  // Undo and redo, then a node that is moved.
  await page.keyboard.press("Control+z");
  await page.waitForFunction(() => document.querySelectorAll(".svelte-flow__edge").length === 2);
  await page.keyboard.press("Control+y");
  await page.waitForFunction(() => document.querySelectorAll(".svelte-flow__edge").length === 3);
  await node(page, "condition").click();
  const settings = panel(page, "condition");
  await settings.getByLabel("Expression", { exact: true }).check();
  await settings.getByRole("textbox", { name: /^Such as/ }).fill("$input.kg >");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await saved(page);
  // The issue stands at the node, in the list, and at the setting.
  await node(page, "condition").getByText("1 error").waitFor();
  await settings.locator(".danger").first().waitFor();
  await check(view, "flow-issue", folder);
  await settings.getByRole("textbox", { name: /^Such as/ }).fill("$input.kg > 2");
  await page.keyboard.press("Control+s");
  await saved(page);
  await page.getByRole("button", { name: "No issues" }).waitFor();
  await node(page, "end").click();
  await panel(page, "end").getByLabel("Output", { exact: true }).fill('{"cents": 990}');
  await panel(page, "end").getByLabel("Label").fill("Dear");
  await node(page, "end").getByText("Dear").waitFor();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await saved(page);
  await page.getByRole("button", { name: "Publish" }).click();
  await page.getByRole("dialog").getByText("New runs use this draft").waitFor();
  await check(view, "flow-publish", folder);
  await page.getByRole("dialog").getByRole("button", { name: "Publish flow" }).click();
  await page.getByText("The same as version 1").waitFor();
  await page.getByText("Active").first().waitFor();
  await page.getByRole("button", { name: "Test", exact: true }).click();
  await page.getByRole("dialog").getByLabel("Input").fill('{"kg": 3}');
  await check(view, "flow-test", folder);
  await page.getByRole("dialog").getByRole("button", { name: "Start test run" }).click();
  await page.getByText("Ran the draft").waitFor();
  await page.getByText("Completed").first().waitFor();
  await node(page, "end").getByText("Done").waitFor();
  assert.equal(await node(page, "end_2").getByText("Done").count(), 0, "only the way that was taken is lit");
  await page.waitForFunction(() => document.querySelectorAll(".svelte-flow__edge.went").length === 2);
  await page.getByRole("button", { name: /Dear/ }).last().click();
  await page.getByRole("region", { name: "Output" }).last().getByText("990").waitFor();
  await check(view, "flow-run", folder);
  // A changed draft shows what it has that is not published.
  await page.getByRole("link", { name: "Draft", exact: true }).click();
  await node(page, "end_2").click();
  await panel(page, "end_2").getByLabel("Label").fill("Cheap");
  await page.getByRole("button", { name: "Show differences from version 1" }).click();
  await node(page, "end_2").getByText("Changed").waitFor();
  await check(view, "flow-differences", folder);
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("The same as version 1").waitFor();
  await saved(page);
  await page.getByRole("link", { name: "Versions" }).click();
  await page.getByRole("button", { name: "Make it the draft" }).waitFor();
  await settled(page);
  await check(view, "flow-versions", folder);
  await page.getByLabel("More actions").click();
  await page.getByRole("button", { name: "Switch off" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Switch off" }).click();
  await page.locator("header .badge").filter({ hasText: "Off" }).waitFor();
}

/** The same with the keyboard alone, in the outline. */
export async function flowByKeyboard({ view, origin, folder }) {
  const { page } = view;
  const press = async (locator, key = "Enter") => { await locator.focus(); await page.keyboard.press(key); };
  await page.goto(`${origin}/app/1/flows`);
  await settled(page);
  await press(page.getByRole("button", { name: "Create flow" }).first());
  const name = `By keyboard ${Date.now()}`;
  await page.getByRole("dialog").getByLabel("Name").focus();
  await page.keyboard.type(name);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name }).waitFor();
  await press(page.getByRole("button", { name: "Outline" }));
  const outline = page.getByRole("list", { name: `Nodes of ${name}` });
  await press(outline.getByRole("button", { name: "Add a node after start" }));
  await page.keyboard.type("transform");
  await page.keyboard.press("Enter");
  await panel(page, "transform").waitFor();
  await page.keyboard.type("Sum");
  await panel(page, "Sum").waitFor();
  await panel(page, "Sum").getByLabel("Fields").focus();
  await page.keyboard.type('{"sum": "{{ 1 + 2 }}"}');
  // A new node behind a port, then one that is connected with another.
  await panel(page, "Sum").getByLabel("Connect port next").selectOption("+");
  await page.getByRole("dialog", { name: "Add node" }).waitFor();
  await page.keyboard.type("end");
  await page.keyboard.press("Enter");
  await press(panel(page, "end").getByRole("button", { name: "Close" }));
  await outline.getByText("→ 3 end").first().waitFor();
  await press(outline.getByRole("button", { name: /start Trigger/ }));
  await panel(page, "start").getByLabel("Connect port next").selectOption("end");
  await press(panel(page, "start").getByRole("button", { name: "Disconnect next from end" }));
  await panel(page, "start").getByRole("button", { name: "Disconnect next from end" }).waitFor({ state: "detached" });
  await press(panel(page, "start").getByRole("button", { name: "Close" }));
  await outline.getByText("2 Sum, 3 end").waitFor({ state: "detached" });
  await press(outline.getByRole("button", { name: "Delete end" }));
  await page.keyboard.press("Control+z");
  await outline.getByText("→ 3 end").first().waitFor();
  await page.keyboard.press("Control+s");
  await saved(page);
  await check(view, "flow-outline", folder);
  await press(page.getByRole("button", { name: "Test", exact: true }));
  await press(page.getByRole("dialog").getByRole("button", { name: "Start test run" }));
  await page.getByText("Completed").first().waitFor();
  await press(page.getByRole("list", { name: `Nodes of ${name}` }).getByRole("button", { name: /Sum Transform/ }));
  await page.getByRole("region", { name: "Output" }).last().getByText('"sum": 3').waitFor();
  await check(view, "flow-run-outline", folder);
}

/** Two people save one flow: the second sees what the first has changed, and decides. */
export async function flowConflict({ view, origin, call, folder }) {
  const { page } = view;
  const flow = await call("POST", "/workspaces/1/flows", { name: `Shared ${Date.now()}` });
  await page.goto(`${origin}/app/1/flows/${flow.id}?view=outline&node=start`);
  await panel(page, "start").getByLabel("Label").fill("Mine");
  await page.getByText("Not saved").waitFor();
  const theirs = [{ id: "start", type: "trigger", config: {} }, { id: "fin", type: "end", config: {}, label: "Theirs" }];
  await call("PATCH", `/workspaces/1/flows/${flow.id}`, { draft: { nodes: theirs } });
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const alert = page.getByRole("alert", { name: "Somebody else has saved this flow meanwhile" });
  await alert.getByRole("listitem").filter({ hasText: "Added Theirs" }).waitFor();
  await alert.getByRole("listitem").filter({ hasText: "Changed Mine" }).waitFor();
  await check(view, "flow-conflict", folder);
  await alert.getByRole("button", { name: "Load theirs" }).click();
  await saved(page);
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Not saved").waitFor();
  await call("PATCH", `/workspaces/1/flows/${flow.id}`, { settings: { description: "Shared." } });
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await alert.getByRole("button", { name: "Overwrite with mine" }).click();
  await saved(page);
  const stored = await call("GET", `/workspaces/1/flows/${flow.id}`);
  assert.deepEqual(stored.draft.nodes.map(({ label }) => label), ["Mine"]);
}

/** An automation is created, tested, fired, and one that does not fire says why. */
export async function automations({ view, origin, call, folder }) {
  const { page } = view;
  const flow = await call("POST", "/workspaces/1/flows", { name: `Greeting ${Date.now()}`, draft: { nodes: [{ id: "start", type: "trigger", config: {} }, { id: "fin", type: "end", config: {} }], edges: [{ from: "start", to: "fin" }] } });
  await call("POST", `/workspaces/1/flows/${flow.id}/publish`);
  await page.goto(`${origin}/app/1/automations`);
  await settled(page);
  await check(view, "automations", folder);
  await page.getByRole("button", { name: "Create automation" }).first().click();
  const form = page.getByRole("dialog");
  const name = `Greet ${Date.now()}`;
  await form.getByLabel("Name").fill(name);
  await form.getByLabel("When", { exact: true }).selectOption("keyword");
  await form.getByLabel("What is started").selectOption({ label: flow.name });
  await form.getByRole("button", { name: "Create automation" }).click();
  // What the trigger needs is said at its setting.
  await form.getByRole("alert").waitFor();
  assert.equal(await form.getByLabel(/^Words/).getAttribute("aria-invalid"), "true");
  await check(view, "automation-refused", folder);
  await form.getByLabel("When", { exact: true }).selectOption("manual");
  await form.getByRole("button", { name: "Add rule" }).click();
  await form.getByLabel("Value of rule 1").fill("$trigger.country");
  await form.getByLabel("Compared with, rule 1").fill("BR");
  await form.getByRole("button", { name: "Create automation" }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
  await page.getByText("Nothing has fired it yet").waitFor();
  await check(view, "automation-new", folder);
  await page.getByRole("button", { name: "Test", exact: true }).click();
  await page.getByRole("dialog").getByLabel("Data of the occurrence").fill('{"country": "ES"}');
  await page.getByRole("dialog").getByRole("button", { name: "Test", exact: true }).click();
  await page.getByText("It would not fire").waitFor();
  await page.getByText("does not hold").waitFor();
  await check(view, "automation-tested", folder);
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();
  for (const [country, outcome] of [["BR", "Fired"], ["ES", "Did not fire"]]) {
    await page.getByRole("button", { name: "Fire now" }).click();
    await page.getByRole("dialog").getByLabel("Data of the occurrence").fill(JSON.stringify({ country }));
    await page.getByRole("dialog").getByRole("button", { name: "Fire now" }).click();
    await page.getByRole("dialog").getByRole("status").getByText(outcome).first().waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();
  }
  await page.locator("tbody a").first().click();
  const detail = page.getByRole("region", { name: "Details" });
  await detail.getByText("The conditions do not hold.").waitFor();
  await detail.getByText("The value was").waitFor();
  await detail.getByText("ES").first().waitFor();
  await check(view, "automation-why", folder);
  await page.goBack();
  await page.locator("tbody a").last().click();
  await page.getByRole("link", { name: "Open run" }).click();
  await page.getByText("Runs version 1").waitFor();
  await page.goto(`${origin}/app/1/automations`);
  await page.getByRole("link", { name }).click();
  await page.getByRole("button", { name: "Switch off" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Switch off" }).click();
  await page.getByRole("button", { name: "Switch on" }).click();
  await page.getByRole("button", { name: "Switch off" }).waitFor();
}

