//! Many items in one request.

use super::Shop;
use crate::{event_types, events, full, number};
use futures::future::join_all;
use serde_json::{Value, json};
use std::collections::HashSet;
use testkit::{Answer, Kind};

impl Shop {
    async fn bulk(&self, what: &str, body: Value) -> Answer {
        self.app.post(&self.at(format_args!("/bulk-{what}")), &self.key, body).await
    }
}

fn statuses(report: &Value) -> Vec<&str> {
    report["results"].as_array().unwrap().iter().map(|result| result["status"].as_str().unwrap()).collect()
}

#[testkit::both]
async fn many_are_created_at_once(kind: Kind) {
    let shop = Shop::open(kind).await;
    let rows: Vec<Value> = (0..1_000).map(|place| {
        json!({ "data": { "name": format!("Ball {place}"), "sku": format!("s{place}"), "price": place }, "external_key": format!("k{place}") })
    }).collect();
    let report = shop.bulk("create", json!({ "rows": rows })).await.expect(200);
    assert_eq!(
        report["summary"],
        json!({ "total": 1000, "created": 1000, "updated": 0, "unchanged": 0, "skipped": 0, "deleted": 0, "failed": 0 })
    );
    let results = report["results"].as_array().unwrap();
    let ids: HashSet<i64> = results.iter().map(|result| result["id"].as_i64().unwrap()).collect();
    assert_eq!(
        (ids.len(), &results[7]["index"], &results[7]["status"]),
        (1000, &json!(7), &json!("created"))
    );
    let seventh = shop.look(&results[7]).await;
    assert_eq!(
        (&seventh["data"]["sku"], &seventh["external_key"], &seventh["data"]["number"]),
        (&json!("s7"), &json!("k7"), &json!(8))
    );
    assert_eq!(event_types(&shop.app).await.len(), 1_000);
    let operation = report["operation_id"].as_str().unwrap();
    assert!(operation.starts_with("op_"));
    let entries = format!("SELECT COUNT(*) AS n FROM item_activity WHERE operation_id = '{operation}'");
    assert_eq!(number(&shop.app, &entries).await, 1_000);
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM item_keys").await, 1_000);
    let rows: Vec<Value> = (0..1_001).map(|_| json!({ "data": { "name": "x" } })).collect();
    let refused = shop.bulk("create", json!({ "rows": rows })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("rows"));
    let long = "x".repeat(100_000);
    let rows: Vec<Value> = (0..51).map(|_| json!({ "data": { "name": long } })).collect();
    let refused = shop.bulk("create", json!({ "rows": rows })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("rows"));
}

#[testkit::both]
async fn an_atomic_request_does_all_or_nothing_and_lists_every_mistake(kind: Kind) {
    let shop = Shop::open(kind).await;
    let taken = shop.put_up(json!({ "name": "Ball", "sku": "s1" })).await;
    let rows = json!([
        { "data": { "name": "A" } },
        { "data": { "name": "B", "price": "x", "colour": 1 } },
        { "data": { "name": "C", "sku": "s1" } },
        { "data": { "name": "D", "sku": "s2" } },
        { "data": { "name": "E", "sku": "s2" } },
        { "data": {} },
    ]);
    let refused = shop.bulk("create", json!({ "rows": rows })).await;
    refused.expect_error(400, "validation_error");
    let errors: Vec<(&str, &str)> = refused.body["error"]["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| (error["param"].as_str().unwrap(), error["code"].as_str().unwrap()))
        .collect();
    assert_eq!(
        errors,
        [
            ("rows[1].data.colour", "unknown_field"),
            ("rows[1].data.price", "invalid_type"),
            ("rows[2].data.sku", "duplicate_value"),
            ("rows[4].data.sku", "duplicate_value"),
            ("rows[5].data.name", "required"),
        ]
    );
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM items").await, 1);
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM item_unique").await, 1);
    assert_eq!(event_types(&shop.app).await.len(), 1);

    let report = shop.bulk("create", json!({ "rows": rows, "mode": "partial" })).await.expect(200);
    assert_eq!(statuses(&report), ["created", "error", "error", "created", "error", "error"]);
    let error = &report["results"][2]["error"];
    assert_eq!((&error["code"], &error["param"]), (&json!("duplicate_value"), &json!("rows[2].data.sku")));
    assert_eq!(error["details"]["existing_id"], taken["id"]);
    assert_eq!(report["results"][1]["error"]["errors"][1]["param"], "rows[1].data.price");
    assert_eq!(report["results"][4]["error"]["details"]["existing_id"], report["results"][3]["id"]);
    assert_eq!((&report["summary"]["created"], &report["summary"]["failed"]), (&json!(2), &json!(4)));
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM items").await, 3);
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM item_activity").await, 3);
    assert_eq!(event_types(&shop.app).await.len(), 3);
}

#[testkit::both]
async fn bad_bulk_requests_are_refused(kind: Kind) {
    let shop = Shop::open(kind).await;
    for (what, body, param) in [
        ("create", json!({}), "rows"),
        ("create", json!({ "rows": [] }), "rows"),
        ("create", json!({ "rows": [{ "data": {} }], "mode": "some" }), "mode"),
        ("create", json!({ "rows": [{ "name": "x" }] }), "rows[0].name"),
        ("create", json!({ "rows": [{ "data": {}, "external_key": " " }] }), "rows[0].external_key"),
        ("update", json!({ "rows": [{ "data": {} }] }), "rows[0].id"),
        ("upsert", json!({ "rows": [{ "data": {} }] }), "match_on"),
        ("upsert", json!({ "rows": [{ "data": {} }], "match_on": [] }), "match_on"),
        ("upsert", json!({ "rows": [{ "data": {} }], "match_on": ["a", "b", "c", "d"] }), "match_on"),
        ("upsert", json!({ "rows": [{ "data": {} }], "match_on": ["skuu"] }), "match_on[0]"),
        ("upsert", json!({ "rows": [{ "data": {} }], "match_on": ["sku", "sku"] }), "match_on[1]"),
        ("upsert", json!({ "rows": [{ "data": {} }], "match_on": ["sku", "tags"] }), "match_on[1]"),
        ("upsert", json!({ "rows": [{ "data": {} }], "match_on": ["number"] }), "match_on[0]"),
        (
            "upsert",
            json!({ "rows": [{ "data": { "sku": "a" } }], "match_on": ["external_key"] }),
            "rows[0].external_key",
        ),
        ("upsert", json!({ "rows": [{ "data": { "name": "A" } }], "match_on": ["sku"] }), "rows[0].data.sku"),
        ("delete", json!({ "ids": [] }), "ids"),
        ("delete", json!({ "ids": ["x"] }), "ids[0]"),
        ("delete", json!({ "ids": [999] }), "ids[0]"),
    ] {
        let refused = shop.bulk(what, body.clone()).await;
        let found = refused.expect_error(400, "validation_error");
        assert!(found.as_deref().is_some_and(|found| found.starts_with(param)), "{what} {body}: {found:?}");
    }
    let stranger = full(&shop.app).await;
    for (what, body) in [
        ("create", json!({ "rows": [{ "data": { "name": "A" } }] })),
        ("update", json!({ "rows": [{ "id": 1 }] })),
        ("upsert", json!({ "rows": [{ "data": { "sku": "A" } }], "match_on": ["sku"] })),
        ("delete", json!({ "ids": [1] })),
    ] {
        shop.app
            .post(&shop.at(format_args!("/bulk-{what}")), &stranger, body)
            .await
            .expect_error(404, "not_found");
    }
}

#[testkit::both]
async fn many_are_changed_and_deleted_at_once(kind: Kind) {
    let shop = Shop::open(kind).await;
    let rows: Vec<Value> =
        (0..5).map(|place| json!({ "data": { "name": format!("n{place}"), "stock": place } })).collect();
    let made = shop.bulk("create", json!({ "rows": rows })).await.expect(200);
    let id = |place: usize| made["results"][place]["id"].clone();
    let rows = json!([
        { "id": id(0), "data": { "stock": 10 }, "version": 1 },
        { "id": id(1), "data": { "stock": 1 } },
        { "id": id(2), "data": { "stock": 5 }, "version": 9 },
        { "id": 999_999, "data": { "stock": 5 } },
        { "id": id(0), "data": { "price": 1 }, "external_key": "first" },
    ]);
    let refused = shop.bulk("update", json!({ "rows": rows })).await;
    refused.expect_error(400, "validation_error");
    let errors: Vec<(&str, &str)> = refused.body["error"]["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| (error["param"].as_str().unwrap(), error["code"].as_str().unwrap()))
        .collect();
    assert_eq!(errors, [("rows[2].version", "version_conflict"), ("rows[3].id", "not_found")]);
    let report = shop.bulk("update", json!({ "rows": rows, "mode": "partial" })).await.expect(200);
    assert_eq!(statuses(&report), ["updated", "unchanged", "error", "error", "updated"]);
    assert_eq!(
        (&report["results"][4]["repeats"], &report["results"][0]["repeats"]),
        (&json!(0), &Value::Null)
    );
    let first = shop.look(&json!({ "id": id(0) })).await;
    assert_eq!(
        (&first["data"]["stock"], &first["data"]["price"], &first["version"]),
        (&json!(10), &json!(1), &json!(3))
    );
    assert_eq!(first["external_key"], "first");

    let report =
        shop.bulk("delete", json!({ "ids": [id(0), id(1), id(0)], "mode": "partial" })).await.expect(200);
    assert_eq!(statuses(&report), ["deleted", "deleted", "error"]);
    assert_eq!(report["results"][2]["error"]["param"], "ids[2]");
    shop.app.get(&shop.at(format_args!("/{}", id(0))), &shop.key).await.expect_error(404, "not_found");
    let report = shop.bulk("delete", json!({ "ids": [id(0), id(2)], "permanent": true })).await.expect(200);
    assert_eq!(report["summary"]["deleted"], 2);
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM items").await, 3);
    let operations = number(&shop.app, "SELECT COUNT(DISTINCT operation_id) AS n FROM item_activity").await;
    assert_eq!(operations, 4);
}

#[testkit::both]
async fn rows_find_their_items(kind: Kind) {
    let shop = Shop::open(kind).await;
    let upsert = |match_on: Value, rows: Value| {
        shop.bulk("upsert", json!({ "rows": rows, "match_on": match_on, "mode": "partial" }))
    };
    // Matching by a unique field.
    let rows = json!([
        { "data": { "name": "A", "sku": "s1", "price": 1 } },
        { "data": { "name": "B", "sku": "s2" } },
        { "data": { "name": "A2", "sku": "s1" } },
        { "data": { "name": "A2", "sku": "s1", "price": 1 } },
    ]);
    let report = upsert(json!(["sku"]), rows).await.expect(200);
    assert_eq!(statuses(&report), ["created", "created", "updated", "unchanged"]);
    assert_eq!((&report["results"][2]["repeats"], &report["results"][3]["repeats"]), (&json!(0), &json!(0)));
    let first = shop.look(&report["results"][0]).await;
    assert_eq!(
        (&first["data"]["name"], &first["data"]["price"], &first["version"]),
        (&json!("A2"), &json!(1), &json!(2))
    );
    assert_eq!(event_types(&shop.app).await, ["item.created", "item.created", "item.updated"]);
    // Matching by external key.
    let rows = json!([
        { "data": { "name": "C" }, "external_key": "k1" },
        { "data": { "stock": 4 }, "external_key": "k1" },
        { "data": { "stock": 4 }, "external_key": "k2" },
    ]);
    let report = upsert(json!(["external_key"]), rows).await.expect(200);
    assert_eq!(statuses(&report), ["created", "updated", "error"]);
    assert_eq!(report["results"][2]["error"]["errors"][0]["param"], "rows[2].data.name");
    // Matching by an index.
    let rows = json!([{ "data": { "name": "D", "price": 7.5 } }, { "data": { "price": 7.5, "stock": 1 } }]);
    let report = upsert(json!(["price"]), rows).await.expect(200);
    assert_eq!(statuses(&report), ["created", "updated"]);
    // Matching by a scan, with several fields.
    let rows = json!([
        { "data": { "name": "D", "stock": 1, "active": false } },
        { "data": { "name": "E", "stock": 1 } },
        { "data": { "name": "E", "stock": 1, "active": false } },
    ]);
    let report = upsert(json!(["name", "stock"]), rows).await.expect(200);
    assert_eq!(statuses(&report), ["updated", "created", "updated"]);
    // Several items match.
    shop.put_up(json!({ "name": "E", "stock": 1 })).await;
    let report =
        upsert(json!(["name", "stock"]), json!([{ "data": { "name": "E", "stock": 1, "price": 2 } }]))
            .await
            .expect(200);
    assert_eq!(report["results"][0]["error"]["code"], "ambiguous_match");
    assert_eq!(report["results"][0]["error"]["details"]["existing_ids"].as_array().unwrap().len(), 2);
}

#[testkit::both]
async fn matches_are_skipped_or_refused_as_requested(kind: Kind) {
    let shop = Shop::open(kind).await;
    let item = shop.put_up(json!({ "name": "A", "sku": "s1" })).await;
    let rows = json!([{ "data": { "name": "X", "sku": "s1" } }, { "data": { "name": "B", "sku": "s2" } }]);
    let body = |on_match: &str, mode: &str| json!({ "rows": rows, "match_on": ["sku"], "on_match": on_match, "mode": mode });
    let report = shop.bulk("upsert", body("skip", "atomic")).await.expect(200);
    assert_eq!(statuses(&report), ["skipped", "created"]);
    assert_eq!(report["results"][0]["id"], item["id"]);
    assert_eq!(shop.look(&item).await, item);
    let report = shop.bulk("upsert", body("error", "partial")).await.expect(200);
    assert_eq!(statuses(&report), ["error", "error"]);
    assert_eq!(report["results"][0]["error"]["details"]["existing_id"], item["id"]);
    shop.bulk("upsert", body("error", "atomic")).await.expect_error(400, "validation_error");
    // Items in the trash do not match.
    shop.app.delete(&shop.of(&item, ""), &shop.key).await.expect(200);
    let report = shop.bulk("upsert", body("update", "atomic")).await.expect(200);
    assert_eq!(statuses(&report), ["created", "unchanged"]);
}

#[testkit::both]
async fn upserts_of_one_key_make_one_item(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key, path) = (&shop.app, &shop.key, &shop.at(""));
    let upsert_path = &shop.at("/bulk-upsert");
    let answers = join_all((0..24).map(|place| async move {
        // Some requests create the same item by the plain operation meanwhile.
        if place % 8 == 7 {
            let body = json!({ "data": { "name": "A", "sku": "one" }, "external_key": "one" });
            return app.post(path, key, body).await;
        }
        let rows = json!([
            { "data": { "name": "A", "sku": "one", "stock": place } },
            { "data": { "name": "B", "sku": "two", "stock": place } },
        ]);
        let rows: Vec<Value> =
            rows.as_array().unwrap().iter().cycle().skip(place % 2).take(2).cloned().collect();
        app.post(upsert_path, key, json!({ "rows": rows, "match_on": ["sku"] })).await
    }))
    .await;
    for (place, answer) in answers.iter().enumerate() {
        if place % 8 == 7 && answer.status == 409 {
            answer.expect_error(409, "duplicate_value");
        } else {
            assert!(answer.status < 300, "{}", answer.text);
        }
    }
    assert_eq!(number(app, "SELECT COUNT(*) AS n FROM items").await, 2);
    assert_eq!(number(app, "SELECT COUNT(*) AS n FROM item_unique").await, 2);
    let versions = number(app, "SELECT CAST(SUM(version) AS BIGINT) AS n FROM items").await;
    assert_eq!(usize::try_from(versions).unwrap(), event_types(app).await.len(), "each change was told once");
}

#[testkit::both]
async fn a_repeated_request_is_answered_and_not_done_again(kind: Kind) {
    let shop = Shop::open(kind).await;
    let body = json!({ "rows": [{ "data": { "name": "A" } }, { "data": {} }], "mode": "partial" });
    let path = shop.at("/bulk-create");
    let ask =
        || shop.app.ask("POST", &path).key(&shop.key).header("idempotency-key", "once").json(&body).send();
    let first = ask().await.expect(200);
    let second = ask().await;
    assert_eq!(second.headers.get("idempotent-replayed").map(String::as_str), Some("true"));
    assert_eq!(second.expect(200), first);
    assert_eq!(events(&shop.app).await.len(), 1);
}
