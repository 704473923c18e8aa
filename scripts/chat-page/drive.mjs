// Drives the page of the chat simulator as a customer, and as a person of the business who takes over, writes and hands back.
//
//   node drive.mjs PAGE API KEY SCREENSHOT      ends with 1 and says what was not so

import assert from "node:assert/strict";
import { dirname } from "node:path";
import { check } from "./checks.mjs";
import { launch } from "./launch.mjs";

const [page_url, api_url, key, screenshot] = process.argv.slice(2);

const browser = await launch();
const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
// The embedded model takes as long as the machine lets it.
page.setDefaultTimeout(600_000);
const mistakes = [];
page.on("console", (message) => message.type() === "error" && mistakes.push(message.text()));
page.on("pageerror", (error) => mistakes.push(String(error)));
page.on("request", (request) => request.url().startsWith(page_url) || mistakes.push(`it asks ${request.url()}`));

async function call(method, path, body) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(api_url + path, { method, headers, body: body && JSON.stringify(body) });
  const answer = await response.json();
  assert(response.ok, `${method} ${path}: ${JSON.stringify(answer)}`);
  return answer.data;
}

async function write(text) {
  await page.fill("#text", text);
  await page.click("#send");
  await page.locator("#chat .mine").filter({ hasText: text }).waitFor();
}

// The message of the business, once it is on the page and the business knows that it was read.
async function said(text) {
  await page.locator("#chat .business").filter({ hasText: text }).filter({ hasText: "read" }).waitFor();
}

try {
  await page.goto(page_url);
  await page.locator("#customers option").first().waitFor({ state: "attached" });
  await write("Do you have wooden trains?");
  await said("Wooden Train");

  // The business's side of the page, for which the page has no key.
  await page.click("#as-business");
  await page.locator("#answers").filter({ hasText: "The agent answers." }).waitFor();
  await page.click("#switch");
  await page.locator("#answers").filter({ hasText: "A person answers." }).waitFor();
  await write("This is Eva. How can I help?");
  await page.screenshot({ path: screenshot.replace(".png", "-business.png") });
  await page.click("#as-customer");
  await said("This is Eva. How can I help?");
  await write("Are you a person?");
  const [conversation] = await call("GET", "/conversations");
  assert.equal(conversation.handler, "human");
  const contact = `/contacts/${conversation.contact_id}`;
  await call("POST", `${contact}/operator-messages`, { text: "I am." });
  await said("I am.");

  await page.click("#as-business");
  await page.locator("#chat .customer").filter({ hasText: "Are you a person?" }).waitFor();
  await page.click("#switch");
  await page.locator("#answers").filter({ hasText: "The agent answers." }).waitFor();
  await page.click("#as-customer");
  await write("And yoga mats?");
  await said("Yoga Mat");

  // The agent left the question to the person: four messages of the business, and none between them.
  const lines = await page.locator("#chat li").evaluateAll((all) => all.map((line) => line.className.split(" ")[0]));
  assert.deepEqual(lines, ["customer", "business", "business", "customer", "business", "customer", "business"]);

  // A template is shown with its footer.
  const [channel] = await call("GET", "/channels");
  const template = { name: "order_update", language: "en_US", params: { 1: "Ana", 2: "1042" } };
  await call("POST", `/channels/${channel.id}/chatnet/send-template`, { contact_id: conversation.contact_id, ...template });
  await said("your order 1042 is on its way.");
  await page.locator("#chat .footer").filter({ hasText: "Reply STOP to opt out" }).waitFor();
  await page.screenshot({ path: screenshot });

  // At a desk and on a telephone, everything that is used is on the screen, on both sides.
  for (const [width, scheme] of [[1280, "light"], [1280, "dark"], [390, "light"], [360, "light"], [360, "dark"]]) {
    await page.setViewportSize({ width, height: 740 });
    await page.emulateMedia({ colorScheme: scheme });
    for (const [side, used] of [["#as-customer", ["#text", "#send", "#voice"]], ["#as-business", ["#text", "#send", "#switch"]]]) {
      await page.click(side);
      await page.locator("#chat li").first().waitFor();
      for (const id of ["#customers", "#chat li:last-child", "#as-customer", "#as-business", ...used]) {
        const box = await page.locator(id).boundingBox();
        assert(box && box.x >= 0 && box.y >= 0, `${id} at ${width}: ${JSON.stringify(box)}`);
        assert(box.x + box.width <= width && box.y + box.height <= 740, `${id} at ${width}: ${JSON.stringify(box)}`);
      }
      const cut = (all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.id || one.textContent);
      assert.deepEqual(await page.locator("button").evaluateAll(cut), [], `buttons are cut off at ${width}`);
      const text = await page.locator("#text").boundingBox();
      assert(text.width >= 100, `the text box is ${text.width} wide at ${width}`);
      await check({ page, width, scheme, mistakes }, `chat-page${side.slice(3)}`, dirname(screenshot));
    }
  }
  assert.deepEqual(mistakes, []);
} catch (error) {
  console.error(await page.locator("#chat").innerText());
  throw error;
} finally {
  await browser.close();
}
