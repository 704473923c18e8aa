// Members of the team who are invited and sign in, in a browser each.

import { open, settled } from "./checks.mjs";

/** The password of everybody who is invited. */
export const PASSWORD = "eleven quiet herons at dusk";

/** Accepts the link of an invitation in another browser, and returns that browser at Home. */
export async function accept({ browser, origin, width }, link, name) {
  const view = await open(browser, origin, { width });
  await view.page.goto(link);
  const field = view.page.getByLabel("Your name");
  if (await field.count()) await field.fill(name);
  await view.page.getByLabel("New password").fill(PASSWORD);
  await view.page.getByRole("button", { name: "Create account and join" }).click();
  await view.page.waitForURL(/\/app\/\d+\/$/);
  await settled(view.page);
  return view;
}

/** Reads the one-time link, which Escape does not close. */
export async function takeLink(page) {
  const link = page.getByRole("dialog").locator("code");
  await link.waitFor();
  const url = await link.innerText();
  await page.keyboard.press("Escape");
  await link.waitFor();
  return url;
}

/** Fills in the form of an invitation, which is then to be created. */
export async function fillInvitation(page, origin, { name, email, role }) {
  const dialog = page.getByRole("dialog");
  await page.goto(`${origin}/app/1/settings/team`);
  await page.getByRole("button", { name: "Invite somebody" }).click();
  await dialog.getByLabel("E-mail address").fill(email);
  await dialog.getByLabel("Name", { exact: true }).fill(name);
  await dialog.getByLabel("Role").selectOption(role);
}

/** Invites somebody, who accepts in another browser. */
export async function invite({ browser, origin, page, width = 1280 }, who) {
  await fillInvitation(page, origin, who);
  await page.getByRole("dialog").getByRole("button", { name: "Create invitation" }).click();
  const link = await takeLink(page);
  await page.getByRole("dialog").getByRole("button", { name: "I have sent the link" }).click();
  return accept({ browser, origin, width }, link, who.name);
}
