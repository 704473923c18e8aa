// The journeys through the dashboard.

import assert from "node:assert/strict";
import { check, settled } from "./checks.mjs";

/** An endpoint is created with its secret, tested, read, tried again, rotated, replayed, disabled and enabled. */
export async function webhooks({ view, origin, hook, folder }) {
  const { page } = view;
  await page.goto(`${origin}/app/1/developers/webhooks`);
  await page.getByRole("button", { name: "Create endpoint" }).first().click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Address").fill("http://10.0.0.1/");
  await form.getByLabel("Events", { exact: true }).fill("contact.*");
  await form.getByRole("button", { name: "run.*", exact: true }).click();
  await form.getByLabel("Description").fill("Orders");
  await form.getByRole("button", { name: "Create endpoint" }).click();
  // The refusal names the field, and what was typed stays.
  await form.getByRole("alert").waitFor();
  assert.equal(await form.getByLabel("Address").getAttribute("aria-invalid"), "true");
  await check(view, "endpoint-refused", folder);
  await form.getByLabel("Address").fill(hook);
  await form.getByRole("button", { name: "Create endpoint" }).click();
  await page.getByText("whsec_").waitFor();
  await check(view, "endpoint-secret", folder);
  await page.keyboard.press("Escape");
  await page.getByText("whsec_").waitFor();
  await page.getByRole("button", { name: "I have stored the secret" }).click();
  await page.getByRole("heading", { name: "Orders" }).waitFor();

  for (const attempt of [1, 2]) {
    await page.getByRole("button", { name: "Send test event" }).click();
    await page.getByRole("heading", { name: "Attempts" }).waitFor();
    if (attempt === 1) await page.getByText("answered 200").waitFor();
    else await page.getByText("answered 503").first().waitFor();
  }
  await page.getByRole("button", { name: "Rotate secret" }).click();
  await page.getByRole("dialog").getByLabel("Keep the old secret for").selectOption("3600");
  await page.getByRole("dialog").getByRole("button", { name: "Rotate secret" }).click();
  await page.getByText("whsec_").waitFor();
  await page.getByRole("button", { name: "I have stored the secret" }).click();
  await page.getByRole("button", { name: "Replay events" }).click();
  await page.getByRole("dialog").getByLabel("Which events").selectOption("any");
  await page.getByRole("button", { name: "Count first" }).click();
  await page.getByText("would be sent").waitFor();
  await check(view, "endpoint-replay", folder);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByRole("button", { name: "Disable endpoint" }).click();
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByRole("button", { name: "Disable" }).waitFor();
}

/** Pages with texts as long as they may be, pages of a blocked workspace, an address without a page, and the palette. */
export async function extremes({ view, origin, folder }) {
  const { page } = view;
  // A page that is left gets no answer, and a long poll may take longer than the page is open.
  const changed = (change) => async (route) => {
    if (route.request().url().includes("/events/live")) return route.continue();
    const answer = await route.fetch().catch(() => undefined);
    if (answer) await route.fulfill({ response: answer, json: change(await answer.json()) }).catch(() => undefined);
  };
  const long = changed((body) => lengthen(body));
  await page.route("**/api/v1/**", long);
  for (const path of ["", "developers/events", "developers/webhooks", "developers/usage", "settings/business", "settings/team", "settings/billing", "settings/billing/ledger"]) {
    await page.goto(`${origin}/app/1/${path}`);
    await settled(page);
    await check(view, `${path.replaceAll("/", "-") || "home"}-long`, folder);
  }
  await page.unroute("**/api/v1/**", long);
  const blocked = changed((body) => ({ ...body, data: { ...body.data, blocked_reason: "The invoice of October is not paid." } }));
  await page.route("**/api/v1/dashboard/me", blocked);
  for (const path of ["settings/team", "contacts", "developers/keys", "developers/webhooks"]) {
    await page.goto(`${origin}/app/1/${path}`);
    await page.getByText("The invoice of October").waitFor();
    await settled(page);
    await check(view, `${path.replaceAll("/", "-")}-blocked`, folder);
    assert.equal(await page.getByText(/^(Invite somebody|Create (contact|key|endpoint)|Import)$/).count(), 0, `${path} of a blocked workspace`);
  }
  await page.unroute("**/api/v1/dashboard/me", blocked);
  await page.goto(`${origin}/app/1/nothing`);
  await page.getByText("This page does not exist").waitFor();
  await check(view, "no-page", folder);
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("us");
  await check(view, "palette", folder);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Usage" }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor();
  await check(view, "shortcuts", folder);
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await page.getByRole("heading", { level: 1, name: "Home" }).waitFor();
}

// Names and texts as long as the contract lets people make them, with marks that turn the direction of text.
function lengthen(value, key = "") {
  const texts = ["name", "description", "input", "legal_name", "address", "status_reason", "key_name", "url", "email"];
  if (typeof value === "string" && texts.includes(key)) return `${value} <b>Größe</b> \u202eabc ${"Donaudampfschifffahrtsgesellschaft".repeat(6)}`;
  if (Array.isArray(value)) return value.map((one) => lengthen(one, key));
  if (value !== null && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, lengthen(one, name)]));
  return value;
}

/** The session ends while something is typed: it stays, and after signing in in another tab the request is sent. */
export async function sessionEnds({ view, origin, person, call, hook, folder }) {
  const { page, context } = view;
  await call("POST", "/webhook-endpoints", { url: hook, enabled_events: ["contact.*"], description: "Orders of a branch" });
  await page.clock.install();
  await page.goto(`${origin}/app/1/developers/webhooks`);
  await page.locator("tbody a").first().click();
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("dialog").getByLabel("Description").fill("Orders of the shop");
  await context.clearCookies();
  // The token is used for four minutes.
  await page.clock.fastForward("05:00");
  await page.getByRole("button", { name: "Save changes" }).click();
  const dialog = page.getByRole("dialog").filter({ hasText: "Your session has ended" });
  await dialog.waitFor();
  await check(view, "session-ended", folder);
  const [other] = await Promise.all([context.waitForEvent("page"), dialog.getByRole("link", { name: "Sign in in a new tab" }).click()]);
  await other.getByLabel("E-mail address").fill(person.email);
  await other.getByLabel("Password", { exact: true }).fill(person.password);
  await other.getByRole("button", { name: "Sign in" }).click();
  await other.getByText("You are signed in").waitFor();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("heading", { level: 1, name: "Orders of the shop" }).waitFor();
}
