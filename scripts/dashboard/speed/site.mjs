// The dashboard that is measured: its API, the owner who signs in, and pages that are opened as a browser opens them for the first time.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { launch } from "../launch.mjs";

const PERSON = { name: "Marta Ruiz", email: "marta@example.com", password: "correct horse battery" };
const VIEWPORT = { width: 1280, height: 800 };
/** A member may send 600 requests a minute. A refused one would be measured as a slow page. */
const MOST_REQUESTS = 400;
const MINUTE_MS = 60_000;
/** A telephone's network and processor: 1.6 Mbit/s, 150 ms, and four times as slow. */
const SLOW = { offline: false, latency: 150, downloadThroughput: 1_600_000 / 8, uploadThroughput: 750_000 / 8 };
const SLOWER = 4;

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Site {
  #sent = [];

  static async open({ origin, link, key }) {
    const site = Object.assign(new Site(), { origin, key, app: `${origin}/app/1/`, browser: await launch() });
    const context = await site.browser.newContext({ viewport: VIEWPORT });
    const page = await context.newPage();
    await page.goto(link || `${origin}/sign-in`);
    if (link) await page.getByLabel("Your name").fill(PERSON.name);
    await page.getByLabel("E-mail address").fill(PERSON.email);
    await page.getByLabel(link ? "New password" : "Password", { exact: true }).fill(PERSON.password);
    await page.getByRole("button", { name: link ? "Create account" : "Sign in" }).click();
    await page.waitForURL(site.app);
    await page.locator("h1").first().waitFor();
    site.state = await context.storageState();
    await context.close();
    return site;
  }

  /** Sends a request with the key; waits where the key has sent too many. */
  async ask(method, path, body) {
    const headers = { authorization: `Bearer ${this.key}`, "content-type": "application/json", ...(method === "POST" && { "idempotency-key": randomUUID() }) };
    for (let failures = 0; ; ) {
      let response;
      try {
        response = await fetch(`${this.origin}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
      } catch (error) {
        // A connection that was idle for long may be closed by the service just now.
        if (++failures > 2) throw error;
        continue;
      }
      if (response.status === 429) {
        await pause(1000 * Number(response.headers.get("retry-after") ?? 1));
        continue;
      }
      const answer = await response.json();
      assert(response.ok, `${method} ${path}: ${JSON.stringify(answer).slice(0, 400)}`);
      return answer;
    }
  }

  async call(method, path, body) {
    return (await this.ask(method, path, body)).data;
  }

  /** Waits until a page that is opened now is not refused for what was asked before. */
  async calm() {
    for (;;) {
      this.#sent = this.#sent.filter((at) => at > Date.now() - MINUTE_MS);
      if (this.#sent.length < MOST_REQUESTS) return;
      await pause(500);
    }
  }

  /** Opens a page in a browser that has stored nothing but the session. `probe` runs before anything of the page. */
  async view({ state = this.state, isSlow = false, probe, argument } = {}) {
    await this.calm();
    const context = await this.browser.newContext({ viewport: VIEWPORT, storageState: state });
    context.setDefaultTimeout(120_000);
    const page = await context.newPage();
    const devtools = await context.newCDPSession(page);
    const refused = [];
    page.on("request", (request) => request.url().includes("/api/v1/") && this.#sent.push(Date.now()));
    page.on("response", (response) => response.status() >= 400 && refused.push(`${response.status()} ${response.url()}`));
    await devtools.send("Network.enable");
    // The time that a thread has worked, whatever else the machine did meanwhile.
    await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
    if (isSlow) {
      await devtools.send("Network.emulateNetworkConditions", SLOW);
      await devtools.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
    }
    if (probe) await page.addInitScript(probe, argument);
    const close = async () => {
      await context.close();
      assert.deepEqual(refused, [], "a request was refused");
    };
    return { context, page, devtools, close };
  }
}

/** The heap after what is garbage was collected, and the time of the main thread. */
export async function usage(devtools) {
  await devtools.send("HeapProfiler.collectGarbage");
  const { metrics } = await devtools.send("Performance.getMetrics");
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}
