//! Indexes: creation, concurrent building, use and deletion.

use super::{create, ids, list};
use crate::{event_types, full, number, seed};
use ::model::CollectionId;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{Key, Kind, TestApp, until};

async fn products(app: &TestApp, key: &Key) -> CollectionId {
    let fields = json!([
        { "key": "name", "type": "text" },
        { "key": "price", "type": "number" },
        { "key": "tags", "type": "multi_select", "options": seed::choices(&["new", "sale"]) },
        { "key": "notes", "type": "json" },
    ]);
    seed::collection(app, key, fields).await
}

pub async fn run_jobs(app: &TestApp) {
    while app.service.jobs.run_due().await.unwrap() > 0 {}
}

/// A text that is longer than the prefix in its key.
const LONG: &str = "a sku whose beginning many share, as links do";

/// A collection with a unique field.
struct Stock<'a> {
    app: &'a TestApp,
    key: &'a Key,
    collection: CollectionId,
    path: String,
}

impl<'a> Stock<'a> {
    async fn open(app: &'a TestApp, key: &'a Key) -> Self {
        let collection =
            seed::collection(app, key, json!([{ "key": "sku", "type": "text", "unique": true }])).await;
        Self { app, key, collection, path: format!("/collections/{collection}/items") }
    }

    /// Creates items by every operation, changes one, and finds them.
    async fn fill(&self) {
        let Self { app, key, path, .. } = self;
        let other = format!("{LONG}, and another");
        let skus = ["1001", "1002", LONG, &other];
        let mut made = Vec::new();
        for sku in skus {
            made.push(create(app, key, self.collection, json!({ "sku": sku })).await["id"].as_i64().unwrap());
        }
        let bulk = json!({ "rows": [{ "data": { "sku": "1003" } }, { "data": { "sku": "1004" } }] });
        app.post(&format!("{path}/bulk-create"), key, bulk).await.expect(200);
        for sku in skus.into_iter().chain(["1003"]) {
            app.post(path, key, json!({ "data": { "sku": sku } })).await.expect_error(409, "duplicate_value");
        }
        for (sku, id) in skus.iter().zip(&made) {
            let query = format!("filter[sku]={}", sku.replace(' ', "%20"));
            let answer = list(app, key, self.collection, &query).await;
            assert_eq!(ids(&answer), [*id]);
            assert_eq!(answer.headers["x-svc-query-plan"], "unique(sku); visited=1");
        }
        app.patch(&format!("{path}/{}", made[0]), key, json!({ "data": { "sku": "2001" } }))
            .await
            .expect(200);
        create(app, key, self.collection, json!({ "sku": "1001" })).await;
    }

    /// Counts the entries of the unique index with a key of this many bytes.
    async fn entries(&self, bytes: usize) -> i64 {
        number(self.app, &format!("SELECT COUNT(*) AS n FROM item_unique WHERE LENGTH(h) = {bytes}")).await
    }
}

#[testkit::both]
async fn an_index_is_built_used_and_dropped(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let collection = products(&app, &key).await;
    let path = format!("/collections/{collection}/indexes");
    let mut made = Vec::new();
    for price in 0..7 {
        let data = json!({ "name": "x", "price": price, "tags": ["new"] });
        made.push(create(&app, &key, collection, data).await["id"].as_i64().unwrap());
    }
    let new = json!({ "fields": [{ "field": "price", "direction": "desc" }] });
    let index = app.post(&path, &key, new.clone()).await.expect(201);
    assert_eq!(index["kind"], "single");
    assert_eq!(index["fields"], json!([{ "field": "price", "direction": "asc" }]));
    assert_eq!(
        (&index["status"], &index["progress"]),
        (&json!("building"), &json!({ "done": 0, "total": 7 }))
    );
    let again = app.post(&path, &key, new).await;
    again.expect_error(409, "duplicate_value");
    assert_eq!(again.body["error"]["details"]["existing_id"], index["id"]);
    // Queries do not use the index yet, but writes already maintain it.
    let item = |place: usize| format!("/collections/{collection}/items/{}", made[place]);
    app.patch(&item(6), &key, json!({ "data": { "price": 100 } })).await.expect(200);
    app.delete(&item(5), &key).await.expect(200);
    let answer = list(&app, &key, collection, "filter[price]=100").await;
    assert!(answer.headers["x-svc-query-plan"].starts_with("scan"));
    run_jobs(&app).await;
    let answer = list(&app, &key, collection, "filter[price][gt]=2&sort=-price").await;
    assert_eq!(ids(&answer), [made[6], made[4], made[3]]);
    assert_eq!(answer.headers["x-svc-query-plan"], "index(price); visited=3");
    assert_eq!(number(&app, "SELECT count(*) AS n FROM item_keys").await, 6);
    assert!(event_types(&app).await.contains(&"index.ready".to_owned()));
    let listed = app.get(&path, &key).await.expect(200);
    assert_eq!((&listed[0]["status"], &listed[0]["progress"]["done"]), (&json!("ready"), &json!(6)));
    let id = index["id"].to_string();
    app.delete(&format!("{path}/{id}"), &key).await.expect(200);
    app.delete(&format!("{path}/{id}"), &key).await.expect_error(404, "not_found");
    let answer = list(&app, &key, collection, "filter[price]=100").await;
    assert!(answer.headers["x-svc-query-plan"].starts_with("scan"));
    run_jobs(&app).await;
    assert_eq!(number(&app, "SELECT count(*) AS n FROM item_keys").await, 0);
    assert_eq!(number(&app, "SELECT count(*) AS n FROM collection_indexes").await, 0);
}

#[testkit::both]
async fn unique_indexes_know_values_by_what_they_begin_with(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let stock = Stock::open(&app, &key).await;
    stock.fill().await;
    // The keys are a number of four digits or 24 bytes of a longer text, each with 16 bytes of a hash.
    assert_eq!((stock.entries(20).await, stock.entries(40).await), (5, 2));
}

#[testkit::both]
async fn unique_indexes_of_older_versions_are_built_anew(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let stock = Stock::open(&app, &key).await;
    // The state that v0.18.0 left.
    app.sql("UPDATE collection_indexes SET key_format = 'hashed'").await;
    app.sql("UPDATE collections SET shape_version = shape_version + 1").await;
    stock.fill().await;
    assert_eq!(stock.entries(32).await, 7);

    let migration = match kind {
        Kind::Sqlite => include_str!("../../../../../../migrations/sqlite/0037_key_format/up.sql"),
        Kind::Postgres => include_str!("../../../../../../migrations/postgres/0037_key_format/up.sql"),
    };
    let (_, building) = migration.split_once(";\n").unwrap();
    for statement in building.split(";\n").filter(|statement| !statement.trim().is_empty()) {
        app.sql(statement).await;
    }
    // Both indexes are maintained until the new one replaces the old.
    stock
        .app
        .post(&stock.path, &key, json!({ "data": { "sku": "1001" } }))
        .await
        .expect_error(409, "duplicate_value");
    create(&app, &key, stock.collection, json!({ "sku": "1005" })).await;
    assert_eq!((stock.entries(20).await, stock.entries(32).await), (1, 8));
    let field = json!({ "field_key": "ean", "label": "EAN", "type": "text", "unique": true });
    app.post(&format!("/collections/{}/fields", stock.collection), &key, field).await.expect(201);
    run_jobs(&app).await;
    assert_eq!((stock.entries(20).await, stock.entries(40).await, stock.entries(32).await), (6, 2, 0));
    let listed = app.get(&format!("/collections/{}/indexes", stock.collection), &key).await.expect(200);
    let statuses: Vec<&Value> = listed.as_array().unwrap().iter().map(|index| &index["status"]).collect();
    assert_eq!(statuses, ["ready", "ready"]);
    assert!(!event_types(&app).await.contains(&"index.ready".to_owned()), "nothing changed for callers");
    for sku in ["1001", "1005", LONG] {
        let again = app.post(&stock.path, &key, json!({ "data": { "sku": sku } })).await;
        again.expect_error(409, "duplicate_value");
        let found =
            list(&app, &key, stock.collection, &format!("filter[sku]={}", sku.replace(' ', "%20"))).await;
        assert_eq!(found.headers["x-svc-query-plan"], "unique(sku); visited=1");
        assert_eq!(ids(&found).len(), 1);
    }
}

#[testkit::both]
async fn kinds_follow_from_the_fields(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let collection = products(&app, &key).await;
    let path = format!("/collections/{collection}/indexes");
    create(&app, &key, collection, json!({ "name": "a", "price": 1, "tags": ["new", "sale"] })).await;
    create(&app, &key, collection, json!({ "name": "b", "price": 1, "tags": ["sale"] })).await;
    let fields = |names: &[&str]| -> Value { names.iter().map(|name| json!({ "field": name })).collect() };
    for (body, made) in [
        (json!({ "fields": fields(&["tags"]) }), "set"),
        (json!({ "fields": fields(&["price", "updated_at"]) }), "composite"),
        (json!({ "fields": fields(&["name"]), "unique": true }), "unique"),
        (json!({ "fields": fields(&["updated_at"]) }), "single"),
    ] {
        assert_eq!(app.post(&path, &key, body).await.expect(201)["kind"], made);
    }
    let clashing =
        app.post(&path, &key, json!({ "fields": fields(&["price"]), "unique": true })).await.expect(201);
    run_jobs(&app).await;
    let listed = app.get(&path, &key).await.expect(200);
    let failed = listed.as_array().unwrap().iter().find(|index| index["id"] == clashing["id"]).unwrap();
    assert_eq!(failed["status"], "failed");
    assert!(failed["error"].as_str().unwrap().contains(" and "), "{failed}");
    assert_eq!(number(&app, "SELECT count(*) AS n FROM item_unique").await, 2);
    let item = json!({ "data": { "name": "a" } });
    app.post(&format!("/collections/{collection}/items"), &key, item)
        .await
        .expect_error(409, "duplicate_value");
    for (query, plan) in [
        ("filter[tags]=new", "set(tags); visited=1"),
        ("filter[name]=b", "unique(name); visited=1"),
        ("filter[price]=1&sort=updated_at", "composite(price,updated_at); visited=2"),
        ("filter[price]=1&sort=-updated_at", "composite(price,updated_at); visited=2"),
        ("sort=-updated_at", "index(updated_at); visited=2"),
    ] {
        let answer = list(&app, &key, collection, query).await;
        answer.expect(200);
        assert_eq!(answer.headers["x-svc-query-plan"], plan, "{query}");
    }
    for (body, param) in [
        (json!({ "fields": [] }), "fields"),
        (json!({ "fields": fields(&["nope"]) }), "fields[0].field"),
        (json!({ "fields": fields(&["notes"]) }), "fields[0].field"),
        (json!({ "fields": fields(&["id"]) }), "fields[0].field"),
        (json!({ "fields": fields(&["price", "price"]) }), "fields[1].field"),
        (json!({ "fields": fields(&["price", "tags"]) }), "fields[1].field"),
        (json!({ "fields": fields(&["tags"]), "unique": true }), "fields[0].field"),
        (json!({ "fields": fields(&["created_at"]), "unique": true }), "fields[0].field"),
    ] {
        let answer = app.post(&path, &key, body.clone()).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
}

#[testkit::both]
async fn many_indexes_at_once_wait_for_nobody_in_a_circle(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, other) = (full(&app).await, full(&app).await);
    let theirs = products(&app, &other).await;
    let numbered = |place: i32| format!("f{place}");
    let fields: Value = (0..8).map(|place| json!({ "key": numbered(place), "type": "number" })).collect();
    let mut collections = Vec::new();
    for _ in 0..3 {
        let collection = seed::collection(&app, &key, fields.clone()).await;
        for value in 0..3 {
            create(&app, &key, collection, json!({ "f0": value, "f7": value })).await;
        }
        collections.push(collection);
    }
    let running = app.service.jobs.start();
    let ask_for_all = async |collection: CollectionId| {
        for place in 0..8 {
            let new = json!({ "fields": [{ "field": numbered(place) }] });
            app.post(&format!("/collections/{collection}/indexes"), &key, new).await.expect(201);
        }
    };
    let writing = async {
        for price in 0..20 {
            create(&app, &other, theirs, json!({ "price": price })).await;
            for collection in &collections {
                create(&app, &key, *collection, json!({ "f1": price })).await;
            }
        }
    };
    let asking = futures::future::join_all(collections.iter().map(|collection| ask_for_all(*collection)));
    futures::join!(asking, writing);
    for collection in &collections {
        let path = format!("/collections/{collection}/indexes");
        until("all indexes are ready", async || {
            let listed = app.get(&path, &key).await.expect(200);
            let ready = listed.as_array().unwrap().iter().filter(|index| index["status"] == "ready");
            (ready.count() == 8).then_some(())
        })
        .await;
    }
    assert_eq!(app.db().stats().retries, 0);
    assert_eq!(number(&app, "SELECT count(*) AS n FROM item_keys").await, 3 * 8 * 23);
    assert_eq!(running.stop(Duration::from_secs(10)).await, []);
}

#[testkit::both]
async fn hot_queries_get_an_index_by_themselves(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let collection = products(&app, &key).await;
    create(&app, &key, collection, json!({ "name": "x", "price": 1 })).await;
    app.sql(
        "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 20002) \
         INSERT INTO items (workspace_id, collection_id, data, title, comment_count, version, created_by, \
         updated_by, created_at, updated_at) SELECT workspace_id, collection_id, \
         '{\"name\":\"x\",\"price\":' || i || '}', title, 0, 1, created_by, updated_by, created_at, updated_at \
         FROM n, (SELECT * FROM items LIMIT 1) AS one",
    )
    .await;
    for _ in 0..20 {
        let answer = list(&app, &key, collection, "filter[price]=20000").await;
        assert_eq!(ids(&answer).len(), 1);
    }
    let asked = until("an index is wished for", async || {
        let waiting = number(&app, "SELECT count(*) AS n FROM jobs WHERE kind = 'data.index.wish'").await;
        (waiting > 1).then_some(())
    });
    asked.await;
    run_jobs(&app).await;
    let indexes = app.get(&format!("/collections/{collection}/indexes"), &key).await.expect(200);
    for (index, made) in ["columnar", "single"].into_iter().enumerate() {
        let index = &indexes[index];
        assert_eq!(
            (&index["kind"], &index["origin"], &index["status"]),
            (&json!(made), &json!("auto"), &json!("ready"))
        );
    }
    let answer = list(&app, &key, collection, "filter[name][neq]=x&filter[price][gt]=10").await;
    assert_eq!(
        (ids(&answer).len(), &answer.headers["x-svc-query-plan"]),
        (0, &"columnar; visited=20002".to_owned())
    );
    let answer = list(&app, &key, collection, "filter[tags]=new&sort=-updated_at").await;
    assert_eq!(
        (ids(&answer).len(), &answer.headers["x-svc-query-plan"]),
        (0, &"columnar; visited=20002".to_owned())
    );
    let answer = list(&app, &key, collection, "filter[price]=20000").await;
    assert_eq!(answer.headers["x-svc-query-plan"], "index(price); visited=1");
    let used = until("its use is noted", async || {
        let indexes = app.get(&format!("/collections/{collection}/indexes"), &key).await.expect(200);
        let used = indexes.as_array().unwrap().iter().all(|index| !index["last_used_at"].is_null());
        used.then_some(())
    });
    used.await;
    app.data.clock.advance(chrono::Duration::days(61));
    run_jobs(&app).await;
    assert_eq!(app.get(&format!("/collections/{collection}/indexes"), &key).await.expect(200), json!([]));
}
