// The pictures of docs/dashboard.md and of the README: `dashboard-*.png` in the folder of pictures.

import { writeFileSync } from "node:fs";
import { crc32, deflateSync } from "node:zlib";
import { settled } from "./checks.mjs";
import { conversationOf, MAIN, openShop, writeAs } from "./shop.mjs";

const COLOURS = 256;

/** Finds a palette for a picture in the browser, which has the decoder: the most frequent colours that differ from each other. */
async function quantise(page, png) {
  return page.evaluate(async ({ base64, most }) => {
    const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    context.drawImage(bitmap, 0, 0);
    const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
    const pixels = new Uint32Array(data.buffer);
    const frequency = new Map();
    for (const pixel of pixels) frequency.set(pixel, (frequency.get(pixel) ?? 0) + 1);
    const distance = (one, other) => [0, 8, 16].reduce((sum, shift) => sum + Math.abs(((one >> shift) & 255) - ((other >> shift) & 255)), 0);
    const byFrequency = [...frequency].sort((one, other) => other[1] - one[1]).map(([colour]) => colour);
    const palette = [];
    for (const least of [18, 9, 0]) for (const colour of byFrequency) if (palette.length < most && palette.every((one) => distance(one, colour) > least)) palette.push(colour);
    const nearest = new Map(byFrequency.map((colour) => [colour, palette.reduce((best, one, at) => (distance(one, colour) < distance(palette[best], colour) ? at : best), 0)]));
    const indices = Uint8Array.from(pixels, (pixel) => nearest.get(pixel));
    let text = "";
    for (let at = 0; at < indices.length; at += 32768) text += String.fromCharCode(...indices.subarray(at, at + 32768));
    return { width: bitmap.width, height: bitmap.height, palette: palette.flatMap((one) => [one & 255, (one >> 8) & 255, (one >> 16) & 255]), indices: btoa(text) };
  }, { base64: png.toString("base64"), most: COLOURS });
}

/** Encodes a picture with a palette as PNG. */
function encode({ width, height, palette, indices }) {
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [size, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    size.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([size, body, sum]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // Eight bits a pixel, of a palette.
  header.set([8, 3], 8);
  const pixels = Buffer.from(indices, "base64");
  const rows = Array.from({ length: height }, (_, row) => Buffer.concat([Buffer.alloc(1), pixels.subarray(row * width, (row + 1) * width)]));
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([signature, chunk("IHDR", header), chunk("PLTE", Buffer.from(palette)), chunk("IDAT", deflateSync(Buffer.concat(rows), { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}

/** Sends a request as the member who is signed in. */
async function asMember(page, method, path, body) {
  return page.evaluate(async ({ method, path, body }) => {
    const json = { "content-type": "application/json", accept: "application/json" };
    const exchange = await fetch("/session/token", { method: "POST", headers: json, body: JSON.stringify({ workspace: 1, env: "live" }) });
    const { token } = (await exchange.json()).data;
    const answer = await fetch(`/api/v1/dashboard${path}`, { method, headers: { ...json, authorization: `Bearer ${token}` }, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
    return (await answer.json()).data;
  }, { method, path, body });
}

/** Takes the pictures. */
export async function takePictures({ view, origin, folder, call, chat }) {
  const { page } = view;
  const go = async (path) => {
    await page.goto(`${origin}/app/1/${path}`);
    await settled(page);
  };
  const shoot = async (name) => {
    await settled(page);
    await page.mouse.move(0, 0);
    await page.evaluate(() => document.activeElement instanceof HTMLElement && document.activeElement.blur());
    const png = encode(await quantise(page, await page.screenshot()));
    writeFileSync(`${folder}/dashboard-${name}.png`, png);
  };
  await go("");
  await asMember(page, "PATCH", "/workspace", { name: "Casa Nórdica" });
  await openShop({ call, chat });
  const { contact } = await call("POST", "/contacts/upsert", { data: { $name: MAIN.name, $phone: `+${MAIN.phone}`, $email: "rosa@example.com", $country: "ES", $language: "es" }, tags: ["furniture", "monthly invoice"] });
  const { id } = contact;
  await call("POST", `/contacts/${id}/notes`, { body: "Furnishes two holiday flats. Wants one invoice a month." });
  const conversation = await conversationOf(call, id);

  await go(`inbox/${conversation.id}`);
  const log = page.getByRole("log", { name: "Messages" });
  await log.getByText(MAIN.asks[0]).waitFor();
  await page.getByRole("button", { name: "Take over", exact: true }).click();
  const field = page.getByLabel(`Message to ${MAIN.name}`);
  for (const [answer, next] of [
    ["Hello Rosa, I am sorry about that. Could you send us a picture of the scratch?", "It is on the left armrest, about five centimetres."],
    ["Thank you. We bring you a new chair on Thursday and take the scratched one with us. You pay nothing.", "Perfect, Thursday after 10 suits me. Thank you, Marta!"],
  ]) {
    await field.fill(answer);
    await field.press("Enter");
    await log.getByText(answer).waitFor();
    await log.locator("[data-status=delivered], [data-status=read]").last().waitFor();
    await writeAs(chat, MAIN, next);
    await log.getByText(next).waitFor();
  }
  await shoot("inbox");

  await go(`contacts/${id}`);
  await shoot("contact");

  await go("agents/playground?agent=1");
  await page.getByLabel("Message").first().fill("Do you have the oak side table in stock?");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Conversation" }).getByText("ready to collect today").waitFor();
  await shoot("playground");

  await go("flows");
  await page.locator("tbody a").first().click();
  await page.locator('.svelte-flow__node[data-id="look"]').click();
  await page.getByRole("region", { name: "Settings of look" }).waitFor();
  await page.getByRole("button", { name: "Show all nodes" }).click();
  // The whole flow is too small to read in a picture of this size.
  for (let step = 0; step < 3; step++) await page.getByRole("button", { name: "Zoom in" }).click();
  await shoot("flow");

  const { secret } = await asMember(page, "POST", "/keys", { name: "Web shop", env: "live", scopes: ["contacts:read", "items:read"] });
  const send = (method, path) => fetch(`${origin}/api/v1${path}`, { method, headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" }, ...(method === "POST" && { body: JSON.stringify({ data: { $name: "Nils Berg" } }) }) });
  for (const path of ["/contacts?limit=20", "/collections/1/items?limit=20", "/contacts?q=Iturbe"]) await send("GET", path);
  await send("POST", "/contacts");
  await go("developers/logs?status=4xx");
  await page.locator("tbody a").first().click();
  await page.locator("[data-record] h2, [data-record] h3").first().waitFor();
  await shoot("log");

  await go("");
  await shoot("home");
}
