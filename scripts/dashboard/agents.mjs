// The journeys through Agents and Channels.

import assert from "node:assert/strict";
import { check, settled } from "./checks.mjs";

/** The pages whose states (failed, loading, empty, long) are looked at. */
export const agentPages = ["agents", "agents/playground", "agents/runs", "channels"];

const WAIT = { timeout: 240_000 };
const unique = () => `Toy adviser ${Date.now() % 1_000_000}`;

/** An agent is created, talked to in the playground, found among the runs, changed, compared, restored and deleted. */
export async function agents({ view, origin, folder, call }) {
  const { page } = view;
  const name = unique();
  const dialog = page.getByRole("dialog");
  await page.goto(`${origin}/app/1/agents`);
  await settled(page);
  await page.getByRole("button", { name: "Create agent" }).first().click();
  await dialog.getByLabel("Name").fill("Assistant");
  await dialog.getByLabel("Instructions").fill("You advise people who look for a toy.\nAnswer in one sentence.");
  await dialog.getByRole("button", { name: "Create agent" }).click();
  // The demo has an agent of this name. The refusal stands at the field, and what was typed stays.
  await dialog.getByRole("alert").waitFor();
  await check(view, "agent-refused", folder);
  await dialog.getByLabel("Name").fill(name);
  await dialog.getByRole("button", { name: "Create agent" }).click();
  await page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
  const id = Number(new URL(page.url()).pathname.split("/").at(-1));
  await call("PATCH", `/agents/${id}`, { timeout_seconds: 600, max_output_tokens: 32 });
  await page.reload();
  await settled(page);
  await check(view, "agent-settings", folder);

  // A draft runs in the test environment, with its steps at the side.
  // On a phone all that can be done with an agent is in one menu.
  if (view.width < 720) await page.locator("main summary").filter({ hasText: "More" }).click();
  await page.getByRole("link", { name: "Open in playground" }).click();
  await page.getByRole("heading", { level: 1, name: "Playground" }).waitFor();
  await settled(page);
  await check(view, "playground-empty", folder);
  await page.getByLabel("Message").fill("Which toy do you suggest for a child of three?");
  await page.keyboard.press("Enter");
  await page.locator(".answer p.text").first().waitFor(WAIT);
  await page.getByRole("button", { name: "Run again" }).waitFor(WAIT);
  assert((await page.locator("ol.trace > li").count()) > 0, "the steps are there");
  await check(view, "playground-answer", folder);
  // On narrow screens the steps are another pane.
  if (view.width < 1000) await page.getByRole("button", { name: "Show steps" }).click();
  await page.locator("ol.trace summary").first().click();
  await page.getByRole("heading", { name: "Messages to the model" }).waitFor();
  await check(view, "playground-step", folder);
  // The address names the conversation, so it survives a reload.
  await page.reload();
  await page.locator(".answer p.text").first().waitFor();
  await page.getByRole("link", { name: "Open run" }).click();
  await page.getByRole("heading", { level: 2, name: "Which toy do you suggest" }).waitFor();
  await settled(page);
  await check(view, "run", folder);
  await page.goto(`${origin}/app/1/agents/runs?agent=${id}`);
  await page.locator("tbody a").first().waitFor();
  await check(view, "runs-of-agent", folder);
  await page.locator("tbody a").first().click();
  await page.getByRole("link", { name: "Run again" }).click();
  await page.waitForFunction(() => document.querySelector("textarea")?.value.startsWith("Which toy"));

  // Instructions are changed, compared and restored.
  await page.goto(`${origin}/app/1/agents/${id}`);
  await page.getByLabel("Instructions").fill("You advise people who look for a toy.\nAnswer in two sentences.");
  await page.getByText("Not saved yet").waitFor();
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByText("Saved as version 3").waitFor();
  await page.getByRole("link", { name: "Versions", exact: true }).click();
  await page.getByRole("link", { name: "Version 3", exact: true }).click();
  await page.locator("pre.added", { hasText: "Answer in two sentences." }).waitFor();
  await page.locator("pre.removed", { hasText: "Answer in one sentence." }).waitFor();
  await check(view, "agent-difference", folder);
  await page.goto(`${origin}/app/1/agents/${id}/versions/2`);
  await page.getByRole("button", { name: "Restore version 2" }).click();
  await dialog.getByRole("button", { name: "Restore version 2" }).click();
  await page.getByText("restored from 2").waitFor();
  const { instructions, version } = await call("GET", `/agents/${id}`);
  assert.equal(version, 4);
  assert(instructions.endsWith("Answer in one sentence."));

  // A version from elsewhere is not overwritten.
  await page.goto(`${origin}/app/1/agents/${id}`);
  await page.getByLabel("Description").fill("Mine");
  await call("PATCH", `/agents/${id}`, { description: "Of somebody else", max_steps: 9 });
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByRole("heading", { name: "Somebody else has changed this meanwhile" }).waitFor();
  assert.equal(await page.getByLabel("Description").inputValue(), "Mine");
  await check(view, "agent-conflict", folder);
  await page.locator("pre.added", { hasText: "Of somebody else" }).waitFor();
  await page.getByRole("button", { name: "Keep mine, take the rest" }).click();
  assert.equal(await page.getByLabel("Model calls").inputValue(), "9");
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByText("Saved as version 6").waitFor();
  assert.equal((await call("GET", `/agents/${id}`)).description, "Mine");

  await page.locator("main summary").filter({ hasText: "More" }).click();
  await check(view, "agent-menu", folder);
  await page.getByRole("button", { name: "Delete" }).click();
  await dialog.getByRole("button", { name: "Delete agent" }).click();
  await page.waitForURL(`${origin}/app/1/agents`);
}

/** Tools are attached, changed and detached; a skill is set; the agent is activated, made the default, and duplicated. */
export async function agentParts({ view, origin, folder, call }) {
  const { page } = view;
  const name = unique();
  const dialog = page.getByRole("dialog");
  const { id } = await call("POST", "/agents", { name, instructions: "You are short." });
  await page.goto(`${origin}/app/1/agents/${id}/tools`);
  await page.getByRole("button", { name: "Attach tool" }).click();
  await dialog.getByLabel("Type").selectOption("collection_search");
  await dialog.getByLabel("Name").fill("products");
  await dialog.getByLabel("Collection", { exact: true }).selectOption({ label: "Products" });
  await check(view, "tool-form", folder);
  await dialog.getByRole("button", { name: "Attach tool" }).click();
  await page.getByRole("heading", { level: 2, name: "products" }).waitFor();
  await page.getByRole("button", { name: "Change", exact: true }).click();
  await dialog.getByLabel("Approval").selectOption("always");
  await dialog.getByRole("button", { name: "Save tool" }).click();
  await page.locator("dd", { hasText: "For every call" }).waitFor();
  await check(view, "tool", folder);
  await page.getByRole("button", { name: "Detach", exact: true }).click();
  await dialog.getByRole("button", { name: "Detach tool" }).click();
  await page.getByText("This agent has no tool").waitFor();
  await check(view, "tools-empty", folder);
  await page.getByRole("link", { name: "Skills", exact: true }).click();
  await page.getByLabel("Skill").selectOption({ index: 1 });
  await page.getByRole("button", { name: "Add skill" }).click();
  await page.getByRole("button", { name: "Save skills" }).click();
  await page.getByRole("button", { name: "Save skills" }).waitFor({ state: "detached" });
  assert.equal((await call("GET", `/agents/${id}`)).skills.length, 1);
  await page.getByRole("button", { name: "Activate", exact: true }).click();
  await page.getByRole("button", { name: "Deactivate" }).click();
  await dialog.getByRole("button", { name: "Deactivate agent" }).click();
  await page.getByRole("button", { name: "Activate", exact: true }).waitFor();
  await page.locator("main summary").filter({ hasText: "More" }).click();
  await page.getByRole("button", { name: "Duplicate" }).click();
  await dialog.getByRole("button", { name: "Create copy" }).click();
  await page.getByRole("heading", { level: 1, name: `${name} (copy)` }).waitFor();
  await page.getByRole("link", { name: "Usage", exact: true }).click();
  await page.getByText("No run in this time").waitFor();
  await check(view, "agent-usage-empty", folder);
}

/** A call that needs approval is approved and denied in place, and a run is interrupted by a newer message. */
export async function playgroundDecides({ view, origin, folder, call, hook }) {
  const { page } = view;
  const { id } = await call("POST", "/agents", { name: unique(), instructions: "You refund orders with the tool refund.", status: "active", timeout_seconds: 600, max_output_tokens: 64 });
  await call("PUT", `/agents/${id}/tools/refund`, {
    type: "http", description: "Refunds an order.", approval: "on_write", http: { url: new URL("/refunds", hook).href },
    parameters: { type: "object", required: ["order", "cents"], properties: { order: { type: "integer" }, cents: { type: "integer" } } },
  });
  const send = async (text) => {
    await page.getByLabel("Message").fill(text);
    await page.keyboard.press("Enter");
  };
  await page.goto(`${origin}/app/1/agents/playground?agent=${id}`);
  await settled(page);
  await send("Order 4711 arrived broken. Refund it.");
  await page.getByRole("heading", { name: "Waits for your approval" }).waitFor(WAIT);
  await check(view, "playground-approval", folder);
  await page.getByLabel("Note").fill("The customer sent a photo");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByRole("button", { name: "Run again" }).waitFor(WAIT);
  await page.getByRole("button", { name: "New conversation" }).click();
  await send("Order 5120 arrived broken. Refund it.");
  await page.getByRole("button", { name: "Deny" }).click(WAIT);
  await page.getByRole("button", { name: "Run again" }).waitFor(WAIT);
  if (view.width < 1000) await page.getByRole("button", { name: "Show steps" }).click();
  await page.locator("ol.trace").getByText("Denied").first().waitFor();
  await check(view, "playground-denied", folder);

  const { id: talker } = await call("POST", "/agents", { name: unique(), instructions: "You tell long stories.", status: "active", timeout_seconds: 600, max_output_tokens: 1024 });
  await page.goto(`${origin}/app/1/agents/playground?agent=${talker}`);
  await settled(page);
  await send("Tell me everything about the shop, as a long story.");
  await page.getByLabel("While the agent works").waitFor();
  await page.waitForURL(/conversation=/);
  await send("Stop. When do you open?");
  await page.getByText("Cancelled").waitFor(WAIT);
  await page.getByText("A newer message interrupted it").waitFor();
  await check(view, "playground-cancelled", folder);
}

/** A channel with its health, and a template that is refused, mended, reviewed and deleted. */
export async function channels({ view, origin, folder }) {
  const { page } = view;
  const dialog = page.getByRole("dialog");
  await page.goto(`${origin}/app/1/channels`);
  await page.locator("tbody a").first().click();
  await page.getByText("Waiting to be sent").waitFor();
  await settled(page);
  await check(view, "channel", folder);
  await page.getByRole("link", { name: "Errors", exact: true }).click();
  await settled(page);
  await check(view, "channel-errors", folder);
  await page.getByRole("link", { name: "Message templates" }).click();
  await page.getByRole("button", { name: "Create template" }).click();
  await dialog.getByLabel("Name").fill("loyalty_card");
  await dialog.getByLabel("Text", { exact: true }).fill("{{1}}, your card has {{2}} points.");
  await dialog.getByLabel("Sample of {{1}}").fill("Ana");
  await dialog.getByLabel("Sample of {{2}}").fill("120");
  await dialog.getByRole("button", { name: "Submit for review" }).click();
  await dialog.getByRole("alert").waitFor();
  await check(view, "template-refused", folder);
  await dialog.getByLabel("Text", { exact: true }).fill("Hello {{1}}, your card has {{2}} points.");
  await dialog.getByRole("button", { name: "Add button" }).click();
  await dialog.getByLabel("Label").fill("Show card");
  await dialog.getByRole("button", { name: "Submit for review" }).click();
  await page.getByRole("heading", { level: 2, name: "loyalty_card" }).waitFor();
  // The network decides within seconds, and the page hears of it by an event.
  await page.getByText("It can be sent.").waitFor(WAIT);
  await settled(page);
  await check(view, "template", folder);
  await page.getByRole("button", { name: "Delete" }).click();
  await dialog.getByRole("button", { name: "Delete template" }).click();
  await page.getByRole("heading", { level: 2, name: "loyalty_card" }).waitFor({ state: "detached" });
}
