// Drives the page of the chat simulator as a customer, while the business takes the conversation over and hands it back.
//
//   node drive.mjs PAGE API KEY SCREENSHOT      ends with 1 and says what was not so

import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [page_url, api_url, key, screenshot] = process.argv.slice(2);
const QUIET = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [...QUIET, ...(process.getuid() === 0 ? ["--no-sandbox"] : [])],
});
const page = await browser.newPage({ viewport: { width: 1000, height: 640 } });
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
  await write("What is the capital of France?");
  await said("Paris");

  const [conversation] = await call("GET", "/conversations");
  const contact = `/contacts/${conversation.contact_id}`;
  await call("PUT", `${contact}/autopilot`, { enabled: false });
  await call("POST", `${contact}/operator-messages`, { text: "This is Eva. How can I help?" });
  await said("This is Eva. How can I help?");
  await write("Are you a person?");
  await call("POST", `${contact}/operator-messages`, { text: "I am." });
  await said("I am.");

  await call("PUT", `${contact}/autopilot`, { enabled: true });
  await write("What is the capital of Spain?");
  await said("Madrid");

  // The agent left the question to the person: four messages of the business, and none between them.
  const lines = await page.locator("#chat li").evaluateAll((all) => all.map((line) => line.className));
  assert.deepEqual(lines, ["mine", "business", "business", "mine", "business", "mine", "business"]);
  assert.deepEqual(mistakes, []);
  await page.screenshot({ path: screenshot });
} finally {
  await browser.close();
}
