//! Single fields, increments and locks.

use super::Shop;
use crate::{event_types, events, full};
use futures::future::join_all;
use model::Env;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn one_field_is_set_and_cleared(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let item = shop.put_up(json!({ "name": "Ball", "price": 1 })).await;
    let field = |name: &str| shop.of(&item, &format!("/fields/{name}"));
    let set = app.patch(&field("price"), key, json!({ "value": 9.5, "version": 1 })).await.expect(200);
    assert_eq!(
        (&set["data"]["price"], &set["data"]["name"], &set["version"]),
        (&json!(9.5), &json!("Ball"), &json!(2))
    );
    let set = app.patch(&field("stock"), key, json!({ "value": "12", "typecast": true })).await.expect(200);
    assert_eq!(set["data"]["stock"], 12);
    let same = app.patch(&field("stock"), key, json!({ "value": 12 })).await.expect(200);
    assert_eq!(same["version"], set["version"]);
    let cleared = app.patch(&field("stock"), key, json!({ "value": null })).await.expect(200);
    assert_eq!(cleared["data"].get("stock"), None);
    let cleared = app.delete(&field("price"), key).await.expect(200);
    assert_eq!(cleared["data"].get("price"), None);
    for (name, body, param) in [
        ("price", json!({}), "value"),
        ("price", json!({ "value": "x" }), "value"),
        ("price", json!({ "value": -1 }), "value"),
        ("number", json!({ "value": 1 }), "value"),
        ("name", json!({ "value": null }), "data.name"),
        ("price", json!({ "value": 1, "vresion": 1 }), "vresion"),
    ] {
        let refused = app.patch(&field(name), key, body.clone()).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{name} {body}");
    }
    app.patch(&field("prize"), key, json!({ "value": 1 })).await.expect_error(404, "not_found");
    app.delete(&field("prize"), key).await.expect_error(404, "not_found");
    app.delete(&field("name"), key).await.expect_error(400, "validation_error");
    let late = app.ask("DELETE", &field("active")).key(key).header("if-match", "\"1\"").send().await;
    assert_eq!(late.expect_error(409, "version_conflict").as_deref(), Some("If-Match"));
    let stranger = full(app).await;
    app.patch(&field("price"), &stranger, json!({ "value": 1 })).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn increments_stay_within_bounds(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let item = shop.put_up(json!({ "name": "Ball", "price": 0.1 })).await;
    let path = shop.of(&item, "/increment");
    let added = app.post(&path, key, json!({ "field": "price", "by": 0.2 })).await.expect(200);
    assert_eq!(added["data"]["price"], 0.3);
    let added = app.post(&path, key, json!({ "field": "stock", "by": 5 })).await.expect(200);
    assert_eq!(added["data"]["stock"], 5);
    let crossed = app.post(&path, key, json!({ "field": "stock", "by": -6, "min": 0 })).await;
    assert_eq!(crossed.expect_error(409, "invalid_state").as_deref(), Some("by"));
    assert_eq!(crossed.body["error"]["details"]["value"], 5);
    app.post(&path, key, json!({ "field": "stock", "by": 1, "max": 5 }))
        .await
        .expect_error(409, "invalid_state");
    app.post(&path, key, json!({ "field": "price", "by": -1 })).await.expect_error(409, "invalid_state");
    app.post(&path, key, json!({ "field": "stock", "by": 1e300 })).await.expect_error(409, "invalid_state");
    app.post(&path, key, json!({ "field": "stock", "by": -5, "min": 0, "max": 0 })).await.expect(200);
    let same = app.post(&path, key, json!({ "field": "stock", "by": 0 })).await.expect(200);
    assert_eq!(same["version"], 4);
    for (body, param) in [
        (json!({ "field": "stock" }), "by"),
        (json!({ "by": 1 }), "field"),
        (json!({ "field": "stock", "by": "1" }), "by"),
        (json!({ "field": "stock", "by": 0.5 }), "by"),
        (json!({ "field": "name", "by": 1 }), "field"),
        (json!({ "field": "number", "by": 1 }), "field"),
        (json!({ "field": "stok", "by": 1 }), "field"),
    ] {
        let refused = app.post(&path, key, body.clone()).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
}

#[testkit::both]
async fn no_increment_is_lost(kind: Kind) {
    let shop = Shop::open(kind).await;
    let item = shop.put_up(json!({ "name": "Seats", "stock": 40 })).await;
    let path = shop.of(&item, "/increment");
    let body = json!({ "field": "stock", "by": -1, "min": 0 });
    let answers = join_all((0..64).map(|_| shop.app.post(&path, &shop.key, body.clone()))).await;
    let sold = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(sold, 40);
    answers.iter().filter(|answer| answer.status != 200).for_each(|answer| {
        answer.expect_error(409, "invalid_state");
    });
    let now = shop.look(&item).await;
    assert_eq!((&now["data"]["stock"], &now["version"]), (&json!(0), &json!(41)));
    assert_eq!(event_types(&shop.app).await.len(), 41);
}

#[testkit::both]
async fn of_many_with_one_version_one_wins(kind: Kind) {
    let shop = Shop::open(kind).await;
    let item = shop.put_up(json!({ "name": "Ball", "stock": 0 })).await;
    let path = shop.of(&item, "");
    let answers =
        join_all((1..=32).map(|stock| {
            shop.app.patch(&path, &shop.key, json!({ "data": { "stock": stock }, "version": 1 }))
        }))
        .await;
    let winners: Vec<Value> =
        answers.iter().filter(|answer| answer.status == 200).map(|answer| answer.expect(200)).collect();
    assert_eq!(winners.len(), 1);
    answers.iter().filter(|answer| answer.status != 200).for_each(|answer| {
        answer.expect_error(409, "version_conflict");
    });
    assert_eq!(shop.look(&item).await, winners[0]);
}

#[testkit::both]
async fn of_many_with_one_unique_value_one_wins(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key, path) = (&shop.app, &shop.key, &shop.at(""));
    let answers = join_all((0..32).map(|place| {
        let body = if place % 2 == 0 {
            json!({ "data": { "name": "A", "sku": "one" } })
        } else {
            json!({ "data": { "name": "A" }, "external_key": "one" })
        };
        async move { app.post(path, key, body).await }
    }))
    .await;
    let winners: Vec<Value> =
        answers.iter().filter(|answer| answer.status == 201).map(|answer| answer.expect(201)).collect();
    assert_eq!(winners.len(), 2, "one for the field and one for the external key");
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        answer.expect_error(409, "duplicate_value");
        let holder = &answer.body["error"]["details"]["existing_id"];
        assert!(winners.iter().any(|winner| winner["id"] == *holder), "{}", answer.text);
    }
    assert_eq!(event_types(&shop.app).await.len(), 2);
}

#[testkit::both]
async fn a_locked_item_refuses_changes(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let item = shop.put_up(json!({ "name": "Ball", "stock": 1 })).await;
    let other = app.key(key.workspace, Env::Live, &["items:write"]).await;
    let locked = app.post(&shop.of(&item, "/lock"), key, json!({})).await.expect(200);
    assert_eq!(locked["locked_by"], json!({ "type": "api_key", "id": key.id }));
    assert_eq!((&locked["locked_at"], &locked["version"]), (&json!("2026-01-15T12:00:00.000Z"), &json!(2)));
    let again = app.post(&shop.of(&item, "/lock"), key, json!({})).await.expect(200);
    assert_eq!(again, locked);
    for refused in [
        app.post(&shop.of(&item, "/lock"), &other, json!({})).await,
        app.patch(&shop.of(&item, ""), key, json!({ "data": { "stock": 2 } })).await,
        app.put(&shop.of(&item, ""), key, json!({ "data": { "name": "X" } })).await,
        app.delete(&shop.of(&item, ""), key).await,
        app.delete(&shop.of(&item, "?permanent=true"), key).await,
        app.patch(&shop.of(&item, "/fields/stock"), key, json!({ "value": 2 })).await,
        app.delete(&shop.of(&item, "/fields/stock"), key).await,
        app.post(&shop.of(&item, "/increment"), key, json!({ "field": "stock", "by": 1 })).await,
        app.post(&shop.of(&item, "/unlock"), &other, json!({})).await,
    ] {
        refused.expect_error(409, "item_locked");
        assert_eq!(refused.body["error"]["details"]["locked_by"]["id"], json!(key.id));
    }
    assert_eq!(shop.look(&item).await, locked);
    let open = app.post(&shop.of(&item, "/unlock"), &other, json!({ "force": true })).await.expect(200);
    assert_eq!(
        (&open["locked_by"], &open["locked_at"], &open["version"]),
        (&Value::Null, &Value::Null, &json!(3))
    );
    let still = app.post(&shop.of(&item, "/unlock"), key, json!({})).await.expect(200);
    assert_eq!(still, open);
    assert_eq!(event_types(app).await, ["item.created", "item.locked", "item.unlocked"]);
    assert_eq!(events(app).await[1].1["item"]["locked_by"]["id"], json!(key.id));
    app.patch(&shop.of(&item, ""), key, json!({ "data": { "stock": 2 } })).await.expect(200);
    app.post(&shop.of(&item, "/lock"), &full(app).await, json!({})).await.expect_error(404, "not_found");
}
