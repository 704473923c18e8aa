// Drives the pages for people, without scripts in the browser, at 1280 and 360 pixels, light and dark.
//
//   node drive.mjs ORIGIN START_LINK PICTURES      ends with 1 and says what was not so

import assert from "node:assert/strict";
import { launch } from "./launch.mjs";

const [origin, link, pictures] = process.argv.slice(2);
const EMAIL = "marta@example.com";
const PASSWORD = "correct horse battery";

const browser = await launch();

async function open(width, colorScheme) {
  const context = await browser.newContext({ viewport: { width, height: 740 }, colorScheme, javaScriptEnabled: false });
  const page = await context.newPage();
  const mistakes = [];
  // The browser notes answers with an error's status, which are wanted here.
  page.on("console", (message) => message.type() === "error" && !message.text().startsWith("Failed to load resource") && mistakes.push(message.text()));
  page.on("request", (request) => request.url().startsWith(origin) || request.url() === "data:," || mistakes.push(`it asks ${request.url()}`));
  return { context, page, mistakes, width, name: `${width}-${colorScheme}` };
}

// Everything fits, every field has a label, and everything that is pressed is large enough for a finger.
async function check({ page, width, name }, picture) {
  const session = await page.context().newCDPSession(page);
  const { cssContentSize } = await session.send("Page.getLayoutMetrics");
  assert(cssContentSize.width <= width, `${picture} at ${width} is ${cssContentSize.width} wide`);
  for (const control of await page.locator("input:not([type=hidden]), button").all()) {
    const box = await control.boundingBox();
    assert(box && box.x >= 0 && box.x + box.width <= width, `${picture}: a control is cut off at ${width}`);
    assert(box.height >= 24, `${picture}: a control is ${box.height} high`);
  }
  for (const input of await page.locator("input:not([type=hidden])").all()) {
    const id = await input.getAttribute("id");
    assert.equal(await page.locator(`label[for="${id}"]`).count(), 1, `${picture}: ${id} has no label`);
  }
  await page.screenshot({ path: `${pictures}-${picture}-${name}.png`, fullPage: true });
}

async function signIn({ page }, password) {
  await page.getByLabel("E-mail address").fill(EMAIL);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
}

try {
  const views = [await open(1280, "light"), await open(1280, "dark"), await open(360, "light"), await open(360, "dark")];

  for (const view of views) {
    await view.page.goto(`${origin}/sign-in`);
    await view.page.getByText("svc operator link").waitFor();
    await check(view, "empty");
    await view.page.goto(`${origin}/start`);
    await check(view, "code");
    await view.page.goto(link);
    await check(view, "start");
  }
  // The code is pasted, and the first try has a mistake.
  const [first] = views;
  await first.page.goto(`${origin}/start`);
  await first.page.getByLabel("Code").fill(link);
  await first.page.getByRole("button", { name: "Continue" }).click();
  await first.page.getByLabel("Your name").fill("Marta Ruiz");
  await first.page.getByLabel("E-mail address").fill(EMAIL);
  await first.page.getByLabel("New password").fill("1234567890");
  await first.page.getByRole("button", { name: "Create account" }).click();
  await first.page.getByRole("alert").waitFor();
  assert.equal(await first.page.locator("[role=alert]:focus").count(), 1, "the summary has the focus");
  await check(first, "start-wrong");
  await first.page.getByLabel("New password").fill(PASSWORD);
  await first.page.getByRole("button", { name: "Create account" }).click();
  // The dashboard needs scripts; these pages do not.
  await first.page.waitForURL(`${origin}/app/`);
  const [cookie] = (await first.context.cookies()).filter((one) => one.name === "svc_session");
  assert(cookie.httpOnly && cookie.sameSite === "Lax" && cookie.path === "/", JSON.stringify(cookie));
  await first.page.goto(link);
  await first.page.getByText("This link was used already").first().waitFor();
  await check(first, "used");

  for (const view of views) {
    const { page } = view;
    await view.context.clearCookies();
    // Nothing but the sign-in stands between a page and who asks for it.
    await page.goto(`${origin}/apps`);
    await signIn(view, "wrong password");
    await page.getByText("The e-mail address or the password is wrong.").first().waitFor();
    assert.equal(await page.getByLabel("E-mail address").inputValue(), EMAIL);
    await check(view, "wrong");
    await signIn(view, PASSWORD);
    await page.waitForURL(`${origin}/apps`);
    await check(view, "apps");
    await page.getByRole("link", { name: "Account" }).click();
    await page.getByRole("heading", { name: "Where you are signed in" }).waitFor();
    await check(view, "account");
    await page.goto(`${origin}/reauthenticate?next=%2Fapps`);
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await check(view, "confirm");
    await page.getByRole("button", { name: "Confirm" }).click();
    await page.waitForURL(`${origin}/apps`);
    // The keyboard reaches everything, and the focus can be seen.
    await page.keyboard.press("Tab");
    const outline = await page.locator(":focus").first().evaluate((one) => getComputedStyle(one).outlineStyle).catch(() => "unknown");
    assert.notEqual(outline, "none");
    await page.getByRole("button", { name: "Sign out" }).first().click();
    await page.waitForURL(`${origin}/sign-in`);
    // The back button shows nothing of the account.
    await page.goBack();
    await page.goto(`${origin}/account`);
    await page.waitForURL(`${origin}/sign-in?next=%2Faccount`);
    assert.deepEqual(view.mistakes, []);
  }
} finally {
  await browser.close();
}
