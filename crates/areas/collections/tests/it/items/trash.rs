//! The trash, permanent deletion, and the retention of activity logs.

use super::Shop;
use crate::{event_types, full, number, seed};
use chrono::Duration;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn the_trash_is_emptied(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let kept = shop.put_up(json!({ "name": "Ball" })).await;
    let gone = shop.put_up(json!({ "name": "Cube" })).await;
    app.post(&shop.of(&gone, "/comments"), key, json!({ "body": "Bye." })).await.expect(201);
    app.delete(&shop.of(&gone, ""), key).await.expect(200);
    app.delete(&shop.at("/trash"), &full(app).await).await.expect_error(404, "not_found");
    let emptied = app.delete(&shop.at("/trash"), key).await.expect(200);
    assert_eq!(
        emptied,
        json!({ "object": "item_trash", "collection_id": shop.collection, "count": 1, "done": true })
    );
    assert_eq!(number(app, "SELECT COUNT(*) AS n FROM items").await, 1);
    assert_eq!(number(app, "SELECT COUNT(*) AS n FROM item_comments").await, 0);
    assert_eq!(shop.look(&kept).await, kept);
    assert_eq!(event_types(app).await.last().map(String::as_str), Some("item.deleted"));
    let emptied = app.delete(&shop.at("/trash"), key).await.expect(200);
    assert_eq!((&emptied["count"], &emptied["done"]), (&json!(0), &json!(true)));
}

#[testkit::both]
async fn a_large_trash_is_emptied_in_the_background(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let rows: Vec<Value> = (0..600).map(|_| json!({ "data": { "name": "x" } })).collect();
    for _ in 0..2 {
        let made = app.post(&shop.at("/bulk-create"), key, json!({ "rows": rows })).await.expect(200);
        let ids: Vec<&Value> = made["results"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
        app.post(&shop.at("/bulk-delete"), key, json!({ "ids": ids })).await.expect(200);
    }
    let emptied = app.delete(&shop.at("/trash"), key).await.expect(200);
    assert_eq!((&emptied["count"], &emptied["done"]), (&json!(1200), &json!(false)));
    // Items that are trashed after the request stay.
    app.data.clock.advance(Duration::seconds(1));
    let late = shop.put_up(json!({ "name": "late" })).await;
    app.delete(&shop.of(&late, ""), key).await.expect(200);
    app.service.jobs.run_due().await.unwrap();
    assert_eq!(number(app, "SELECT COUNT(*) AS n FROM items").await, 1);
    app.post(&shop.of(&late, "/restore"), key, json!({})).await.expect(200);
}

#[testkit::both]
async fn items_leave_the_trash_after_thirty_days(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let first = shop.put_up(json!({ "name": "first" })).await;
    let second = shop.put_up(json!({ "name": "second" })).await;
    app.delete(&shop.of(&first, ""), key).await.expect(200);
    app.data.clock.advance(Duration::days(1));
    app.delete(&shop.of(&second, ""), key).await.expect(200);
    app.data.clock.advance(Duration::days(29));
    app.service.jobs.run_due().await.unwrap();
    app.get(&shop.of(&first, "?trashed=true"), key).await.expect_error(404, "not_found");
    app.get(&shop.of(&second, "?trashed=true"), key).await.expect(200);
    app.data.clock.advance(Duration::days(1));
    app.service.jobs.run_due().await.unwrap();
    assert_eq!(number(app, "SELECT COUNT(*) AS n FROM items").await, 0);
}

#[testkit::both]
async fn activity_is_forgotten_when_its_time_is_over(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let item = shop.put_up(json!({ "name": "Ball" })).await;
    app.sql(format!("UPDATE collections SET settings = '{{\"activity_retention_days\": 7}}', shape_version = 2 WHERE id = {}", shop.collection)).await;
    app.data.clock.advance(Duration::days(3));
    app.patch(&shop.of(&item, ""), key, json!({ "data": { "price": 2 } })).await.expect(200);
    app.data.clock.advance(Duration::days(4));
    app.service.jobs.run_due().await.unwrap();
    let left = app.get(&shop.of(&item, "/activity"), key).await.expect(200);
    assert_eq!(
        left.as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect::<Vec<_>>(),
        ["updated"]
    );
}

#[testkit::both]
async fn a_copy_has_what_the_item_has(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let body = json!({ "data": { "name": "Ball", "sku": "s1", "price": 3, "active": null, "tags": ["new"] }, "external_key": "k" });
    let item = app.post(&shop.at(""), key, body).await.expect(201);
    let path = shop.of(&item, "/duplicate");
    let taken = app.post(&path, key, json!({})).await;
    assert_eq!(taken.expect_error(409, "duplicate_value").as_deref(), Some("data.sku"));
    let copy = app.post(&path, key, json!({ "data": { "sku": null, "price": 4 } })).await.expect(201);
    assert_eq!(
        copy["data"],
        json!({ "name": "Ball", "price": 4, "tags": ["new"], "number": 2, "changed": "2026-01-15T12:00:00.000Z" })
    );
    assert_eq!((&copy["external_key"], &copy["version"]), (&Value::Null, &json!(1)));
    let copy =
        app.post(&path, key, json!({ "data": { "sku": "s2" }, "external_key": "k2" })).await.expect(201);
    assert_eq!(copy["external_key"], "k2");
    let wrong = app.post(&path, key, json!({ "data": { "prize": 4 } })).await;
    assert_eq!(wrong.expect_error(400, "validation_error").as_deref(), Some("data.prize"));
    app.post(&path, &full(app).await, json!({})).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn an_item_moves_to_another_collection(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let to = seed::collection(
        app,
        key,
        json!([
            { "key": "title", "type": "text", "required": true },
            { "key": "price", "type": "text", "indexed": true },
            { "key": "stock", "type": "integer", "options": { "max": 5 } },
            { "key": "category", "type": "select", "options": seed::choices(&["games", "books"]) },
            { "key": "kind", "type": "text", "default": "moved" },
        ]),
    )
    .await;
    let body = json!({ "data": { "name": "Ball", "price": 3, "stock": 7, "category": "books", "tags": ["new"] }, "external_key": "k" });
    let item = app.post(&shop.at(""), key, body).await.expect(201);
    app.post(&shop.of(&item, "/comments"), key, json!({ "body": "Hello." })).await.expect(201);
    let path = shop.of(&item, "/move");
    for (body, param) in [
        (json!({}), "collection_id"),
        (json!({ "collection_id": shop.collection }), "collection_id"),
        (json!({ "collection_id": to, "mapping": { "nmae": "title" } }), "mapping.nmae"),
        (json!({ "collection_id": to, "mapping": { "name": "titel" } }), "mapping.name"),
        (json!({ "collection_id": to }), "data.title"),
    ] {
        let refused = app.post(&path, key, body.clone()).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
    let nowhere = app.post(&path, key, json!({ "collection_id": 999 })).await;
    assert_eq!(nowhere.expect_error(404, "not_found").as_deref(), Some("collection_id"));
    let mapping = json!({ "name": "title", "tags": null });
    let report = app
        .post(&path, key, json!({ "collection_id": to, "mapping": mapping, "dry_run": true }))
        .await
        .expect(200);
    assert_eq!(report["kept"], json!({ "name": "title", "price": "price", "category": "category" }));
    let lost: Vec<(&str, &str)> = report["lost"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lost| (lost["field"].as_str().unwrap(), lost["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(lost, [("stock", "out_of_range"), ("active", "no_field"), ("tags", "left_out")]);
    assert_eq!((&report["item"], &report["dry_run"]), (&Value::Null, &json!(true)));
    let refused = app.post(&path, key, json!({ "collection_id": to, "mapping": mapping })).await;
    refused.expect_error(409, "invalid_state");
    assert_eq!(refused.body["error"]["details"]["lost"], report["lost"]);
    assert_eq!(shop.look(&item).await["version"], 1);
    let moved = app
        .post(&path, key, json!({ "collection_id": to, "mapping": mapping, "force": true }))
        .await
        .expect(200);
    assert_eq!(
        moved["item"]["data"],
        json!({ "title": "Ball", "price": "3", "category": "books", "kind": "moved" })
    );
    app.get(&shop.of(&item, ""), key).await.expect_error(404, "not_found");
    let there = format!("/collections/{to}/items/{}", item["id"]);
    let now = app.get(&there, key).await.expect(200);
    assert_eq!(now, moved["item"]);
    assert_eq!(
        (&now["title"], &now["external_key"], &now["comment_count"], &now["version"]),
        (&json!("Ball"), &json!("k"), &json!(1), &json!(2))
    );
    assert_eq!(app.get(&format!("{there}/comments"), key).await.expect(200).as_array().unwrap().len(), 1);
    let keys = "SELECT COUNT(*) AS n FROM item_keys";
    assert_eq!(number(app, keys).await, 1, "the index of the new collection has it");
    assert_eq!(event_types(app).await.last().map(String::as_str), Some("item.moved"));
    // Another item may have the external key meanwhile.
    let other = app
        .post(&shop.at(""), key, json!({ "data": { "name": "Cube", "active": null }, "external_key": "k" }))
        .await
        .expect(201);
    let back = json!({ "collection_id": to, "mapping": { "name": "title" } });
    app.post(&shop.of(&other, "/move"), key, back).await.expect_error(409, "duplicate_value");
    assert_eq!(shop.look(&other).await, other);
}
