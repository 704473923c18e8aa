// The journeys through Settings and Installation.
//
// Each gets `{ browser, origin, view, person, folder }`: `view` is signed in as the owner `person`, who operates the installation.

import assert from "node:assert/strict";
import { check, open, settled } from "./checks.mjs";
import { PASSWORD, accept, fillInvitation, takeLink } from "./people.mjs";

/** Changes of access act within ten seconds. */
const WITHIN = { timeout: 15_000 };

/** The list of choices in a label, whose text contains the choices too. */
const choice = (page, label) => page.locator("label", { has: page.getByText(label, { exact: true }) }).locator("select");
const dialog = (page) => page.getByRole("dialog");

/** Somebody is invited, signs in on a phone, gets another role and is removed, and each time sees what the role may see. */
export async function team(given) {
  const { origin, view, folder } = given;
  const { page } = view;
  await fillInvitation(page, origin, { name: "Leo Vidal", email: "leo@example.com", role: "agent" });
  await check(view, "invite", folder);
  await dialog(page).getByRole("button", { name: "Create invitation" }).click();
  await takeLink(page);
  await check(view, "invite-link", folder);
  await dialog(page).getByRole("button", { name: "I have sent the link" }).click();
  // Another link ends the first.
  await page.getByRole("button", { name: "New link Leo Vidal" }).click();
  await dialog(page).getByRole("button", { name: "New link", exact: true }).click();
  const link = await takeLink(page);
  await dialog(page).getByRole("button", { name: "I have sent the link" }).click();
  await check(view, "team-invited", folder);

  const leo = await accept({ ...given, width: 360 }, link, "Leo Vidal");
  await leo.page.goto(`${origin}/app/1/settings/team`);
  await leo.page.getByText("Marta Ruiz").first().waitFor();
  assert.equal(await leo.page.getByRole("button", { name: "Invite somebody" }).count(), 0);
  assert.equal(await leo.page.getByRole("link", { name: "Audit log" }).count(), 0);
  await choice(leo.page, "Your availability").selectOption("away");
  await choice(leo.page, "For").selectOption("60");
  await leo.page.getByText("Online in").waitFor();
  await check(leo, "team-agent", folder);
  await leo.page.goto(`${origin}/app/1/settings/audit`);
  await leo.page.getByText("You cannot open Audit log").waitFor();
  await check(leo, "audit-no-right", folder);

  await page.goto(`${origin}/app/1/settings/team`);
  await page.getByRole("link", { name: /^Leo Vidal/ }).click();
  await page.getByRole("region", { name: "Details" }).getByLabel("Role").selectOption("admin");
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByText("Saved", { exact: true }).waitFor();
  await check(view, "member", folder);
  // The page in front of which somebody waits opens by itself.
  await leo.page.getByRole("heading", { name: "Audit log", exact: true, level: 1 }).waitFor({ timeout: 30_000 });
  await settled(leo.page);
  await check(leo, "audit-admin", folder);

  await page.getByRole("button", { name: "Remove Leo Vidal" }).click();
  await check(view, "member-remove", folder);
  await dialog(page).getByRole("button", { name: "Remove Leo Vidal" }).click();
  await page.waitForURL(/settings\/team$/);
  await page.getByRole("link", { name: /^Leo Vidal/ }).waitFor({ state: "detached" });
  // The next requests of the page that is still open are refused within ten seconds.
  const select = choice(leo.page, "Change");
  const end = Date.now() + WITHIN.timeout;
  for (let at = 1; Date.now() < end && (await select.isVisible()); at = (at % 9) + 1) {
    // The list goes away with the page.
    await select.selectOption({ index: at }, { timeout: 5000 }).catch(() => undefined);
    await leo.page.waitForResponse((response) => /audit|token/.test(response.url()), WITHIN).catch(() => undefined);
  }
  await leo.page.getByText(/no member of this workspace|member of no workspace/).waitFor(WITHIN);
  await check(leo, "removed", folder);
  await leo.context.close();
}

/** The business profile is edited: what is wrong is said at its field, and what was changed is there afterwards. */
export async function business({ origin, view, folder }) {
  const { page } = view;
  await page.goto(`${origin}/app/1/settings/business`);
  await page.getByRole("button", { name: "Edit profile" }).click();
  await page.getByLabel("Legal name").fill("Juguetería Torres S.L.");
  await page.getByLabel("Time zone").fill("Europe/Nowhere");
  await page.getByRole("button", { name: "Add hours" }).click();
  await page.getByRole("button", { name: "Add holiday" }).click();
  await page.getByLabel("Date").last().fill("2026-12-31");
  await page.getByRole("button", { name: "Save profile" }).click();
  await page.getByRole("alert").waitFor();
  assert.equal(await page.getByLabel("Time zone").getAttribute("aria-invalid"), "true");
  await check(view, "business-refused", folder);
  await page.getByLabel("Time zone").fill("Europe/Madrid");
  await page.getByLabel("Messages and conversations").fill("365");
  await page.getByRole("button", { name: "Save profile" }).click();
  await page.getByText("Juguetería Torres S.L.").waitFor();
  await page.getByText("365 days").waitFor();
  await page.getByRole("button", { name: "Edit profile" }).click();
  await page.getByLabel("Messages and conversations").fill("");
  for (const name of [/^Remove opening hours/, /^Remove holiday/]) await page.getByRole("button", { name }).last().click();
  await page.getByRole("button", { name: "Save profile" }).click();
  await page.getByText("365 days").waitFor({ state: "detached" });
  await check(view, "business", folder);
}

/** The audit log says who did what, before and after, and filters by it. */
export async function audit({ origin, view, person, folder }) {
  const { page } = view;
  await page.goto(`${origin}/app/1/settings/audit`);
  await page.locator("tbody tr").nth(3).waitFor();
  // Members have names; one who has left has none any more.
  await page.getByRole("cell", { name: person.name, exact: true }).first().waitFor();
  await page.getByRole("cell", { name: /^Removed member \d+$/ }).first().waitFor();
  await check(view, "audit", folder);
  await choice(page, "Change").selectOption("member.role_set");
  await page.waitForURL(/action=member.role_set/);
  await page.getByRole("link", { name: "Role set" }).first().click();
  await page.getByRole("cell", { name: "Agent", exact: true }).waitFor();
  await page.getByRole("cell", { name: "Admin", exact: true }).waitFor();
  await check(view, "audit-entry", folder);
  await page.getByRole("link", { name: `Only changes by ${person.name}` }).click();
  await page.waitForURL(/account=acc_/);
  await page.goto(`${origin}/app/1/settings/audit?target=nothing`);
  await page.getByText("No change fits these filters").waitFor();
  await check(view, "audit-none", folder);
}

/** The own name, the browsers, and another password: it ends all sessions, and the sign-in leads back. */
export async function account({ browser, origin, view, person, folder }) {
  const { page } = view;
  const other = await open(browser, origin, { width: 360 });
  const signIn = async (where, password) => {
    await where.getByLabel("E-mail address").fill(person.email);
    await where.getByLabel("Password", { exact: true }).fill(password);
    await where.getByRole("button", { name: "Sign in" }).click();
  };
  await other.page.goto(`${origin}/sign-in`);
  await signIn(other.page, person.password);
  await other.page.waitForURL(/\/app\/1\/$/);

  await page.goto(`${origin}/app/1/settings/account`);
  await page.getByLabel("Language").selectOption("es");
  await page.getByRole("button", { name: "Save profile" }).click();
  await page.getByText("Saved", { exact: true }).waitFor();
  await check(view, "account", folder);
  const others = page.getByRole("button", { name: /^Sign out / });
  const count = await others.count();
  await others.first().click();
  await check(view, "account-session", folder);
  await dialog(page).getByRole("button", { name: "Sign out this browser" }).click();
  await others.nth(count - 1).waitFor({ state: "detached" });
  await other.context.close();

  const [current, next] = [page.getByLabel("Current password"), page.getByLabel("New password")];
  await current.fill("not the right one");
  await next.fill(PASSWORD);
  await page.getByRole("button", { name: "Change password" }).click();
  await page.getByRole("alert").waitFor();
  assert.equal(await current.getAttribute("aria-invalid"), "true");
  await check(view, "account-refused", folder);
  for (const [from, to] of [[person.password, PASSWORD], [PASSWORD, person.password]]) {
    await current.fill(from);
    await next.fill(to);
    await page.getByRole("button", { name: "Change password" }).click();
    await page.waitForURL(/\/sign-in\?next=/);
    await signIn(page, to);
    await page.waitForURL(/\/app\/1\/settings\/account$/);
    await settled(page);
  }
}

/** The operator makes a workspace with its owner, gives Energy, blocks it and unblocks it, and the owner sees why. */
export async function installation(given) {
  const { origin, view, folder } = given;
  const { page } = view;
  await page.goto(`${origin}/app/1/installation/overview`);
  await page.getByText("It answers", { exact: false }).or(page.getByText("One replica needs none", { exact: false })).waitFor();
  await check(view, "installation", folder);
  await page.goto(`${origin}/app/1/installation/workspaces`);
  await page.getByRole("button", { name: "Create workspace" }).click();
  await dialog(page).getByLabel("Name", { exact: true }).fill("Panadería Sol");
  assert.equal(await dialog(page).getByLabel("Name in addresses").inputValue(), "panaderia-sol");
  await dialog(page).getByLabel("Plan").selectOption("starter");
  await dialog(page).getByLabel("E-mail address of the owner").fill("sol@example.com");
  await dialog(page).getByLabel("Name of the owner").fill("Sol Ibarra");
  await check(view, "workspace-new", folder);
  await dialog(page).getByRole("button", { name: "Create workspace" }).click();
  const link = await takeLink(page);
  await dialog(page).getByRole("button", { name: "I have sent the link" }).click();
  const sol = await accept({ ...given, width: 360 }, link, "Sol Ibarra");
  const home = sol.page.url();

  await page.getByRole("button", { name: "Give Energy" }).click();
  await dialog(page).getByLabel("Amount").fill("5000");
  await dialog(page).getByRole("button", { name: "Give Energy" }).click();
  await page.getByText("5,000 Energy given.").waitFor();
  await page.getByRole("button", { name: "Set plan" }).click();
  await dialog(page).getByLabel("Plan").selectOption("pro");
  await dialog(page).getByRole("button", { name: "Set plan" }).click();
  await page.getByRole("region", { name: "Details" }).getByText("Pro", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Block workspace", exact: true }).click();
  await dialog(page).getByLabel("Reason").fill("Unpaid since October.");
  await check(view, "workspace-block", folder);
  await dialog(page).getByRole("button", { name: "Block workspace", exact: true }).click();
  await page.getByRole("button", { name: "Unblock workspace" }).waitFor();
  await check(view, "workspace-blocked", folder);

  // What the owner tries is refused, and the bar says why.
  await sol.page.goto(`${home}settings/team`);
  await sol.page.getByText("Unpaid since October.").waitFor(WITHIN);
  await settled(sol.page);
  await check(sol, "blocked", folder);
  await sol.page.getByRole("link", { name: "See Energy and billing" }).click();
  await sol.page.getByRole("heading", { level: 1, name: "Energy and billing" }).waitFor();
  await page.getByRole("button", { name: "Unblock workspace" }).click();
  await dialog(page).getByRole("button", { name: "Unblock workspace" }).click();
  await page.getByRole("button", { name: "Block workspace", exact: true }).waitFor();
  // The bar goes away by itself.
  await sol.page.getByText("Unpaid since October.").waitFor({ state: "detached", timeout: 40_000 });
  await sol.context.close();
  await page.goto(`${origin}/app/1/installation/accounts`);
  await page.getByText("sol@example.com").waitFor();
  await check(view, "accounts", folder);
}
