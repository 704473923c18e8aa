// Files that people send from the inbox, and the inbox of one channel.

import assert from "node:assert/strict";
import { crc32, deflateSync } from "node:zlib";
import { check } from "./checks.mjs";
import { customer, field, log, row } from "./inbox.mjs";

/** A picture of one colour. */
export function picture(width = 320, height = 240, [red, green, blue] = [196, 120, 64]) {
  const part = (type, data) => {
    const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
    const frame = Buffer.alloc(8);
    frame.writeUInt32BE(data.length, 0);
    frame.writeUInt32BE(crc32(body), 4);
    return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8);
  const line = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, Buffer.from([red, green, blue]))]);
  const lines = Buffer.concat(Array.from({ length: height }, () => line));
  return Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), part("IHDR", head), part("IDAT", deflateSync(lines)), part("IEND", Buffer.alloc(0))]);
}

const chosen = (page) => page.getByRole("list", { name: "Files to send" });
const add = async (page, files) => {
  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Add files" }).click();
  await (await choosing).setFiles(files);
};
/** Drops or pastes a file, as a browser reports it. */
const give = (locator, type, { name, mimeType, buffer }) =>
  locator.evaluate(
    (element, { type, name, mimeType, bytes }) => {
      const data = new DataTransfer();
      data.items.add(new File([Uint8Array.from(bytes)], name, { type: mimeType }));
      const options = { bubbles: true, cancelable: true };
      if (type === "paste") return void element.dispatchEvent(new ClipboardEvent("paste", { ...options, clipboardData: data }));
      for (const step of ["dragenter", "dragover", "drop"]) element.dispatchEvent(new DragEvent(step, { ...options, dataTransfer: data }));
    },
    { type, name, mimeType, bytes: [...buffer] },
  );

async function opened({ view, origin, chat, call }, name) {
  const { page } = view;
  const person = await customer(chat, call, name);
  await person.write("¿Me enseñas el tren y el catálogo?");
  await page.goto(`${origin}/app/1/inbox`);
  await row(page, person).click();
  await log(page).getByText("¿Me enseñas el tren y el catálogo?").waitFor();
  return person;
}

/** A picture with its text and a document reach the customer in their order; what was chosen can be taken away. */
export async function sendFiles(given) {
  const { view, folder } = given;
  const { page } = view;
  const person = await opened(given, "Carmen Ubeda");
  const train = { name: "tren rojo.png", mimeType: "image/png", buffer: picture() };
  await add(page, [train, { name: "catálogo de otoño 2026.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4\n%%EOF\n") }]);
  await give(page.locator("section.thread"), "drop", { ...train, name: "sobra.png" });
  await give(field(page, person), "paste", { ...train, name: "image.png" });
  await chosen(page).getByRole("listitem").nth(3).waitFor();
  for (const name of ["sobra.png", "image.png"]) await page.getByRole("button", { name: `Remove ${name}` }).click();
  await field(page, person).fill("El rojo, y todo lo demás.");
  await check(view, "inbox-files", folder);
  await page.keyboard.press("Enter");
  await chosen(page).waitFor({ state: "detached" });
  const sent = log(page).locator("article").filter({ hasText: "El rojo, y todo lo demás." });
  await sent.getByRole("img", { name: "tren rojo.png" }).waitFor();
  await log(page).getByRole("link", { name: /catálogo de otoño 2026\.pdf/ }).waitFor();
  assert.equal(await field(page, person).inputValue(), "");
  await log(page).locator("[data-status=delivered], [data-status=read]").last().waitFor();
  const { data } = await person.read();
  assert.deepEqual(data.filter(({ is_ours: isOurs }) => isOurs).map(({ kind }) => kind), ["image", "document"]);
  await check(view, "inbox-files-sent", folder);
}

/** A refused file says why, and keeps itself and the text, until it is sent or taken away. */
export async function refusedFiles(given) {
  const { view, folder } = given;
  const { page } = view;
  const person = await opened(given, "Joaquín Rey");
  const text = "Mira el plano de la casa de muñecas.";
  await field(page, person).fill(text);
  await add(page, [{ name: "plano.png", mimeType: "image/png", buffer: Buffer.concat([picture(), Buffer.alloc(6_000_000)]) }]);
  await chosen(page).getByText(/the network takes pictures of up to/).waitFor();
  assert.equal(await page.getByRole("button", { name: "Send", exact: true }).isDisabled(), true);
  await check(view, "inbox-file-too-large", folder);
  await page.getByRole("button", { name: "Remove plano.png" }).click();
  assert.equal(await field(page, person).inputValue(), text);
  await add(page, [{ name: "plano.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4\n%%EOF\n") }]);
  // The service refuses the upload, then takes it.
  await page.route("**/api/v1/files", (route) => route.fulfill({ status: 413, json: { success: false, error: { type: "validation_error", code: "payload_too_large", message: "The body is too large." } } }));
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByRole("alert").getByText("The body is too large.").waitFor();
  await chosen(page).getByText("plano.pdf").waitFor();
  assert.equal(await field(page, person).inputValue(), text);
  await check(view, "inbox-file-refused", folder);
  await page.unroute("**/api/v1/files");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await log(page).locator("article").filter({ hasText: text }).getByRole("link", { name: /plano\.pdf/ }).waitFor();
  await chosen(page).waitFor({ state: "detached" });
  assert.equal(await field(page, person).inputValue(), "");
}

/** With a second channel the list can be narrowed to one; the address keeps it over views, search and conversations. */
export async function oneChannel(given) {
  const { view, origin, chat, call, folder } = given;
  const { page } = view;
  const person = await customer(chat, call, "Teresa Valls");
  await person.write("¿Tenéis cometas?");
  const first = (await call("GET", "/channels"))[0];
  await page.goto(`${origin}/app/1/inbox`);
  await row(page, person).waitFor();
  assert.equal(await page.getByLabel("Channel", { exact: true }).count(), 0, "one channel is no choice");
  // The workspace of the demo has one channel; the page is told of a second one, which has no conversation.
  await page.route("**/api/v1/channels", async (route) => {
    const answer = await (await route.fetch()).json();
    await route.fulfill({ json: { ...answer, data: [...answer.data, { ...first, id: first.id + 999, name: "Wholesale", address: "+34 600 000 001" }] } });
  });
  await page.reload();
  await page.getByLabel("Channel", { exact: true }).selectOption({ label: "Wholesale (+34 600 000 001)" });
  await page.getByText("Other channels may have some.").waitFor();
  await check(view, "inbox-channel-empty", folder);
  for (const name of ["All", "Mine", "Unassigned"]) {
    const tab = page.getByRole("link", { name, exact: true });
    await tab.click();
    await page.waitForURL(new RegExp(`channel=${first.id + 999}`));
    const inList = await tab.evaluate((link) => {
      const [bar, own] = [link.parentElement, link].map((one) => one.getBoundingClientRect());
      return own.left >= bar.left - 1 && own.right <= bar.right + 1;
    });
    assert(inList, `${name} is out of sight`);
  }
  await page.getByLabel("Channel", { exact: true }).selectOption({ value: String(first.id) });
  await row(page, person).click();
  await page.waitForURL(/inbox\/\d+\?.*channel=/);
  await log(page).getByText("¿Tenéis cometas?").waitFor();
  await page.reload();
  await log(page).getByText("¿Tenéis cometas?").waitFor();
  await row(page, person).waitFor();
  assert.equal(await page.getByLabel("Channel", { exact: true }).inputValue(), String(first.id));
  await check(view, "inbox-channel", folder);
}
