// Ten operations through the client of @hey-api/openapi-ts.

import assert from "node:assert/strict";
import { client } from "../generated/hey-api/client.gen.js";
import * as api from "../generated/hey-api/index.js";
import { eventually, key, products, streamRun, success, url } from "./common.js";

client.setConfig({ baseUrl: url, auth: key });

// 1. The key
const me = success(await api.getMe());
assert.equal(me.data.livemode, true);

// 2. A run
const newRun: api.NewRun = { input: "What is the capital of France?" };
const run = success(await api.createRun({ body: newRun }));
assert.equal(run.data.status, "completed");
assert(run.data.output);

// 3. The same, streamed
const events = await streamRun({ ...newRun, stream: true });
assert.equal(events.at(0)?.event, "run.created");
assert.equal(events.at(-1)?.event, "run.completed");

// 4. All pages of a list with a filter
const tree = { and: [{ field: "category", op: "eq", value: "toys" }, { field: "price", op: "gt", value: 30 }] };
const toys: api.Item[] = [];
let pages = 0;
let cursor: string | null = null;
do {
  const query: api.ListItemsData["query"] = {
    filter_tree: JSON.stringify(tree),
    sort: "-price",
    limit: 5,
    ...(cursor === null ? {} : { starting_after: cursor }),
  };
  const page: api.ListItemsResponse = success(await api.listItems({ path: { collectionId: products }, query }));
  toys.push(...page.data);
  assert.equal(page.has_more, page.next_cursor !== null);
  cursor = page.next_cursor;
  pages += 1;
} while (cursor !== null);
assert(pages > 1);
assert.equal(new Set(toys.map((item) => item.id)).size, toys.length);
assert(toys.every((item) => item.data["category"] === "toys" && Number(item.data["price"]) > 30));

// 5. Bulk create
const rows = [1, 2, 3].map((number) => ({ data: { name: `Kite ${number}`, sku: `TOY-820${number}`, price: 9.5 } }));
const created = success(await api.bulkCreateItems({ path: { collectionId: products }, body: { rows } }));
assert.equal(created.data.summary.created, 3);

// 6. Upsert, twice with one idempotency key: the second response is a replay
const upsert = async () =>
  success(
    await api.bulkUpsertItems({
      path: { collectionId: products },
      headers: { "Idempotency-Key": "hey-api-1" },
      body: { match_on: ["sku"], rows: [{ data: { sku: "TOY-8201", price: 8.5 } }] },
    }),
  );
const first = await upsert();
assert.equal(first.data.summary.updated, 1);
assert.deepEqual(await upsert(), first);

// 7. An error that names its parameter
const refused = await api.createItem({
  path: { collectionId: products },
  body: { data: { name: "Kite", price: "cheap" } },
});
assert.equal(refused.response?.status, 400);
assert.equal(refused.error?.error.code, "validation_error");
assert.equal(refused.error?.error.param, "data.price");

// 8. A webhook endpoint
const endpoint = success(
  await api.createWebhookEndpoint({
    body: { url: "https://hey-api.invalid/", enabled_events: ["item.*"] },
  }),
);
assert.match(endpoint.data.secret ?? "", /^whsec_/);

// 9. An import
const started = success(
  await api.importItems({
    path: { collectionId: products },
    body: { content: "sku,name,price\nTOY-8204,Chess,12.50\n", match_on: ["sku"] },
  }),
);
const imported = await eventually(async () => {
  const path = { collectionId: products, importId: started.data.id };
  const { data } = success(await api.getImport({ path }));
  return data.finished_at ? data : undefined;
});
assert.equal(imported.status, "completed");

// 10. A page of events
const log = success(await api.listEvents({ query: { type: "run.completed", limit: 1 } }));
assert.equal(log.data.length, 1);
assert.equal(log.data[0]?.type, "run.completed");
assert(log.pagination.total >= 2);
