// The journeys through Contacts.

import assert from "node:assert/strict";
import { check, settled } from "./checks.mjs";

const rowsOf = (page) => page.locator("[data-row]");
const shown = (page) => rowsOf(page).first().waitFor();

/** A contact is created, found by two conditions that the address keeps, changed, tagged and noted. */
export async function createAndFilter({ view, origin, folder }) {
  const { page } = view;
  await page.goto(`${origin}/app/1/contacts`);
  await shown(page);
  await check(view, "contacts", folder);
  await page.getByRole("button", { name: "Create contact" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Create contact" }).click();
  await dialog.getByText("A contact needs a name").waitFor();
  await dialog.getByLabel("Phone").fill("12");
  await dialog.getByRole("button", { name: "Create contact" }).click();
  // The refusal stands at its field, and what was typed stays.
  await dialog.getByRole("alert").waitFor();
  assert.equal(await dialog.getByLabel("Phone").getAttribute("aria-invalid"), "true");
  await check(view, "contact-refused", folder);
  await dialog.getByLabel("Name").fill("Nuria Campos");
  await dialog.getByLabel("Phone").fill("");
  await dialog.getByLabel("E-mail").fill("nuria@example.com");
  await dialog.getByLabel("Stage").selectOption({ label: "Won" });
  await dialog.getByLabel("Tags").fill("vip, school");
  await dialog.getByRole("button", { name: "Create contact" }).click();
  await page.getByRole("heading", { level: 1, name: "Nuria Campos" }).waitFor();

  await page.getByRole("link", { name: "All contacts" }).click();
  await shown(page);
  await page.getByRole("button", { name: /^Filter/ }).click();
  const conditions = page.locator(".condition");
  await page.getByRole("button", { name: "Add condition" }).click();
  await conditions.nth(0).getByLabel("Field").selectOption({ label: "Stage" });
  await conditions.nth(0).getByLabel("Value").selectOption({ label: "Won" });
  await page.getByRole("button", { name: "Add condition" }).click();
  await conditions.nth(1).getByLabel("Field").selectOption({ label: "Tags" });
  await conditions.nth(1).getByLabel("Value").fill("school");
  await conditions.nth(1).getByLabel("Value").blur();
  await page.waitForURL(/school/);
  await page.getByRole("link", { name: "Nuria Campos" }).waitFor();
  await check(view, "contacts-filter", folder);
  await page.reload();
  await page.getByRole("link", { name: "Nuria Campos" }).waitFor();
  assert.equal(await rowsOf(page).count(), 1);
  await page.getByRole("button", { name: "Filter 2" }).click();
  assert.equal(await conditions.nth(1).getByLabel("Value").inputValue(), "school");
  await page.getByRole("button", { name: "Save as segment" }).click();
  await dialog.getByLabel("Name").fill("Schools that bought");
  await dialog.getByRole("button", { name: "Save as segment" }).click();
  await page.waitForURL(/segment=/);
  await page.getByRole("link", { name: "Nuria Campos" }).click();
  await page.getByRole("heading", { level: 1, name: "Nuria Campos" }).waitFor();

  await page.getByRole("button", { name: "Edit Company" }).click();
  await page.getByLabel("Company", { exact: true }).fill("Colegio San José");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Fields" }).getByText("Colegio San José").waitFor();
  await page.getByLabel("New tag").fill("september");
  await page.getByRole("button", { name: "Add tag" }).click();
  await page.getByRole("button", { name: "Remove tag september" }).waitFor();
  await page.getByRole("link", { name: "Notes" }).click();
  await page.getByLabel("New note").fill("Wants 20 puzzles by Friday.");
  await page.getByRole("button", { name: "Add note" }).click();
  await page.getByRole("listitem").getByText("Wants 20 puzzles by Friday.").waitFor();
  await page.getByRole("link", { name: "Tasks" }).click();
  await page.getByLabel("New task").fill("Reserve the puzzles");
  await page.getByRole("button", { name: "Add task" }).click();
  await page.getByRole("listitem").getByText("Reserve the puzzles").waitFor();
  await page.getByRole("button", { name: "Record opt-out" }).click();
  await dialog.getByLabel("Proof").fill("Said so in the shop.");
  await dialog.getByRole("button", { name: "Record opt-out" }).click();
  await page.getByText("Wants no broadcasts.").waitFor();
  await page.getByRole("button", { name: "Take over" }).click();
  await page.getByText("A person answers.").waitFor();
  await check(view, "contact", folder);
  await page.goBack();
  await page.waitForURL(/segment=/);
}

/** Two people save one contact: the second sees both values and chooses. Different fields do not stop each other. */
export async function twoSave({ view, origin, call, folder }) {
  const { page } = view;
  const { id } = await call("POST", "/contacts", { data: { $name: "Bruno Vidal", $company: "Casa Verde" } });
  const region = page.getByRole("region", { name: "Fields" });
  await page.goto(`${origin}/app/1/contacts/${id}`);
  await page.getByRole("button", { name: "Edit Company" }).click();
  await call("PATCH", `/contacts/${id}`, { data: { $country: "ES" } });
  await page.getByLabel("Company", { exact: true }).fill("Casa Azul");
  await page.keyboard.press("Enter");
  await region.getByText("Casa Azul").waitFor();

  for (const keeps of ["Keep the other value", "Save my value"]) {
    await page.getByRole("button", { name: "Edit Company" }).click();
    await call("PATCH", `/contacts/${id}`, { data: { $company: `Theirs before ${keeps}` } });
    await page.getByLabel("Company", { exact: true }).fill("Mine");
    await page.keyboard.press("Enter");
    const conflict = region.getByRole("alert");
    await conflict.getByText(`Theirs before ${keeps}`).waitFor();
    await conflict.getByText("Mine", { exact: true }).waitFor();
    await check(view, "contact-conflict", folder);
    await page.getByRole("button", { name: keeps }).click();
    await conflict.waitFor({ state: "detached" });
    const { data } = await call("GET", `/contacts/${id}`);
    assert.equal(data.$company, keeps === "Save my value" ? "Mine" : `Theirs before ${keeps}`);
  }
}

/** 300 rows are imported, of which 120 are rejected: each is listed. */
export async function importRows({ view, origin, folder }) {
  const { page } = view;
  const rows = Array.from({ length: 300 }, (_, at) => `Customer ${at},${at % 5 < 2 ? "not a number" : `+346110${String(10_000 + at)}`},customer${at}@example.net,Madrid`);
  await page.goto(`${origin}/app/1/contacts/import`);
  await settled(page);
  await check(view, "import", folder);
  await page.locator("input[type=file]").setInputFiles({ name: "customers.csv", mimeType: "text/csv", buffer: Buffer.from(["name,phone,correo,city", ...rows].join("\n")) });
  await page.getByText("120 rows would be rejected").waitFor();
  await check(view, "import-mapping", folder);
  assert.equal(await page.getByLabel("Field of the column correo").inputValue(), "$email");
  await page.getByLabel("Field of the column city").selectOption({ label: "Company" });
  await page.locator("[aria-busy=false]").waitFor();
  await page.getByRole("button", { name: "Import 180 contacts" }).click();
  await page.getByText("Imported; some rows were rejected").waitFor();
  const rejected = page.getByRole("table", { name: "Rejected rows" }).locator("tbody tr");
  await rejected.nth(119).waitFor();
  assert.equal(await rejected.count(), 120);
  await check(view, "import-result", folder);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: /Download the rejected rows/ }).click()]);
  assert.match(await text(download), /_error/);
  await page.getByRole("link", { name: "Show contacts" }).click();
  await page.getByLabel("Search contacts").fill("Customer 299");
  await page.getByRole("link", { name: "Customer 299" }).waitFor();
}

/** Two contacts become one after a preview. */
export async function merge({ view, origin, call, folder }) {
  const { page } = view;
  const { id } = await call("POST", "/contacts", { data: { $name: "Olga Prieto", $email: "olga@example.com", $company: "Ludoteca" }, tags: ["vip"] });
  const other = await call("POST", "/contacts", { data: { $name: "Olga Prieto", $phone: "+34611222333", $company: "Ludoteca El Tren" }, tags: ["school"] });
  await page.goto(`${origin}/app/1/contacts/${id}?tab=duplicates`);
  await page.getByRole("button", { name: "Preview merge" }).click();
  const dialog = page.getByRole("dialog");
  const company = dialog.getByRole("row").filter({ hasText: "Ludoteca" });
  await company.getByRole("radio").nth(1).check();
  await dialog.getByText("Tags of both: vip, school.").waitFor();
  await check(view, "merge-preview", folder);
  await dialog.getByRole("button", { name: "Merge contacts" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("region", { name: "Fields" }).getByText("Ludoteca El Tren").waitFor();
  const merged = await call("GET", `/contacts/${other.id}`);
  assert.deepEqual([merged.id, merged.data.$phone, merged.data.$company, merged.tags.toSorted()], [id, "+34611222333", "Ludoteca El Tren", ["school", "vip"]]);
}

/** What the list shows is downloaded; chosen contacts are tagged, deleted and restored. */
export async function exportAndBulk({ view, origin, call, folder }) {
  const { page } = view;
  for (const at of [1, 2, 3]) await call("POST", "/contacts", { data: { $name: `Bulk ${at}`, $company: "Bulk test" } });
  await page.goto(`${origin}/app/1/contacts?filter=${encodeURIComponent('{"field":"$company","op":"eq","value":"Bulk test"}')}&sort=$name`);
  await page.getByRole("link", { name: "Bulk 3" }).waitFor();
  await page.getByRole("button", { name: "Export" }).click();
  await check(view, "export", folder);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download file" }).click()]);
  assert.deepEqual((await text(download)).match(/Bulk \d/g), ["Bulk 1", "Bulk 2", "Bulk 3"]);
  await page.keyboard.press("Escape");

  await page.getByLabel("Select Bulk 1").check();
  await page.getByLabel("Select Bulk 2").check();
  await page.getByRole("button", { name: "Tag", exact: true }).click();
  await page.getByLabel("Tag", { exact: true }).and(page.locator("input")).fill("spring");
  await page.getByRole("button", { name: "Add tag" }).click();
  await page.getByText("2 of 2 done").or(page.getByText("2 selected")).waitFor();
  await rowsOf(page).nth(1).getByText("spring").or(page.locator(".narrow")).first().waitFor();
  await check(view, "contacts-chosen", folder);
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("button", { name: "Move 2 contacts to the trash" }).click();
  await page.getByRole("link", { name: "Bulk 1" }).waitFor({ state: "detached" });
  await page.goto(`${origin}/app/1/contacts?trash=1&q=Bulk`);
  await page.getByRole("link", { name: "Bulk 1" }).click();
  await page.getByRole("button", { name: "Restore contact" }).click();
  await page.getByRole("button", { name: "Delete", exact: true }).waitFor();
}

/** Names that people and networks can send neither run nor break the layout. */
export async function hostile({ view, origin, call, folder }) {
  const { page } = view;
  const texts = ["<script>document.title='run'</script>", "Ana \u202egpj.exe", "x".repeat(200), "{{constructor.constructor('alert(1)')()}}", "<img src=x onerror=\"document.title='run'\">"];
  const ids = [];
  for (const [at, name] of texts.entries()) {
    const made = await call("POST", "/contacts/upsert", { data: { $name: name, $company: name, $email: `hostile${at}@example.com` }, tags: [name.slice(0, 40)] });
    ids.push(made.contact.id);
    await call("POST", `/contacts/${made.contact.id}/notes`, { body: `${name}\n${"y".repeat(10_000)}` });
  }
  await page.goto(`${origin}/app/1/contacts`);
  await shown(page);
  await check(view, "contacts-hostile", folder);
  for (const id of ids) {
    await page.goto(`${origin}/app/1/contacts/${id}?tab=notes`);
    await page.getByRole("button", { name: "Pin" }).first().waitFor();
    await check(view, `contact-hostile-${ids.indexOf(id)}`, folder);
  }
  assert.notEqual(await page.title(), "run");
}

/** A link without a workspace opens the contact in the workspace that has it. */
export async function appUrl({ view, origin, call }) {
  const { id } = await call("POST", "/contacts", { data: { $name: "Linked by the API" } });
  await view.page.goto(`${origin}/app/contacts/${id}`);
  await view.page.waitForURL(`${origin}/app/1/contacts/${id}`);
  await view.page.getByRole("heading", { level: 1, name: "Linked by the API" }).waitFor();
}

async function text(download) {
  const chunks = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
