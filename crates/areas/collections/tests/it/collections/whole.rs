//! Operations on a whole collection: its schema, its statistics and its copy.

use super::{items, make, values};
use crate::full;
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

#[testkit::both]
async fn the_schema_fits_items_and_refuses_others(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let target = app.post("/collections", &key, json!({ "name": "Target" })).await.expect(201);
    let other = items(&app, &key, &format!("/collections/{}", target["id"]), &[json!({ "name": "x" })]).await;
    let other: i64 = other[0].rsplit('/').next().unwrap().parse().unwrap();
    let choices = json!({ "choices": [{ "label": "A" }, { "label": "B" }] });
    let body = json!({ "name": "C", "description": "All of it", "fields": [
        { "label": "Name", "type": "text", "required": true, "unique": true, "options": { "max_length": 10, "pattern": "[a-z]+" } },
        { "label": "Price", "type": "currency", "options": { "min": 0, "max": 99.5, "currency": "EUR" } },
        { "label": "Stars", "type": "rating" },
        { "label": "Born", "type": "date" },
        { "label": "At", "type": "datetime" },
        { "label": "Opens", "type": "time" },
        { "label": "Kind", "type": "select", "options": choices },
        { "label": "Tags", "type": "multi_select", "options": choices },
        { "label": "Refs", "type": "relation", "options": { "target_collection_id": target["id"] } },
        { "label": "Meta", "type": "json", "options": { "json_schema": { "type": "object", "required": ["a"] } } },
        { "label": "On", "type": "boolean" },
        { "label": "No", "type": "auto_number" },
        { "label": "Twice", "type": "formula", "options": { "expression": "{price} * 2" } },
        { "label": "Made", "type": "created_at" },
        { "label": "By", "type": "created_by" },
    ] });
    let path = make(&app, &key, body).await;
    let rows = items(&app, &key, &path, &[
        json!({ "name": "a" }),
        json!({ "name": "b", "price": 1.5, "stars": 5, "born": "2026-01-01", "at": "2026-01-01T00:00:00Z", "opens": "09:30", "kind": "a",
            "tags": ["a", "b"], "refs": [other], "meta": { "a": 1 }, "on": true }),
    ]).await;
    let schema = app.get(&format!("{path}/schema"), &key).await.expect(200);
    assert!(jsonschema::draft202012::meta::is_valid(&schema), "{schema}");
    let validator = jsonschema::draft202012::options().should_validate_formats(true).build(&schema).unwrap();
    let stored = values(&app, &key, &rows).await;
    for data in &stored {
        assert!(
            validator.is_valid(data),
            "{data}: {:?}",
            validator.iter_errors(data).map(|error| error.to_string()).collect::<Vec<_>>()
        );
    }
    for (name, wrong) in [
        ("name", json!("ABC")),
        ("name", json!("abcdefghijk")),
        ("price", json!(-1)),
        ("price", json!("1")),
        ("stars", json!(6)),
        ("born", json!("1.1.2026")),
        ("at", json!("now")),
        ("opens", json!("25:00")),
        ("kind", json!("c")),
        ("tags", json!(["a", "a"])),
        ("tags", json!([])),
        ("refs", json!([0])),
        ("meta", json!({})),
        ("on", json!(1)),
        ("nope", json!(1)),
    ] {
        let mut data = stored[1].clone();
        data[name] = wrong.clone();
        assert!(!validator.is_valid(&data), "{name}: {wrong}");
        if !["tags"].contains(&name) {
            let patch = app.patch(&rows[1], &key, json!({ "data": { name: wrong } })).await;
            patch.expect_error(400, "validation_error");
        }
    }
    assert_eq!(
        (&schema["required"], &schema["x-svc-unique"], &schema["x-svc-primary-field"]),
        (&json!(["name"]), &json!([["name"]]), &json!("name"))
    );
    let price = &schema["properties"]["price"];
    assert_eq!(
        (&price["x-svc-type"], &price["x-svc-compare"]["nulls"]),
        (&json!("currency"), &json!("last"))
    );
    assert!(price["x-svc-compare"]["operators"].as_array().unwrap().contains(&json!("gte")));
    assert_eq!(schema["properties"]["twice"]["readOnly"], true);
    assert_eq!(schema["properties"]["tags"]["x-svc-compare"]["order"], json!(null));
}

#[testkit::both]
async fn the_numbers_add_up(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let body = json!({ "name": "C", "fields": [{ "label": "Name", "type": "text" }, { "label": "N", "type": "integer" }] });
    let path = make(&app, &key, body).await;
    let empty = app.get(&format!("{path}/stats"), &key).await.expect(200);
    assert_eq!((&empty["items_live"], &empty["fields"][0]["fill_rate"]), (&json!(0), &json!(0.0)));
    let rows = items(
        &app,
        &key,
        &path,
        &[
            json!({ "name": "a", "n": 1 }),
            json!({ "name": "b" }),
            json!({ "name": "c" }),
            json!({}),
            json!({ "n": 2 }),
        ],
    )
    .await;
    app.delete(&rows[4], &key).await.expect(200);
    let stats = app.get(&format!("{path}/stats"), &key).await.expect(200);
    let bytes = r#"{"name":"a","n":1}{"name":"b"}{"name":"c"}{}"#.len();
    for (name, value) in [
        ("items_live", json!(4)),
        ("items_trashed", json!(1)),
        ("items_exact", json!(true)),
        ("bytes", json!(bytes)),
        ("items_seen", json!(4)),
        ("sampled", json!(false)),
    ] {
        assert_eq!(stats[name], value, "{name}");
    }
    let rates: Vec<Value> = stats["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| json!([field["field_key"], field["filled"], field["fill_rate"]]))
        .collect();
    assert_eq!(rates, [json!(["name", 3, 0.75]), json!(["n", 1, 0.25])]);
}

#[testkit::both]
async fn activity_is_listed_and_filtered(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let path = make(&app, &key, json!({ "name": "C" })).await;
    let rows = items(&app, &key, &path, &[json!({ "name": "a" }), json!({ "name": "b" })]).await;
    let other = app.key(key.workspace, model::Env::Live, &["*"]).await;
    app.patch(&rows[0], &other, json!({ "data": { "name": "c" } })).await.expect(200);
    let field = app
        .post(&format!("{path}/fields"), &key, json!({ "label": "N", "type": "integer" }))
        .await
        .expect(201);
    app.patch(&format!("{path}/fields/{}", field["id"]), &key, json!({ "label": "M" })).await.expect(200);
    let actions = async |query: &str| -> Vec<Value> {
        let list = app.get(&format!("{path}/activity{query}"), &key).await.expect(200);
        list.as_array().unwrap().iter().map(|entry| entry["action"].clone()).collect()
    };
    let all = ["schema_changed", "schema_changed", "updated", "created", "created", "schema_changed"];
    assert_eq!(actions("").await, all);
    assert_eq!(actions("?action=schema_changed").await.len(), 3);
    let id = rows[0].rsplit('/').next().unwrap();
    assert_eq!(actions(&format!("?item_id={id}")).await, ["updated", "created"]);
    assert_eq!(actions(&format!("?actor={}", other.id)).await, ["updated"]);
    assert_eq!(actions("?actor=key%25").await, Vec::<Value>::new());
    app.get(&format!("{path}/activity?action=odd"), &key).await.expect_error(400, "validation_error");
    let newest = &app.get(&format!("{path}/activity"), &key).await.expect(200)[0];
    assert_eq!(newest["changed"], json!({ "fields.n.label": { "old": "N", "new": "M" } }));
    assert_eq!((&newest["item_id"], &newest["actor"]["id"]), (&json!(null), &json!(key.id.to_string())));
    let page = app.get(&format!("{path}/activity?paginate=true&limit=4"), &key).await;
    let cursor = page.body["next_cursor"].as_str().unwrap();
    assert_eq!(actions(&format!("?paginate=true&limit=4&starting_after={cursor}")).await, all[4..]);
    let stranger = full(&app).await;
    app.get(&format!("{path}/activity"), &stranger).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn a_collection_is_copied(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let body = json!({ "name": "C", "fields": [
        { "label": "No", "type": "auto_number" },
        { "label": "Name", "type": "text", "unique": true },
        { "label": "Kind", "type": "select", "options": { "choices": [{ "label": "A" }, { "label": "B" }] } },
        { "label": "Twice", "type": "formula", "options": { "expression": "{no} * 2" } },
    ], "primary_field": "name", "settings": { "unique_keys": [["name", "kind"]] } });
    let path = make(&app, &key, body).await;
    let rows = items(
        &app,
        &key,
        &path,
        &[json!({ "name": "gone" }), json!({ "name": "a", "kind": "b" }), json!({ "name": "b" })],
    )
    .await;
    app.delete(&rows[0], &key).await.expect(200);
    app.post(&format!("{path}/views"), &key, json!({ "name": "V", "sort": ["-name"], "filter_tree": { "field": "kind", "op": "eq", "value": "a" } })).await.expect(201);
    let bare = app.post(&format!("{path}/duplicate"), &key, json!({})).await.expect(201);
    assert_eq!(
        (&bare["name"], &bare["item_count"], &bare["primary_field"]),
        (&json!("C (copy)"), &json!(0), &json!("name"))
    );
    let whole = app
        .post(&format!("{path}/duplicate"), &key, json!({ "name": "D", "include_items": true }))
        .await
        .expect(201);
    assert_eq!(
        (&whole["item_count"], &whole["settings"]["unique_keys"]),
        (&json!(2), &json!([["name", "kind"]]))
    );
    let there = format!("/collections/{}", whole["id"]);
    let original = app.get(&path, &key).await.expect(200);
    for (field, copy) in
        original["fields"].as_array().unwrap().iter().zip(whole["fields"].as_array().unwrap())
    {
        assert_ne!(field["id"], copy["id"]);
        for name in ["field_key", "label", "type", "options", "unique", "unique_status", "position"] {
            assert_eq!(field[name], copy[name], "{name}");
        }
    }
    let views = app.get(&format!("{there}/views"), &key).await.expect(200);
    assert_eq!(
        (&views[0]["sort"], &views[0]["filter_tree"]["field"], &views[0]["valid"]),
        (&json!(["-name"]), &json!("kind"), &json!(true))
    );
    app.post(&format!("{there}/items"), &key, json!({ "data": { "name": "a" } }))
        .await
        .expect_error(409, "duplicate_value");
    let next =
        app.post(&format!("{there}/items"), &key, json!({ "data": { "name": "c" } })).await.expect(201);
    assert_eq!((&next["data"]["no"], &next["data"]["twice"]), (&json!(3), &json!(6)));
    app.post(&format!("{path}/duplicate"), &key, json!({ "name": "d" }))
        .await
        .expect_error(409, "duplicate_value");
    app.service.jobs.run_due().await.unwrap();
    assert_eq!(app.get(&there, &key).await.expect(200)["item_count"], 3);
}
