// The journeys of a developer: a key is made, its request is refused, the log says why, and what it says mends it.

import assert from "node:assert/strict";
import { check, settled } from "./checks.mjs";

/** Sends a request with a key. Returns its status and its error code. */
async function send(origin, secret, path = "/contacts?limit=1") {
  const response = await fetch(`${origin}/api/v1${path}`, { headers: { authorization: `Bearer ${secret}` } });
  const body = await response.json();
  return { status: response.status, code: body.error?.code };
}

/** Sends a request until it is answered so: the service notices changes of keys within ten seconds. */
async function sendUntil(origin, secret, status) {
  const end = Date.now() + 15_000;
  for (;;) {
    const answer = await send(origin, secret);
    if (answer.status === status) return answer;
    assert(Date.now() < end, `${answer.status} ${answer.code} instead of ${status}`);
    // Slow enough for the key's limit per minute.
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** Opens the filters where a narrow page has folded them. */
async function openFilters(page) {
  await settled(page);
  const toggle = page.getByRole("button", { name: /^Filters/ });
  if (await toggle.isVisible()) await toggle.click();
}

async function readSecret(page, view, name, folder) {
  const dialog = page.getByRole("dialog");
  const code = dialog.locator("code").filter({ hasText: /^svc_/ });
  await code.waitFor();
  const secret = await code.innerText();
  assert((await dialog.locator("pre").innerText()).includes(secret), "the command has the secret");
  if (view) await check(view, name, folder);
  // Escape does not close what could not be shown again.
  await page.keyboard.press("Escape");
  await code.waitFor();
  await dialog.getByRole("button", { name: "I have stored the key" }).click();
  await dialog.waitFor({ state: "detached" });
  assert(!(await page.content()).includes(secret), "the secret is gone");
  assert(!(await page.evaluate((text) => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, history.state]).includes(text), secret)), "nothing keeps the secret");
  return secret;
}

/** A key is made; its request is refused; the log says why; the key is changed; the same request succeeds. */
export async function keyToSuccess({ view, origin, folder }) {
  const { page } = view;
  const name = `Online shop ${Date.now() % 100_000}`;
  await page.goto(`${origin}/app/1/developers/keys`);
  await page.getByRole("link", { name: "Create key" }).click();
  await page.getByLabel("Name").fill(name);
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByText("Choose at least one thing").waitFor();
  await page.getByRole("button", { name: /^Read only/ }).click();
  await page.getByRole("checkbox", { name: /contacts:write/ }).check();
  await page.getByText("scopes chosen").waitFor();
  await page.getByLabel("Requests per month").fill("x");
  await page.getByText("Give a whole number.").waitFor();
  await page.getByLabel("Requests per month").fill("0");
  await page.getByLabel("Energy a month, in USD").fill("25.50");
  await check(view, "key-new", folder);
  await page.getByRole("button", { name: "Create key" }).click();
  const secret = await readSecret(page, view, "key-secret", folder);
  await page.getByRole("heading", { level: 2, name }).waitFor();
  await page.getByText("$0.00 of $25.50 this month").waitFor();
  await check(view, "key", folder);

  const refused = await send(origin, secret);
  assert.deepEqual([refused.status, refused.code], [429, "quota_exceeded"]);
  await page.goto(`${origin}/app/1/developers/logs`);
  await openFilters(page);
  await page.getByRole("combobox", { name: "Check" }).selectOption("quota");
  const row = page.locator("tbody tr").filter({ hasText: name }).first();
  await row.getByRole("link").click();
  await page.getByText("0 of 0 requests this month").waitFor();
  await settled(page);
  await check(view, "log-refused", folder);
  await page.getByRole("button", { name: "Copy as curl" }).click();
  await page.getByRole("link", { name: "Change this key" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Requests per month").fill("1000");
  await check(view, "key-change", folder);
  await form.getByRole("button", { name: "Save changes" }).click();
  await form.waitFor({ state: "detached" });
  await sendUntil(origin, secret, 200);
  await page.goto(`${origin}/app/1/developers/logs`);
  await page.locator("tbody tr").filter({ hasText: "200" }).filter({ hasText: name }).first().getByRole("link").click();
  await page.getByText(/All \d+ checks passed/).click();
  await page.getByText("Does the key have the operation's scope?").waitFor();
  await check(view, "log-success", folder);
  return { name, secret };
}

/** A key is rotated with an overlap, then both are revoked. */
export async function rotateAndRevoke({ view, origin, folder }, { name, secret }) {
  const { page } = view;
  await page.goto(`${origin}/app/1/developers/keys`);
  await page.locator("tbody").getByRole("link", { name }).click();
  await page.getByRole("button", { name: "Rotate" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("The old key works for").selectOption("3600");
  await check(view, "key-rotate", folder);
  await dialog.getByRole("button", { name: "Rotate key" }).click();
  await page.getByText("The old key works until").waitFor();
  const fresh = await readSecret(page);
  assert.notEqual(fresh, secret);
  for (const one of [secret, fresh]) await sendUntil(origin, one, 200);
  await page.getByText("First key of its rotations").waitFor();
  await page.getByRole("button", { name: "Revoke", exact: true }).click();
  await dialog.getByText(`Programs that use ${name} are refused`).waitFor();
  await check(view, "key-revoke", folder);
  await dialog.getByRole("button", { name: `Revoke key ${name}` }).click();
  await dialog.waitFor({ state: "detached" });
  await page.locator("section").getByText("Revoked").first().waitFor();
  assert.equal((await sendUntil(origin, fresh, 401)).code, "api_key_revoked");
  assert.equal((await send(origin, secret)).status, 200);
  await page.goto(`${origin}/app/1/developers/keys`);
  await page.getByLabel("Show", { exact: true }).selectOption("all");
  await page.locator("tbody").getByText("Revoked").first().waitFor();
  await check(view, "keys-all", folder);
}

/** The log is live, pauses visibly, has filters in its address, and leads on. */
export async function logs({ view, origin, call, folder }) {
  const { page } = view;
  await page.goto(`${origin}/app/1/developers/logs`);
  await settled(page);
  await page.locator("h1").click();
  await page.keyboard.press("p");
  await page.getByText("Paused").waitFor();
  await call("GET", "/agents");
  await page.getByText(/Paused, \d+ new/).waitFor();
  await check(view, "logs-paused", folder);
  await page.getByRole("button", { name: "Go on" }).click();
  await page.locator("tbody").getByText("listAgents").first().waitFor();
  await openFilters(page);
  await page.getByRole("combobox", { name: "From" }).selectOption({ label: "Everybody" });
  await page.getByRole("combobox", { name: "Operation" }).fill("listAgents");
  await page.keyboard.press("Enter");
  await page.waitForURL(/by=all&operation=listAgents/);
  await page.reload();
  await openFilters(page);
  await page.locator("tbody tr").first().waitFor();
  assert.equal(await page.locator("tbody tr").filter({ hasNotText: "listAgents" }).count(), 0);
  await page.getByRole("combobox", { name: "Result" }).selectOption("failed");
  await page.getByText("No request like this").waitFor();
  await check(view, "logs-none-found", folder);
  await page.locator(".empty").getByRole("link", { name: "Remove filters" }).click();
  await page.locator("tbody tr").first().waitFor();
  await page.getByRole("combobox", { name: "Time" }).selectOption("between");
  await page.waitForURL(/from=/);
  await settled(page);
  await check(view, "logs-between", folder);
  await page.getByRole("searchbox", { name: "Request" }).fill("req_00000000000000000000000000");
  await page.keyboard.press("Enter");
  await page.getByText("This does not exist").waitFor();
  await check(view, "log-unknown", folder);
}

/** The overview leads to the requests of a failure, Health to what mends it. */
export async function overviewAndHealth({ view, origin, folder }) {
  const { page } = view;
  await page.goto(`${origin}/app/1/developers/overview`);
  await page.getByLabel("Period").selectOption("168");
  await settled(page);
  await page.locator("svg[role=img]").first().hover();
  await check(view, "overview", folder);
  await page.getByText("Hours with requests, as a table").click();
  await check(view, "overview-hours", folder);
  await page.locator("tbody").getByRole("link", { name: /^listContacts/ }).first().click();
  await page.waitForURL(/developers\/logs\?.*operation=listContacts.*code=quota_exceeded/);
  await page.locator("tbody tr").first().waitFor();
  await page.goto(`${origin}/app/1/developers/health`);
  await settled(page);
  await check(view, "health", folder);
  await page.locator("tbody").getByRole("link", { name: "Demo (live)" }).first().click();
  await page.getByRole("dialog").getByRole("heading", { name: "Change Demo (live)" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("heading", { level: 2, name: "Demo (live)" }).waitFor();
}

/** Each page while it loads, when it fails and when there is nothing. */
export async function workbenchStates({ view, origin, folder }) {
  const { page } = view;
  const api = /\/api\/v1\/(dashboard\/(?!me$)|webhook-endpoints|channels|billing|events|team)/;
  const nothing = { requests: [], hours: [], groups: [], checks: [] };
  const cases = {
    failed: (route) => route.fulfill({ status: 500, json: { success: false, error: { type: "api_error", code: "internal_error", message: "Something went wrong on our side." }, request_id: "req_01m7y8an3svyntrgbjv54q8v9e" } }),
    loading: () => undefined,
    empty: async (route) => {
      const answer = await route.fetch().catch(() => undefined);
      if (!answer) return;
      const body = await answer.json();
      if (Array.isArray(body.data)) body.data = [];
      else for (const [name, none] of Object.entries(nothing)) if (Array.isArray(body.data?.[name])) body.data[name] = none;
      if (body.data?.hours) body.data.requests = 0;
      if ("next_before" in (body.data ?? {})) Object.assign(body.data, { next_before: null, searched_to: null, is_complete: true });
      await route.fulfill({ response: answer, json: body }).catch(() => undefined);
    },
  };
  for (const [state, answer] of Object.entries(cases)) {
    await page.route(api, answer);
    for (const path of ["overview", "keys", "keys/new", "logs", "health"]) {
      await page.goto(`${origin}/app/1/developers/${path}`);
      if (state === "failed") await page.getByText("The service has failed").first().waitFor();
      else if (state === "empty") await settled(page);
      else await page.locator(".loading").first().waitFor();
      await check(view, `${path.replaceAll("/", "-")}-${state}`, folder);
    }
    await page.unroute(api, answer);
  }
}
