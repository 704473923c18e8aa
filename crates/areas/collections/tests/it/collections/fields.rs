//! Creating, changing, ordering and deleting fields, and the effects on values.

use super::{field, items, make, values};
use crate::{events, full, number};
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

#[testkit::both]
async fn fields_are_added_read_and_ordered(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let path = make(&app, &key, json!({ "name": "C" })).await;
    let rows = items(&app, &key, &path, &[json!({ "name": "a" }), json!({ "name": "b" })]).await;
    let body = json!({ "label": "Unit price", "type": "currency", "options": { "currency": "EUR", "precision": 2 } });
    let price = app.post(&format!("{path}/fields"), &key, body).await.expect(201);
    assert_eq!(
        (&price["field_key"], &price["object"], &price["position"]),
        (&json!("unit_price"), &json!("field"), &json!(1))
    );
    assert_eq!(price["options"], json!({ "currency": "EUR", "precision": 2 }));
    assert_eq!(app.get(&format!("{path}/fields/{}", price["id"]), &key).await.expect(200), price);
    let number = app
        .post(&format!("{path}/fields"), &key, json!({ "label": "No", "type": "auto_number" }))
        .await
        .expect(201);
    assert_eq!((&number["system"], &number["computed"]), (&json!(true), &json!(false)));
    app.post(&format!("{path}/fields"), &key, json!({ "field_key": "born", "type": "created_at" }))
        .await
        .expect(201);
    app.post(
        &format!("{path}/fields"),
        &key,
        json!({ "label": "Stars", "type": "rating", "required": true, "default": 3 }),
    )
    .await
    .expect(201);
    let twice = json!({ "label": "Twice", "type": "formula", "options": { "expression": "{stars} * 2" } });
    app.post(&format!("{path}/fields"), &key, twice).await.expect(201);
    for (place, found) in values(&app, &key, &rows).await.into_iter().enumerate() {
        assert_eq!(
            (&found["no"], &found["stars"], &found["twice"]),
            (&json!(place + 1), &json!(3), &json!(6)),
            "{found}"
        );
        assert!(found["born"].is_string());
    }
    assert_eq!(app.get(&rows[0], &key).await.expect(200)["version"], 1);
    // A field without a label is named after its type.
    let nameless =
        app.post(&format!("{path}/fields"), &key, json!({ "type": "long_text" })).await.expect(201);
    assert_eq!((&nameless["label"], &nameless["field_key"]), (&json!("Long text"), &json!("long_text")));
    let nameless =
        app.post(&format!("{path}/fields"), &key, json!({ "type": "long_text" })).await.expect(201);
    assert_eq!((&nameless["label"], &nameless["field_key"]), (&json!("Long text"), &json!("long_text_2")));
    app.delete(&format!("{path}/fields/{}", nameless["id"]), &key).await.expect(200);
    app.delete(
        &format!("{path}/fields/{}?force=true", field(&app, &key, &path, "long_text").await["id"]),
        &key,
    )
    .await
    .expect(200);
    let lacking = json!({ "label": "Must", "type": "text", "required": true });
    let refused = app.post(&format!("{path}/fields"), &key, lacking).await;
    assert_eq!(refused.expect_error(409, "invalid_state").as_deref(), Some("required"));
    assert_eq!(refused.body["error"]["details"]["count"], 2);
    let taken =
        app.post(&format!("{path}/fields"), &key, json!({ "field_key": "name", "type": "text" })).await;
    assert_eq!(taken.expect_error(409, "duplicate_value").as_deref(), Some("field_key"));
    let fields = app.get(&format!("{path}/fields"), &key).await.expect(200);
    let mut ids: Vec<Value> = fields.as_array().unwrap().iter().map(|field| field["id"].clone()).collect();
    assert_eq!(ids.len(), 6);
    let page = app.get(&format!("{path}/fields?paginate=true&limit=4"), &key).await;
    let cursor = page.body["next_cursor"].as_str().unwrap();
    let rest = app
        .get(&format!("{path}/fields?paginate=true&limit=4&starting_after={cursor}"), &key)
        .await
        .expect(200);
    assert_eq!(
        rest.as_array().unwrap().iter().map(|field| field["id"].clone()).collect::<Vec<_>>(),
        ids[4..]
    );
    let floats: Vec<Value> = ids.iter().map(|id| id.as_f64().unwrap().into()).collect();
    assert!(json!(floats).to_string().contains(".0"));
    app.put(&format!("{path}/fields/order"), &key, json!({ "field_ids": floats })).await.expect(200);
    ids.reverse();
    let order = format!("{path}/fields/order");
    let sorted = app.put(&order, &key, json!({ "field_ids": ids })).await.expect(200);
    assert_eq!(sorted.as_array().unwrap().iter().map(|field| field["id"].clone()).collect::<Vec<_>>(), ids);
    let (kind, emitted) = events(&app).await.pop().unwrap();
    assert_eq!(
        (kind.as_str(), &emitted["changed"]["fields"]["new"][5]),
        ("collection.updated", &json!("name"))
    );
    for (wrong, param) in [
        (json!([]), "field_ids"),
        (json!(ids[1..]), "field_ids"),
        (json!([ids[0], ids[0], ids[1], ids[2], ids[3], ids[4]]), "field_ids[1]"),
        (json!([ids[0], 999_999]), "field_ids[1]"),
        (json!([ids[0], 1.5]), "field_ids[1]"),
        (json!([ids[0], 1e30]), "field_ids[1]"),
    ] {
        let refused = app.put(&order, &key, json!({ "field_ids": wrong })).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param));
    }
}

#[testkit::both]
async fn a_field_is_changed(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let path =
        make(&app, &key, json!({ "name": "C", "fields": [{ "label": "Code", "type": "text" }] })).await;
    let code = field(&app, &key, &path, "code").await;
    let address = format!("{path}/fields/{}", code["id"]);
    let change = json!({ "label": "SKU", "description": "d", "options": { "max_length": 8, "pattern": "[A-Z]+" }, "default": "ABC" });
    let changed = app.patch(&address, &key, change).await.expect(200);
    assert_eq!(
        (&changed["label"], &changed["field_key"], &changed["version"]),
        (&json!("SKU"), &json!("code"), &json!(2))
    );
    assert_eq!(changed["options"], json!({ "max_length": 8, "pattern": "[A-Z]+" }));
    let (kind, emitted) = events(&app).await.pop().unwrap();
    assert_eq!(
        (kind.as_str(), &emitted["changed"]["label"]),
        ("field.updated", &json!({ "old": "Code", "new": "SKU" }))
    );
    let partly = app.patch(&address, &key, json!({ "options": { "pattern": null } })).await.expect(200);
    assert_eq!(partly["options"], json!({ "max_length": 8 }));
    // A change without effect leaves no trace.
    let before = events(&app).await.len();
    assert_eq!(
        app.patch(&address, &key, json!({ "label": "SKU ", "options": {} })).await.expect(200)["version"],
        3
    );
    assert_eq!(events(&app).await.len(), before);
    let late = app.patch(&address, &key, json!({ "label": "X", "version": 2 })).await;
    assert_eq!(late.expect_error(409, "version_conflict").as_deref(), Some("version"));
    let details = &late.body["error"]["details"];
    assert_eq!((&details["current_version"], &details["current"]["label"]), (&json!(3), &json!("SKU")));
    for (patch, param) in [
        (json!({ "default": "far too long" }), "default"),
        (json!({ "options": { "max": 3 } }), "options.max"),
        (json!({ "options": { "max_length": 2000 } }), "options.max_length"),
        (json!({ "field_key": "x" }), "field_key"),
        (json!({ "type": "relation" }), "type"),
        (json!({ "type": "auto_number" }), "type"),
        (json!({ "unique": true }), "default"),
        (json!({ "type": "json", "default": null }), "type"),
    ] {
        let refused = app.patch(&address, &key, patch.clone()).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{patch}");
    }
    let rows = items(&app, &key, &path, &[json!({ "code": "a" }), json!({ "code": "a" }), json!({})]).await;
    assert_eq!(values(&app, &key, &rows).await[2], json!({ "code": "ABC" }));
    let clash = app.patch(&address, &key, json!({ "unique": true, "default": null })).await;
    assert_eq!(clash.expect_error(409, "duplicate_value").as_deref(), Some("unique"));
    assert_eq!(clash.body["error"]["details"]["examples"][0]["values"], json!(["a"]));
    app.delete(&rows[0], &key).await.expect(200);
    let unique = app.patch(&address, &key, json!({ "unique": true, "default": null })).await.expect(200);
    assert_eq!((&unique["unique"], &unique["unique_status"]), (&json!(true), &json!("ready")));
    app.post(&format!("{path}/items"), &key, json!({ "data": { "code": "a" } }))
        .await
        .expect_error(409, "duplicate_value");
    app.patch(&address, &key, json!({ "unique": false })).await.expect(200);
    let extra = items(&app, &key, &path, &[json!({ "code": "a" }), json!({})]).await;
    let refused = app.patch(&address, &key, json!({ "required": true })).await;
    assert_eq!(refused.expect_error(409, "invalid_state").as_deref(), Some("required"));
    assert_eq!(refused.body["error"]["details"]["count"], 1);
    app.patch(&address, &key, json!({ "required": true, "default": "none" })).await.expect(200);
    assert_eq!(values(&app, &key, &extra).await, [json!({ "code": "a" }), json!({ "code": "none" })]);
}

#[testkit::both]
async fn another_type_converts_or_refuses(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let body = json!({ "name": "C", "fields": [{ "label": "Name", "type": "text" }, { "label": "V", "type": "text" }] });
    let path = make(&app, &key, body).await;
    let given = [
        json!({ "v": "12" }),
        json!({ "v": "2.60" }),
        json!({ "v": "many" }),
        json!({}),
        json!({ "v": "7" }),
    ];
    let rows = items(&app, &key, &path, &given).await;
    app.delete(&rows[4], &key).await.expect(200);
    let address = format!("{path}/fields/{}", field(&app, &key, &path, "v").await["id"]);
    let dry = app.patch(&address, &key, json!({ "type": "integer", "dry_run": true })).await.expect(200);
    let report = &dry["conversion"];
    for (name, count) in
        [("items_seen", 5), ("kept", 0), ("changed", 2), ("cut", 1), ("would_be_null", 1), ("empty", 1)]
    {
        assert_eq!(report[name], count, "{name}: {report}");
    }
    assert_eq!(report["examples"].as_array().unwrap().len(), 4);
    assert_eq!((&dry["type"], &dry["version"]), (&json!("text"), &json!(1)));
    let refused = app.patch(&address, &key, json!({ "type": "integer" })).await;
    assert_eq!(refused.expect_error(409, "invalid_state").as_deref(), Some("type"));
    assert_eq!(refused.body["error"]["details"]["conversion"]["would_be_null"], 1);
    assert_eq!(values(&app, &key, &rows[..4]).await, given[..4]);
    let done = app.patch(&address, &key, json!({ "type": "integer", "force": true })).await.expect(200);
    assert_eq!(
        (&done["type"], &done["converting"], &done["conversion"]["cut"]),
        (&json!("integer"), &json!(null), &json!(1))
    );
    let now = values(&app, &key, &rows[..4]).await;
    assert_eq!(now, [json!({ "v": 12 }), json!({ "v": 3 }), json!({}), json!({})]);
    // Items in the trash are converted as well.
    app.post(&format!("{}/restore", rows[4]), &key, json!({})).await.expect(200);
    assert_eq!(values(&app, &key, &rows[4..]).await, [json!({ "v": 7 })]);
    // A conversion that loses nothing needs no `force`.
    app.patch(&address, &key, json!({ "type": "text" })).await.expect(200);
    assert_eq!(values(&app, &key, &rows[..1]).await, [json!({ "v": "12" })]);
    assert_eq!(app.get(&rows[0], &key).await.expect(200)["version"], 1);
}

#[testkit::both]
async fn a_great_conversion_is_a_job(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let body = json!({ "name": "C", "fields": [{ "label": "Name", "type": "text" }, { "label": "V", "type": "text", "unique": true }] });
    let path = make(&app, &key, body).await;
    let rows = items(&app, &key, &path, &[json!({ "v": "1" })]).await;
    // For many items the job does the work instead of the request.
    let spread = "INSERT INTO items (workspace_id, collection_id, data, title, comment_count, version, created_by, updated_by, created_at, updated_at) \
        WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 5002) \
        SELECT workspace_id, collection_id, '{\"v\":\"' || i || '\"}', '', 0, 1, created_by, updated_by, created_at, updated_at FROM items, n";
    app.sql(spread).await;
    let address = format!("{path}/fields/{}", field(&app, &key, &path, "v").await["id"]);
    let begun = app.patch(&address, &key, json!({ "type": "number" })).await.expect(200);
    assert_eq!(begun["converting"], json!({ "items_done": 0, "items_total": 5002 }));
    app.patch(&address, &key, json!({ "type": "text" })).await.expect_error(409, "invalid_state");
    app.service.jobs.run_due().await.unwrap();
    let done = app.get(&address, &key).await.expect(200);
    assert_eq!((&done["converting"], &done["unique_status"]), (&json!(null), &json!("ready")));
    assert_eq!(values(&app, &key, &rows).await, [json!({ "v": 1 })]);
    app.post(&format!("{path}/items"), &key, json!({ "data": { "v": 5002 } }))
        .await
        .expect_error(409, "duplicate_value");
    assert_eq!(number(&app, "SELECT COUNT(*) AS n FROM collection_rewrites").await, 0);
}

#[testkit::both]
async fn choices_are_added_moved_and_removed(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let body = json!({ "name": "C", "fields": [
        { "label": "Status", "type": "select", "options": { "choices": [{ "label": "To do" }, { "label": "Done", "key": "done", "color": "green" }] } },
        { "label": "Tags", "type": "multi_select", "options": { "choices": [{ "label": "A" }, { "label": "B" }] } },
    ] });
    let path = make(&app, &key, body).await;
    let status = field(&app, &key, &path, "status").await;
    assert_eq!(
        status["options"]["choices"],
        json!([
            { "id": 1, "key": "to_do", "label": "To do", "archived": false },
            { "id": 2, "key": "done", "label": "Done", "color": "green", "archived": false },
        ])
    );
    let options = format!("{path}/fields/{}/options", status["id"]);
    let made = app
        .post(&options, &key, json!({ "label": "Doing", "color": "#00ff00", "position": 1 }))
        .await
        .expect(201);
    assert_eq!(
        made,
        json!({ "id": 3, "object": "field_option", "field_id": status["id"], "key": "doing", "label": "Doing", "color": "#00ff00", "position": 1, "archived": false })
    );
    let rows = items(
        &app,
        &key,
        &path,
        &[
            json!({ "status": "done", "tags": ["a", "b"] }),
            json!({ "status": "doing", "tags": ["a"] }),
            json!({ "status": "to_do" }),
        ],
    )
    .await;
    assert_eq!(app.get(&rows[0], &key).await.expect(200)["title"], "Done");
    let renamed = app
        .patch(&format!("{options}/2"), &key, json!({ "label": "Finished", "color": null, "position": 0 }))
        .await
        .expect(200);
    assert_eq!(
        (&renamed["key"], &renamed["label"], &renamed["color"], &renamed["position"]),
        (&json!("done"), &json!("Finished"), &json!(null), &json!(0))
    );
    assert_eq!(app.get(&rows[0], &key).await.expect(200)["title"], "Finished");
    app.post(&options, &key, json!({ "label": "finished" })).await.expect_error(409, "duplicate_value");
    app.post(&options, &key, json!({ "label": "Other", "key": "done" }))
        .await
        .expect_error(409, "duplicate_value");
    app.patch(&format!("{options}/99"), &key, json!({ "label": "X" })).await.expect_error(404, "not_found");
    app.patch(&format!("{options}/1"), &key, json!({ "archived": true })).await.expect(200);
    app.post(&format!("{path}/items"), &key, json!({ "data": { "status": "to_do" } }))
        .await
        .expect_error(400, "validation_error");
    let refused = app.delete(&format!("{options}/3"), &key).await;
    refused.expect_error(409, "resource_in_use");
    assert_eq!(refused.body["error"]["details"]["count"], 1);
    let gone = app.delete(&format!("{options}/3?force=true"), &key).await.expect(200);
    assert_eq!(gone, json!({ "id": 3, "object": "field_option", "deleted": true }));
    assert_eq!(values(&app, &key, &rows[1..2]).await, [json!({ "tags": ["a"] })]);
    let tags = field(&app, &key, &path, "tags").await;
    app.delete(&format!("{path}/fields/{}/options/1?force=true", tags["id"]), &key).await.expect(200);
    assert_eq!(
        values(&app, &key, &rows).await,
        [json!({ "status": "done", "tags": ["b"] }), json!({}), json!({ "status": "to_do" })]
    );
    // Ids are never reused.
    assert_eq!(app.post(&options, &key, json!({ "label": "New" })).await.expect(201)["id"], 4);
    // A whole list of choices: they are matched by id or key, and the others are new.
    let address = format!("{path}/fields/{}", status["id"]);
    let list =
        json!([{ "key": "done", "label": "Done" }, { "id": 1, "label": "Open" }, { "label": "Fresh" }]);
    let changed = app.patch(&address, &key, json!({ "options": { "choices": list } })).await.expect(200);
    let keys: Vec<Value> = changed["options"]["choices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|choice| json!([choice["id"], choice["key"]]))
        .collect();
    assert_eq!(keys, [json!([2, "done"]), json!([1, "to_do"]), json!([5, "fresh"])]);
    for (choices, param) in [
        (json!([{ "id": 77, "label": "X" }]), "options.choices[0].id"),
        (json!([{ "id": 1, "key": "other", "label": "X" }]), "options.choices[0].key"),
        (json!([{ "label": "X" }, { "label": "x" }]), "options.choices[1].label"),
        (json!([{ "label": "" }]), "options.choices[0].label"),
    ] {
        let refused = app.patch(&address, &key, json!({ "options": { "choices": choices } })).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param));
    }
    let name = app
        .post(&format!("{path}/fields"), &key, json!({ "label": "Name", "type": "text" }))
        .await
        .expect(201);
    app.post(&format!("{path}/fields/{}/options", name["id"]), &key, json!({ "label": "X" }))
        .await
        .expect_error(409, "invalid_state");
}

#[testkit::both]
async fn a_deleted_field_takes_its_values_along(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let body = json!({ "name": "C", "fields": [
        { "label": "Name", "type": "text" }, { "label": "Code", "type": "text", "unique": true }, { "label": "Price", "type": "number" },
        { "label": "Gross", "type": "formula", "options": { "expression": "{price} * 2" } },
    ], "settings": { "unique_keys": [["name", "code"]] } });
    let path = make(&app, &key, body).await;
    let rows = items(
        &app,
        &key,
        &path,
        &[json!({ "name": "a", "code": "x", "price": 2 }), json!({ "name": "b", "code": "y" })],
    )
    .await;
    let address = async |name: &str| format!("{path}/fields/{}", field(&app, &key, &path, name).await["id"]);
    let (code, price, name) = (address("code").await, address("price").await, address("name").await);
    for (address, user) in [(&code, "unique_key"), (&price, "field"), (&name, "unique_key")] {
        let refused = app.delete(address, &key).await;
        refused.expect_error(409, "field_in_use");
        assert_eq!(refused.body["error"]["details"]["used_by"][0]["object"], user);
    }
    for kind in ["json", "multi_select"] {
        let refused = app.patch(&code, &key, json!({ "type": kind, "unique": false, "force": true })).await;
        assert_eq!(refused.expect_error(409, "field_in_use").as_deref(), Some("type"));
        assert_eq!(refused.body["error"]["details"]["used_by"][0]["fields"], json!(["name", "code"]));
    }
    app.delete(&format!("{code}?force=true"), &key).await.expect(200);
    app.get(&code, &key).await.expect_error(404, "not_found");
    assert_eq!(
        values(&app, &key, &rows).await,
        [json!({ "name": "a", "price": 2, "gross": 4 }), json!({ "name": "b" })]
    );
    assert_eq!(app.get(&path, &key).await.expect(200)["settings"]["unique_keys"], json!([]));
    let (kind, emitted) = events(&app).await.pop().unwrap();
    assert_eq!((kind.as_str(), &emitted["field"]["field_key"]), ("field.deleted", &json!("code")));
    // The title comes from the next suitable field, and the key is free again.
    app.delete(&name, &key).await.expect(200);
    assert_eq!(app.get(&path, &key).await.expect(200)["primary_field"], "price");
    assert_eq!(app.get(&rows[0], &key).await.expect(200)["title"], "2");
    app.post(&format!("{path}/fields"), &key, json!({ "field_key": "name", "type": "number" }))
        .await
        .expect(201);
    app.delete(&format!("{price}?force=true"), &key).await.expect(200);
    assert_eq!(values(&app, &key, &rows).await, [json!({}), json!({})]);
}

#[testkit::both]
async fn relations_come_with_their_mirror(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let target = app.post("/collections", &key, json!({ "name": "Authors" })).await.expect(201);
    let books = make(&app, &key, json!({ "name": "Books" })).await;
    let there = format!("/collections/{}", target["id"]);
    let options = json!({ "target_collection_id": target["id"], "cardinality": "one", "on_delete": "restrict", "reverse_field_key": "books" });
    let made = app
        .post(
            &format!("{books}/fields"),
            &key,
            json!({ "label": "Author", "type": "relation", "options": options }),
        )
        .await
        .expect(201);
    let mirror = field(&app, &key, &there, "books").await;
    assert_eq!(
        (&made["options"]["reverse_field_id"], &made["options"].get("reverse_field_key")),
        (&mirror["id"], &None)
    );
    assert_eq!(
        (&mirror["options"]["reverse_field_id"], &mirror["options"]["cardinality"]),
        (&made["id"], &json!("many"))
    );
    let again = json!({ "label": "Editor", "type": "relation", "options": { "target_collection_id": target["id"], "reverse_field_key": "books" } });
    let taken = app.post(&format!("{books}/fields"), &key, again).await;
    assert_eq!(taken.expect_error(409, "duplicate_value").as_deref(), Some("options.reverse_field_key"));
    let address = format!("{books}/fields/{}", made["id"]);
    let moved = app.patch(&address, &key, json!({ "options": { "target_collection_id": 999_999 } })).await;
    assert_eq!(moved.expect_error(400, "validation_error").as_deref(), Some("options.target_collection_id"));
    app.patch(&address, &key, json!({ "type": "text" })).await.expect_error(400, "validation_error");
    app.delete(&address, &key).await.expect_error(409, "field_in_use");
    app.delete(&format!("{address}?force=true"), &key).await.expect(200);
    app.get(&format!("{there}/fields/{}", mirror["id"]), &key).await.expect_error(404, "not_found");
    let itself = json!({ "label": "Parent", "type": "relation", "options": { "target_collection_id": target["id"], "reverse_field_key": "children" } });
    app.post(&format!("{there}/fields"), &key, itself).await.expect(201);
    assert_eq!(app.get(&format!("{there}/fields"), &key).await.expect(200).as_array().unwrap().len(), 3);
}
