//! Creating, reading, changing, deleting and restoring single items.

use super::{Shop, product_fields};
use crate::{event_types, events, full, number, seed};
use model::Env;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn an_item_is_created_read_and_changed(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let body =
        json!({ "data": { "name": "Ball", "price": 2.50, "tags": ["sale", "new"] }, "external_key": "b-1" });
    let made = app.post(&shop.at(""), key, body).await;
    assert_eq!(made.headers["etag"], "\"1\"");
    let item = made.expect(201);
    let moment = "2026-01-15T12:00:00.000Z";
    assert_eq!(
        item["data"],
        json!({
            "name": "Ball", "price": 2.5, "active": true, "tags": ["sale", "new"], "number": 1, "changed": moment,
        })
    );
    assert_eq!(
        (&item["object"], &item["title"], &item["version"]),
        (&json!("item"), &json!("Ball"), &json!(1))
    );
    assert_eq!((&item["external_key"], &item["trashed_at"]), (&json!("b-1"), &Value::Null));
    assert_eq!(item["created_by"], json!({ "type": "api_key", "id": key.id }));
    assert_eq!(shop.look(&item).await, item);
    let some = app.get(&shop.of(&item, "?fields=price,name&include=comment_count"), key).await;
    assert_eq!(some.headers["etag"], "\"1\"");
    assert_eq!(some.expect(200)["data"], json!({ "name": "Ball", "price": 2.5 }));
    for (query, param) in [
        ("fields=prize", "fields"),
        ("expand=name", "expand"),
        ("include=x", "include"),
        ("trashed=x", "trashed"),
    ] {
        let refused = app.get(&shop.of(&item, &format!("?{query}")), key).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{query}");
    }

    let patched = app.patch(&shop.of(&item, ""), key, json!({ "data": { "price": 3, "tags": null } })).await;
    assert_eq!(patched.headers["etag"], "\"2\"");
    let patched = patched.expect(200);
    assert_eq!(patched["data"]["price"], 3);
    assert_eq!((&patched["data"]["name"], patched["data"].get("tags")), (&json!("Ball"), None));
    assert_eq!(patched["external_key"], "b-1");

    let replaced = app
        .put(&shop.of(&item, ""), key, json!({ "data": { "name": "Cube" }, "external_key": null }))
        .await
        .expect(200);
    assert_eq!(replaced["data"], json!({ "name": "Cube", "number": 1, "changed": moment }));
    assert_eq!((&replaced["version"], &replaced["external_key"]), (&json!(3), &Value::Null));
    assert_eq!(shop.look(&item).await, replaced);
    assert_eq!(event_types(app).await, ["item.created", "item.updated", "item.updated"]);
    let changed = &events(app).await[1].1["changed"];
    assert_eq!(
        *changed,
        json!({ "price": { "old": 2.5, "new": 3 }, "tags": { "old": ["sale", "new"], "new": null } })
    );
}

#[testkit::both]
async fn a_change_that_changes_nothing_leaves_no_trace(kind: Kind) {
    let shop = Shop::open(kind).await;
    let item = shop.put_up(json!({ "name": "Ball", "price": 1 })).await;
    let same = shop
        .app
        .patch(&shop.of(&item, ""), &shop.key, json!({ "data": { "price": 1.0, "stock": null } }))
        .await
        .expect(200);
    assert_eq!(same, item);
    let same =
        shop.app.put(&shop.of(&item, ""), &shop.key, json!({ "data": item["data"] })).await.expect(200);
    assert_eq!(same, item, "what was read may be written back");
    assert_eq!(event_types(&shop.app).await, ["item.created"]);
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM item_activity").await, 1);
}

#[testkit::both]
async fn wrong_values_are_named_all_at_once(kind: Kind) {
    let shop = Shop::open(kind).await;
    let item = shop.put_up(json!({ "name": "Ball" })).await;
    for (data, param, code) in [
        (json!({}), "data.name", "required"),
        (json!({ "name": null }), "data.name", "required"),
        (json!({ "name": 7 }), "data.name", "invalid_type"),
        (json!({ "name": "x".repeat(1_001) }), "data.name", "too_long"),
        (json!({ "name": "B", "price": "1" }), "data.price", "invalid_type"),
        (json!({ "name": "B", "price": -1 }), "data.price", "out_of_range"),
        (json!({ "name": "B", "stock": 1.5 }), "data.stock", "invalid_type"),
        (json!({ "name": "B", "active": "yes" }), "data.active", "invalid_type"),
        (json!({ "name": "B", "category": "Toys" }), "data.category", "unknown_option"),
        (json!({ "name": "B", "tags": "new" }), "data.tags", "invalid_type"),
        (json!({ "name": "B", "number": 9 }), "data.number", "read_only_field"),
        (json!({ "name": "B", "made_on": "2026-02-30" }), "data.made_on", "invalid_type"),
        (json!({ "name": "B", "prize": 1 }), "data.prize", "unknown_field"),
    ] {
        let refused = shop.app.post(&shop.at(""), &shop.key, json!({ "data": data })).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{data}");
        assert_eq!(refused.body["error"]["errors"][0]["code"], code, "{data}");
        if code != "required" || data.get("name").is_some() {
            let refused = shop.app.patch(&shop.of(&item, ""), &shop.key, json!({ "data": data })).await;
            assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{data}");
        }
        shop.app
            .put(&shop.of(&item, ""), &shop.key, json!({ "data": data }))
            .await
            .expect_error(400, "validation_error");
    }
    let refused = shop
        .app
        .post(&shop.at(""), &shop.key, json!({ "data": { "price": "x", "colour": 1, "name": null } }))
        .await;
    assert_eq!(refused.body["error"]["errors"].as_array().unwrap().len(), 3, "{}", refused.text);
    for (body, param) in [
        (json!({}), "data"),
        (json!({ "data": [] }), "data"),
        (json!({ "data": { "name": "B" }, "external_key": "" }), "external_key"),
        (json!({ "data": { "name": "B" }, "external_key": "x".repeat(256) }), "external_key"),
        (json!({ "data": { "name": "B" }, "titel": 1 }), "titel"),
        (json!({ "data": { "name": "B" }, "typecast": "yes" }), "typecast"),
    ] {
        let refused = shop.app.post(&shop.at(""), &shop.key, body.clone()).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
    assert_eq!(shop.look(&item).await, item);
    assert_eq!(event_types(&shop.app).await, ["item.created"]);
}

#[testkit::both]
async fn typecast_reads_text(kind: Kind) {
    let shop = Shop::open(kind).await;
    let data = json!({ "name": 12, "price": " 2.5 ", "stock": "7", "active": "no", "category": "Toys", "tags": "new, Sale", "made_on": "2026-01-02T10:00:00Z" });
    let item =
        shop.app.post(&shop.at(""), &shop.key, json!({ "data": data, "typecast": true })).await.expect(201);
    for (field, value) in json!({ "name": "12", "price": 2.5, "stock": 7, "active": false, "category": "toys", "tags": ["new", "sale"], "made_on": "2026-01-02" }).as_object().unwrap() {
        assert_eq!(&item["data"][field], value, "{field}");
    }
    let patched = shop
        .app
        .patch(&shop.of(&item, ""), &shop.key, json!({ "data": { "stock": "" }, "typecast": true }))
        .await
        .expect(200);
    assert_eq!(patched["data"].get("stock"), None);
}

#[testkit::both]
async fn choices_that_text_names_are_made(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let refused = app.post(&shop.at(""), key, json!({ "data": { "name": "A", "category": "Garden" } })).await;
    assert_eq!(refused.body["error"]["errors"][0]["code"], "unknown_option");
    let data = json!({ "name": "A", "category": "Für den Garten", "tags": "new, Last Call;LAST call" });
    let item = app.post(&shop.at(""), key, json!({ "data": data, "typecast": true })).await.expect(201);
    assert_eq!(
        (&item["data"]["category"], &item["data"]["tags"]),
        (&json!("fur_den_garten"), &json!(["new", "last_call"]))
    );
    let rows = json!([
        { "data": { "name": "B", "category": "für den garten" } },
        { "data": { "name": "C", "category": "Last Call" } },
    ]);
    let report =
        app.post(&shop.at("/bulk-create"), key, json!({ "rows": rows, "typecast": true })).await.expect(200);
    let made: Vec<Value> = [&shop.look(&report["results"][0]).await, &shop.look(&report["results"][1]).await]
        .map(|item| item["data"]["category"].clone())
        .into();
    assert_eq!(made, ["fur_den_garten", "last_call"]);
    let set = app
        .patch(&shop.of(&item, "/fields/category"), key, json!({ "value": "Books", "typecast": true }))
        .await
        .expect(200);
    assert_eq!(set["data"]["category"], "books", "a label of a choice that is there");
    // A new choice publishes the same event as a change of the field.
    let emitted: Vec<Value> = events(app)
        .await
        .into_iter()
        .filter(|(kind, _)| kind == "field.updated")
        .map(|(_, data)| data)
        .collect();
    let keys: Vec<&Value> = emitted.iter().map(|data| &data["field"]["field_key"]).collect();
    assert_eq!(keys, ["category", "tags", "category"]);
    let labels = |side: &str| -> Vec<Value> {
        emitted[2]["changed"]["options"][side]["choices"]
            .as_array()
            .unwrap()
            .iter()
            .map(|choice| choice["label"].clone())
            .collect()
    };
    assert_eq!(labels("old"), ["Toys", "Books", "Food", "Für den Garten"]);
    assert_eq!(labels("new"), ["Toys", "Books", "Food", "Für den Garten", "Last Call"]);
    assert_eq!(
        (&emitted[2]["field"]["version"], &emitted[2]["field"]["options"]["choices"][4]["id"]),
        (&json!(3), &json!(5))
    );
    // A request that fails leaves no new choice behind.
    let refused = app
        .post(
            &shop.at(""),
            key,
            json!({ "data": { "name": "D", "category": "Never", "price": "x" }, "typecast": true }),
        )
        .await;
    refused.expect_error(400, "validation_error");
    app.patch(&shop.of(&item, ""), key, json!({ "data": { "category": "never" } }))
        .await
        .expect_error(400, "validation_error");
    assert_eq!(
        number(app, "SELECT COUNT(*) AS n FROM item_activity WHERE action = 'schema_changed'").await,
        3
    );
}

#[testkit::both]
async fn values_of_fields_that_are_leaving_are_not_shown(kind: Kind) {
    let shop = Shop::open(kind).await;
    let item = shop.put_up(json!({ "name": "Ball", "stock": 3 })).await;
    let shown = |item: Value| item["data"].get("stock").cloned();
    assert_eq!(shown(shop.look(&item).await), Some(json!(3)));
    shop.app
        .sql("UPDATE collection_fields SET trashed_at = '2026-01-15 12:00:00' WHERE field_key = 'stock'")
        .await;
    shop.app.sql("UPDATE collections SET shape_version = 2").await;
    assert_eq!(shown(shop.look(&item).await), None);
    let late =
        shop.app.ask("DELETE", &shop.of(&item, "")).key(&shop.key).header("if-match", "\"7\"").send().await;
    late.expect_error(409, "version_conflict");
    let current = &late.body["error"]["details"]["current"];
    assert_eq!((&current["data"]["name"], shown(current.clone())), (&json!("Ball"), None));
    // A change that writes no values keeps the values of hidden fields, and events show only the others.
    let emitted_before = events(&shop.app).await.len();
    shop.app.post(&shop.of(&item, "/lock"), &shop.key, json!({})).await.expect(200);
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM items WHERE data LIKE '%stock%'").await, 1);
    shop.app.post(&shop.of(&item, "/unlock"), &shop.key, json!({})).await.expect(200);
    shop.app.delete(&shop.of(&item, ""), &shop.key).await.expect(200);
    shop.app.post(&shop.of(&item, "/restore"), &shop.key, json!({})).await.expect(200);
    let emitted = events(&shop.app).await.split_off(emitted_before);
    assert_eq!(
        emitted.iter().map(|(kind, _)| kind.as_str()).collect::<Vec<_>>(),
        ["item.locked", "item.unlocked", "item.trashed", "item.restored"]
    );
    for (kind, data) in emitted {
        assert_eq!(data["item"]["data"]["name"], "Ball", "{kind}");
        assert_eq!((shown(data["item"].clone()), data["changed"].get("stock")), (None, None), "{kind}");
    }
    let logged = shop.app.get(&shop.of(&item, "/activity"), &shop.key).await.expect(200);
    let later = logged.as_array().unwrap().iter().filter(|entry| entry["action"] != "created");
    assert!(later.into_iter().all(|entry| entry["changed"].get("stock").is_none()), "{logged}");
    let fields = json!([{ "key": "name", "type": "text" }, { "key": "stock", "type": "integer" }]);
    let other = crate::seed::collection(&shop.app, &shop.key, fields).await;
    let body = json!({ "collection_id": other, "force": true });
    let moved = shop.app.post(&shop.of(&item, "/move"), &shop.key, body).await.expect(200);
    assert_eq!((shown(moved["item"].clone()), moved["kept"].get("stock")), (None, None));
    assert!(moved["lost"].as_array().unwrap().iter().all(|lost| lost["field"] != "stock"), "{moved}");
    let item = shop.put_up(json!({ "name": "Bat" })).await;
    let patched =
        shop.app.patch(&shop.of(&item, ""), &shop.key, json!({ "data": { "price": 1 } })).await.expect(200);
    assert_eq!(shown(patched), None);
}

#[testkit::both]
async fn versions_keep_changes_from_getting_lost(kind: Kind) {
    let shop = Shop::open(kind).await;
    let item = shop.put_up(json!({ "name": "Ball" })).await;
    let path = shop.of(&item, "");
    let ask = |method: &str, tag: &str, body: Value| {
        shop.app.ask(method, &path).key(&shop.key).header("if-match", tag).json(&body).send()
    };
    ask("PATCH", "\"1\"", json!({ "data": { "stock": 1 } })).await.expect(200);
    for (method, body) in [
        ("PATCH", json!({ "data": { "stock": 2 } })),
        ("PUT", json!({ "data": { "name": "X" } })),
        ("DELETE", json!({})),
    ] {
        let late = ask(method, "\"1\"", body).await;
        assert_eq!(late.expect_error(409, "version_conflict").as_deref(), Some("If-Match"));
        assert_eq!(late.body["error"]["details"]["current_version"], 2);
        assert_eq!(late.body["error"]["details"]["current"]["data"]["stock"], 1);
    }
    let late = shop.app.patch(&path, &shop.key, json!({ "data": { "stock": 2 }, "version": 1 })).await;
    assert_eq!(late.expect_error(409, "version_conflict").as_deref(), Some("version"));
    let unclear = ask("PATCH", "\"2\"", json!({ "data": {}, "version": 1 })).await;
    assert_eq!(unclear.expect_error(400, "validation_error").as_deref(), Some("version"));
    ask("PATCH", "*", json!({ "data": { "stock": 3 }, "version": 2 })).await.expect(200);
}

#[testkit::both]
async fn what_must_be_unique_is(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let body = json!({ "data": { "name": "A", "sku": "s1" }, "external_key": "k1" });
    let first = app.post(&shop.at(""), key, body).await.expect(201);
    let second = shop.put_up(json!({ "name": "B" })).await;
    for (taken, param) in [
        (app.post(&shop.at(""), key, json!({ "data": { "name": "C", "sku": "s1" } })).await, "data.sku"),
        (app.patch(&shop.of(&second, ""), key, json!({ "data": { "sku": "s1" } })).await, "data.sku"),
        (
            app.put(&shop.of(&second, ""), key, json!({ "data": { "name": "C", "sku": "s1" } })).await,
            "data.sku",
        ),
        (
            app.post(&shop.at(""), key, json!({ "data": { "name": "C" }, "external_key": "k1" })).await,
            "external_key",
        ),
        (app.patch(&shop.of(&second, ""), key, json!({ "external_key": "k1" })).await, "external_key"),
    ] {
        assert_eq!(taken.expect_error(409, "duplicate_value").as_deref(), Some(param));
        assert_eq!(taken.body["error"]["details"]["existing_id"], first["id"]);
    }
    assert_eq!(shop.look(&second).await, second);
    // An item in the trash blocks nothing, and can be restored only if its unique values are still free.
    app.delete(&shop.of(&first, ""), key).await.expect(200);
    let heir = app.patch(&shop.of(&second, ""), key, json!({ "data": { "sku": "s1" } })).await.expect(200);
    app.post(&shop.of(&first, "/restore"), key, json!({})).await.expect_error(409, "duplicate_value");
    app.patch(&shop.of(&heir, ""), key, json!({ "data": { "sku": null }, "external_key": "k1" }))
        .await
        .expect(200);
    let taken = app.post(&shop.of(&first, "/restore"), key, json!({})).await;
    assert_eq!(taken.expect_error(409, "duplicate_value").as_deref(), Some("external_key"));
    app.patch(&shop.of(&heir, ""), key, json!({ "external_key": null })).await.expect(200);
    app.post(&shop.of(&first, "/restore"), key, json!({})).await.expect(200);
    // Other collections are independent.
    let other = seed::collection(app, key, product_fields()).await;
    let body = json!({ "data": { "name": "A", "sku": "s1" }, "external_key": "k1" });
    app.post(&format!("/collections/{other}/items"), key, body).await.expect(201);
}

#[testkit::both]
async fn deleted_items_come_back_for_as_long_as_they_are_in_the_trash(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let item = shop.put_up(json!({ "name": "Ball", "price": 3 })).await;
    app.post(&shop.of(&item, "/restore"), key, json!({})).await.expect_error(409, "invalid_state");
    let gone = app.delete(&shop.of(&item, ""), key).await.expect(200);
    assert_eq!(gone, json!({ "id": item["id"], "object": "item", "deleted": true }));
    assert_eq!(number(app, "SELECT COUNT(*) AS n FROM item_keys").await, 0);
    for answer in [
        app.get(&shop.of(&item, ""), key).await,
        app.patch(&shop.of(&item, ""), key, json!({ "data": {} })).await,
        app.put(&shop.of(&item, ""), key, json!({ "data": { "name": "X" } })).await,
        app.delete(&shop.of(&item, ""), key).await,
    ] {
        answer.expect_error(404, "not_found");
    }
    let trashed = app.get(&shop.of(&item, "?trashed=true"), key).await.expect(200);
    assert_eq!(
        (&trashed["trashed_at"], &trashed["version"]),
        (&json!("2026-01-15T12:00:00.000Z"), &json!(2))
    );
    let back = app.post(&shop.of(&item, "/restore"), key, json!({})).await.expect(200);
    assert_eq!((&back["trashed_at"], &back["data"]["price"]), (&Value::Null, &json!(3)));
    assert_eq!(number(app, "SELECT COUNT(*) AS n FROM item_keys").await, 1);
    app.delete(&shop.of(&item, "?permanent=true"), key).await.expect(200);
    app.get(&shop.of(&item, "?trashed=true"), key).await.expect_error(404, "not_found");
    app.post(&shop.of(&item, "/restore"), key, json!({})).await.expect_error(404, "not_found");
    assert_eq!(event_types(app).await, ["item.created", "item.trashed", "item.restored", "item.deleted"]);
    assert_eq!(number(app, "SELECT COUNT(*) AS n FROM item_keys").await, 0);
    let other = shop.put_up(json!({ "name": "Cube" })).await;
    app.delete(&shop.of(&other, ""), key).await.expect(200);
    app.delete(&shop.of(&other, "?permanent=true"), key).await.expect(200);
    assert_eq!(number(app, "SELECT COUNT(*) AS n FROM items").await, 0);
}

#[testkit::both]
async fn items_of_others_do_not_exist(kind: Kind) {
    let shop = Shop::open(kind).await;
    let stranger = full(&shop.app).await;
    let own = seed::collection(&shop.app, &stranger, product_fields()).await;
    let item = shop.put_up(json!({ "name": "Ball" })).await;
    let elsewhere = format!("/collections/{own}/items/{}", item["id"]);
    for path in [shop.of(&item, ""), elsewhere] {
        for answer in [
            shop.app.get(&path, &stranger).await,
            shop.app.patch(&path, &stranger, json!({ "data": { "name": "X" } })).await,
            shop.app.put(&path, &stranger, json!({ "data": { "name": "X" } })).await,
            shop.app.delete(&path, &stranger).await,
            shop.app.delete(&format!("{path}?permanent=true"), &stranger).await,
            shop.app.post(&format!("{path}/restore"), &stranger, json!({})).await,
        ] {
            answer.expect_error(404, "not_found");
        }
    }
    shop.app
        .post(&shop.at(""), &stranger, json!({ "data": { "name": "X" } }))
        .await
        .expect_error(404, "not_found");
    assert_eq!(shop.look(&item).await, item);
}

#[testkit::both]
async fn an_archived_collection_is_only_read(kind: Kind) {
    let shop = Shop::open(kind).await;
    let item = shop.put_up(json!({ "name": "Ball" })).await;
    shop.app
        .sql(format!(
            "UPDATE collections SET status = 'archived', shape_version = 2 WHERE id = {}",
            shop.collection
        ))
        .await;
    assert_eq!(shop.look(&item).await, item);
    for answer in [
        shop.app.post(&shop.at(""), &shop.key, json!({ "data": { "name": "X" } })).await,
        shop.app.patch(&shop.of(&item, ""), &shop.key, json!({ "data": { "name": "X" } })).await,
        shop.app.delete(&shop.of(&item, ""), &shop.key).await,
    ] {
        answer.expect_error(409, "invalid_state");
        assert_eq!(answer.body["error"]["details"]["state"], "archived");
    }
}

#[testkit::both]
async fn a_test_key_writes_real_items(kind: Kind) {
    let shop = Shop::open(kind).await;
    let test = shop.app.key(shop.key.workspace, Env::Test, &["items:write", "items:read"]).await;
    let item = shop.app.post(&shop.at(""), &test, json!({ "data": { "name": "Ball" } })).await.expect(201);
    assert_eq!(shop.look(&item).await, item);
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM events WHERE livemode").await, 1);
}
