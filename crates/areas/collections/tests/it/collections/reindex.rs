//! Indexes of a field whose type or order of choices changes. They are rebuilt, and queries scan until then.

use super::{field, items, make, values};
use crate::full;
use serde_json::{Value, json};
use testkit::{Key, Kind, TestApp};

struct Shop {
    app: TestApp,
    key: Key,
    path: String,
    rows: Vec<String>,
}

impl Shop {
    async fn open(kind: testkit::Kind, fields: Value, rows: &[Value]) -> Self {
        let app = TestApp::new(kind).await;
        let key = full(&app).await;
        let path = make(&app, &key, json!({ "name": "C", "fields": fields })).await;
        let rows = items(&app, &key, &path, rows).await;
        Self { app, key, path, rows }
    }

    async fn index(&self, body: Value) {
        self.app.post(&format!("{}/indexes", self.path), &self.key, body).await.expect(201);
    }

    async fn work(&self) {
        while self.app.service.jobs.run_due().await.unwrap() > 0 {}
    }

    async fn address(&self, name: &str) -> String {
        format!("{}/fields/{}", self.path, field(&self.app, &self.key, &self.path, name).await["id"])
    }

    async fn change(&self, name: &str, patch: Value) -> Value {
        self.app.patch(&self.address(name).await, &self.key, patch).await.expect(200)
    }

    /// Returns the results of a query, as indexes into `rows`, and its plan.
    async fn ask(&self, query: &str) -> (Vec<usize>, String) {
        let answer = self.app.get(&format!("{}/items?{query}", self.path), &self.key).await;
        let found = answer.expect(200);
        let place = |item: &Value| {
            let tail = format!("/{}", item["id"]);
            self.rows.iter().position(|path| path.ends_with(&tail)).unwrap()
        };
        let plan = answer.headers["x-svc-query-plan"].split(';').next().unwrap().to_owned();
        (found.as_array().unwrap().iter().map(place).collect(), plan)
    }

    /// Checks that queries return these items by a scan now, and by these plans after all indexes are built.
    async fn expect(&self, queries: &[(&str, &[usize], &str)]) {
        for (query, found, _) in queries {
            let (now, plan) = self.ask(query).await;
            assert_eq!((now.as_slice(), plan.as_str()), (*found, "scan"), "before it is built: {query}");
        }
        self.work().await;
        for (query, found, wanted) in queries {
            let (now, plan) = self.ask(query).await;
            assert_eq!((now.as_slice(), plan.as_str()), (*found, *wanted), "{query}");
        }
    }

    async fn statuses(&self) -> Vec<(String, String)> {
        let listed = self.app.get(&format!("{}/indexes", self.path), &self.key).await.expect(200);
        let text = |index: &Value, name: &str| index[name].as_str().unwrap().to_owned();
        listed.as_array().unwrap().iter().map(|index| (text(index, "kind"), text(index, "status"))).collect()
    }
}

fn by(names: &[&str]) -> Value {
    json!({ "fields": names.iter().map(|name| json!({ "field": name })).collect::<Vec<_>>() })
}

#[testkit::both]
async fn another_type_orders_otherwise(kind: Kind) {
    let fields = json!([{ "label": "Name", "type": "text" }, { "label": "V", "type": "text" }]);
    let shop = Shop::open(
        kind,
        fields,
        &[
            json!({ "name": "b", "v": "10" }),
            json!({ "name": "b", "v": "9" }),
            json!({ "name": "a", "v": "100" }),
            json!({ "name": "b" }),
        ],
    )
    .await;
    shop.index(by(&["v"])).await;
    shop.index(by(&["name", "v"])).await;
    shop.expect(&[
        ("sort=v", &[0, 2, 1, 3], "index(v)"),
        ("filter[v][gte]=100&sort=v", &[2, 1], "index(v)"),
        ("filter[name]=b&sort=v", &[0, 1, 3], "composite(name,v)"),
    ])
    .await;
    shop.change("v", json!({ "type": "number" })).await;
    shop.expect(&[
        ("sort=v", &[1, 0, 2, 3], "index(v)"),
        ("filter[v][gte]=10&sort=v", &[0, 2], "index(v)"),
        ("filter[name]=b&sort=v", &[1, 0, 3], "composite(name,v)"),
    ])
    .await;
    // A list of choices has no order. The index of one field becomes an index of elements; the composite one is
    // dropped.
    shop.change("v", json!({ "type": "text" })).await;
    shop.work().await;
    let choices = json!([{ "label": "9" }, { "label": "10" }, { "label": "100" }]);
    shop.change("v", json!({ "type": "select", "options": { "choices": choices } })).await;
    shop.expect(&[
        ("sort=v", &[1, 0, 2, 3], "index(v)"),
        ("filter[name]=b&sort=-v", &[0, 1, 3], "composite(name,v)"),
    ])
    .await;
    shop.change("v", json!({ "type": "multi_select" })).await;
    let (hundred, _) = (shop.app.get(&shop.rows[2], &shop.key).await.expect(200)["data"]["v"][0].clone(), ());
    let query = format!("filter[v]={}", hundred.as_str().unwrap());
    shop.expect(&[(&query, &[2], "set(v)")]).await;
    assert_eq!(shop.statuses().await, [("set".to_owned(), "ready".to_owned())]);
}

#[testkit::both]
async fn choices_in_another_order_sort_otherwise(kind: Kind) {
    let level = |label: &str| json!({ "label": label });
    let choices = json!({ "choices": [level("Low"), level("Middle"), level("High")] });
    let fields = json!([
        { "label": "Name", "type": "text" }, { "label": "Level", "type": "select", "options": choices },
        { "label": "Tags", "type": "multi_select", "options": choices },
    ]);
    let shop = Shop::open(
        kind,
        fields,
        &[
            json!({ "name": "a", "level": "high", "tags": ["low"] }),
            json!({ "name": "a", "level": "low", "tags": ["high", "low"] }),
            json!({ "name": "a", "level": "middle" }),
            json!({ "name": "b", "level": "middle" }),
        ],
    )
    .await;
    shop.index(by(&["level"])).await;
    shop.index(by(&["tags"])).await;
    shop.index(by(&["name", "level"])).await;
    let unique = json!({ "settings": { "unique_keys": [["name", "level"]] } });
    shop.app.patch(&shop.path, &shop.key, unique).await.expect(200);
    let twice = json!({ "data": { "name": "b", "level": "middle" } });
    let at = format!("{}/items", shop.path);
    let view = json!({ "name": "V", "sort": ["-level", "name"], "materialized_sort": true });
    shop.app.post(&format!("{}/views", shop.path), &shop.key, view).await.expect(201);
    shop.expect(&[
        ("sort=level&filter[name]=a", &[1, 2, 0], "composite(name,level)"),
        ("filter[level][gt]=low&sort=level", &[2, 3, 0], "index(level)"),
        ("sort=-level,name", &[0, 2, 3, 1], "composite(-level,name)"),
    ])
    .await;
    let options = format!("{}/options", shop.address("level").await);
    shop.app.patch(&format!("{options}/3"), &shop.key, json!({ "position": 0 })).await.expect(200);
    shop.app.post(&at, &shop.key, twice.clone()).await.expect_error(409, "duplicate_value");
    shop.expect(&[
        ("sort=level&filter[name]=a", &[0, 1, 2], "composite(name,level)"),
        ("filter[level][gt]=low&sort=level", &[2, 3], "index(level)"),
        ("sort=-level,name", &[2, 3, 1, 0], "composite(-level,name)"),
    ])
    .await;
    // Deletes a choice in the middle: the others keep their order but get other positions.
    shop.app.delete(&format!("{options}/1?force=true"), &shop.key).await.expect(200);
    shop.expect(&[
        ("sort=level&filter[name]=a", &[0, 2, 1], "composite(name,level)"),
        ("sort=level", &[0, 2, 3, 1], "index(level)"),
    ])
    .await;
    // Elements of lists are stored by key, so their index is unaffected.
    let tags = format!("{}/options", shop.address("tags").await);
    shop.app.patch(&format!("{tags}/3"), &shop.key, json!({ "position": 0 })).await.expect(200);
    assert_eq!(shop.ask("filter[tags]=low&sort=id").await, (vec![0, 1], "set(tags)".to_owned()));
    shop.app.post(&at, &shop.key, twice).await.expect_error(409, "duplicate_value");
}

#[testkit::both]
async fn what_is_unique_stays_so(kind: Kind) {
    let fields =
        json!([{ "label": "Name", "type": "text" }, { "label": "V", "type": "text", "unique": true }]);
    let shop =
        Shop::open(kind, fields, &[json!({ "v": "1" }), json!({ "v": "1.0" }), json!({ "v": "2" })]).await;
    // Two texts become the same number. It is too late to reject them, so the index reports the failure.
    let changed = shop.change("v", json!({ "type": "number" })).await;
    assert_eq!((&changed["unique"], &changed["unique_status"]), (&json!(true), &json!("failed")));
    let listed = shop.app.get(&format!("{}/indexes", shop.path), &shop.key).await.expect(200);
    assert!(listed[0]["error"].as_str().unwrap().contains("`v`"), "{listed}");
    shop.app.delete(&shop.rows[1], &shop.key).await.expect(200);
    shop.change("v", json!({ "unique": false })).await;
    assert_eq!(shop.change("v", json!({ "unique": true })).await["unique_status"], "ready");
    let again = json!({ "data": { "v": 2 } });
    shop.app
        .post(&format!("{}/items", shop.path), &shop.key, again)
        .await
        .expect_error(409, "duplicate_value");
    assert_eq!(shop.ask("filter[v]=2").await, (vec![2], "unique(v)".to_owned()));
}

#[testkit::both]
async fn what_is_written_twice_during_a_conversion_is_found(kind: Kind) {
    let fields =
        json!([{ "label": "Name", "type": "text" }, { "label": "V", "type": "text", "unique": true }]);
    let mut shop = Shop::open(kind, fields, &[json!({ "v": "1" })]).await;
    // For many items the job does the work instead of the request.
    shop.app.sql(
        "INSERT INTO items (workspace_id, collection_id, data, title, comment_count, version, created_by, updated_by, created_at, updated_at) \
         WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 5002) \
         SELECT workspace_id, collection_id, '{\"v\":\"' || i || '\"}', '', 0, 1, created_by, updated_by, created_at, updated_at FROM items, n",
    ).await;
    let begun = shop.change("v", json!({ "type": "number" })).await;
    assert_eq!(begun["converting"]["items_total"], 5002);
    // The value 7 still exists as a text in another item.
    shop.rows = items(&shop.app, &shop.key, &shop.path, &[json!({ "v": 7 }), json!({ "v": 90_001 })]).await;
    shop.work().await;
    let field = field(&shop.app, &shop.key, &shop.path, "v").await;
    assert_eq!((&field["converting"], &field["unique_status"]), (&json!(null), &json!("failed")));
    assert_eq!(shop.statuses().await, [("unique".to_owned(), "failed".to_owned())]);
    shop.change("v", json!({ "unique": false })).await;
    let clash = shop.app.patch(&shop.address("v").await, &shop.key, json!({ "unique": true })).await;
    clash.expect_error(409, "duplicate_value");
    let example = &clash.body["error"]["details"]["examples"][0];
    let twin = format!("/{}", example["item_ids"][1]);
    assert!(example["values"] == json!([7]) && shop.rows[0].ends_with(&twin), "{example}");
    shop.app.delete(&shop.rows[0], &shop.key).await.expect(200);
    assert_eq!(shop.change("v", json!({ "unique": true })).await["unique_status"], "ready");
    assert_eq!(values(&shop.app, &shop.key, &shop.rows[1..]).await, [json!({ "v": 90_001 })]);
}
