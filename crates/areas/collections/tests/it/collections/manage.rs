//! Creating, listing, reading and changing collections and groups.

use super::{items, make};
use crate::{event_types, events, full};
use model::Env;
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

#[testkit::both]
async fn a_collection_begins_with_a_name(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let made = app.post("/collections", &key, json!({ "name": "  Café & Más " })).await.expect(201);
    assert_eq!(
        (&made["name"], &made["slug"], &made["object"]),
        (&json!("Café & Más"), &json!("cafe-mas"), &json!("collection"))
    );
    assert_eq!(
        (&made["status"], &made["item_count"], &made["version"]),
        (&json!("active"), &json!(0), &json!(1))
    );
    assert_eq!(
        made["settings"],
        json!({ "activity_retention_days": 365, "comments_enabled": true, "unique_keys": [] })
    );
    assert_eq!((&made["primary_field"], made["fields"].as_array().unwrap().len()), (&json!("name"), 1));
    assert_eq!(made["created_by"], json!({ "type": "api_key", "id": key.id.to_string() }));
    let field = &made["fields"][0];
    assert_eq!(
        (&field["field_key"], &field["type"], &field["label"]),
        (&json!("name"), &json!("text"), &json!("Name"))
    );
    let path = format!("/collections/{}", made["id"]);
    let read = app.get(&path, &key).await.expect(200);
    assert_eq!((&read["fields"], &read["name"]), (&made["fields"], &made["name"]));
    items(&app, &key, &path, &[json!({ "name": "A" }), json!({ "name": "B" })]).await;
    let read = app.get(&path, &key).await.expect(200);
    assert_eq!((&read["item_count"], read["item_count_exact_at"].is_string()), (&json!(2), true));
    let emitted = events(&app).await;
    assert_eq!(
        (emitted[0].0.as_str(), &emitted[0].1["collection"]["id"]),
        ("collection.created", &made["id"])
    );
}

#[testkit::both]
async fn a_collection_is_created_with_everything(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let group = app.post("/collections/groups", &key, json!({ "name": "Shop" })).await.expect(201);
    let body = json!({
        "name": "Products", "slug": "goods", "description": "What we sell", "icon": "📦", "color": "#ff8800",
        "group_id": group["id"], "position": 7, "primary_field": "title",
        "settings": { "activity_retention_days": 30, "comments_enabled": false, "unique_keys": [["title", "size"]] },
        "fields": [
            { "label": "Size", "type": "integer", "required": true, "default": 1, "options": { "min": 1, "max": 9 } },
            { "field_key": "title", "label": "Title", "type": "text", "description": "Of the product" },
            { "label": "Title", "type": "text", "unique": true },
            { "label": "Double", "type": "formula", "options": { "expression": "{size} * 2" } },
        ],
    });
    let made = app.post("/collections", &key, body.clone()).await.expect(201);
    for name in
        ["name", "slug", "description", "icon", "color", "group_id", "position", "primary_field", "settings"]
    {
        assert_eq!(made[name], body[name], "{name}");
    }
    let keys: Vec<&Value> =
        made["fields"].as_array().unwrap().iter().map(|field| &field["field_key"]).collect();
    assert_eq!(keys, ["size", "title", "title_2", "double"]);
    assert_eq!(
        (&made["fields"][2]["unique"], &made["fields"][2]["unique_status"]),
        (&json!(true), &json!("ready"))
    );
    assert_eq!(
        (&made["fields"][3]["computed"], &made["fields"][3]["options"]["result_type"]),
        (&json!(true), &json!("number"))
    );
    let item = json!({ "data": { "title": "A", "size": 2 } });
    let path = format!("/collections/{}", made["id"]);
    let first = app.post(&format!("{path}/items"), &key, item.clone()).await.expect(201);
    assert_eq!((&first["title"], &first["data"]["double"]), (&json!("A"), &json!(4)));
    let clash = app.post(&format!("{path}/items"), &key, item).await;
    clash.expect_error(409, "duplicate_value");
    assert_eq!(clash.body["error"]["details"]["existing_id"], first["id"]);
}

#[testkit::both]
async fn what_is_wrong_with_a_collection_is_named(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    make(&app, &key, json!({ "name": "Taken", "slug": "taken" })).await;
    let field = |field: Value| json!({ "name": "C", "fields": [{ "label": "A", "type": "text" }, field] });
    for (body, param) in [
        (json!({}), "name"),
        (json!({ "name": " " }), "name"),
        (json!({ "name": "x".repeat(121) }), "name"),
        (json!({ "name": "C", "slug": "Ä" }), "slug"),
        (json!({ "name": "C", "color": "#12" }), "color"),
        (json!({ "name": "C", "group_id": 999_999 }), "group_id"),
        (json!({ "name": "C", "feilds": [] }), "feilds"),
        (json!({ "name": "C", "primary_field": "price" }), "primary_field"),
        (json!({ "name": "C", "settings": { "unique_keys": [["nope"]] } }), "settings.unique_keys[0][0]"),
        (json!({ "name": "C", "settings": { "unique_keys": [[]] } }), "settings.unique_keys[0]"),
        (
            json!({ "name": "C", "settings": { "unique_keys": [["name", "name"]] } }),
            "settings.unique_keys[0][1]",
        ),
        (
            json!({ "name": "C", "settings": { "activity_retention_days": 0 } }),
            "settings.activity_retention_days",
        ),
        (field(json!({})), "fields[1].type"),
        (field(json!({ "label": "B" })), "fields[1].type"),
        (field(json!({ "label": "B", "type": "strange" })), "fields[1].type"),
        (field(json!({ "field_key": "Bad", "type": "text" })), "fields[1].field_key"),
        (field(json!({ "field_key": "created_at", "type": "text" })), "fields[1].field_key"),
        (field(json!({ "label": "B", "type": "text", "options": { "max": 5 } })), "fields[1].options.max"),
        (
            field(json!({ "label": "B", "type": "text", "options": { "pattern": "(" } })),
            "fields[1].options.pattern",
        ),
        (
            field(json!({ "label": "B", "type": "formula", "options": { "expression": "{nope} + 1" } })),
            "fields[1].options.expression",
        ),
        (
            field(
                json!({ "label": "B", "type": "relation", "options": { "target_collection_id": 999_999 } }),
            ),
            "fields[1].options.target_collection_id",
        ),
    ] {
        let refused = app.post("/collections", &key, body.clone()).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
    let twice = json!({ "name": "C", "fields": [{ "field_key": "a", "type": "text" }, { "field_key": "a", "type": "text" }] });
    let refused = app.post("/collections", &key, twice).await.expect_error(400, "validation_error");
    assert_eq!(refused.as_deref(), Some("fields[1].field_key"));
    for (body, param) in
        [(json!({ "name": "tAKEN" }), "name"), (json!({ "name": "C", "slug": "taken" }), "slug")]
    {
        let refused = app.post("/collections", &key, body).await;
        assert_eq!(refused.expect_error(409, "duplicate_value").as_deref(), Some(param));
        assert!(refused.body["error"]["details"]["existing_id"].is_number());
    }
    // The rejected requests left nothing behind.
    assert_eq!(app.get("/collections", &key).await.expect(200).as_array().unwrap().len(), 1);
}

#[testkit::both]
async fn collections_are_listed_by_group_state_and_name(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let group = app.post("/collections/groups", &key, json!({ "name": "G" })).await.expect(201)["id"].clone();
    for (name, group) in [
        ("Orders", json!(null)),
        ("Products", group.clone()),
        ("100% cotton", json!(null)),
        ("Öfen", group.clone()),
    ] {
        make(&app, &key, json!({ "name": name, "group_id": group })).await;
    }
    let archived = make(&app, &key, json!({ "name": "Old orders" })).await;
    app.post(&format!("{archived}/archive"), &key, json!({})).await.expect(200);
    let names = async |query: &str| -> Vec<String> {
        let list = app.get(&format!("/collections{query}"), &key).await.expect(200);
        list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("").await, ["Orders", "Products", "100% cotton", "Öfen"]);
    assert_eq!(names(&format!("?group_id={group}")).await, ["Products", "Öfen"]);
    assert_eq!(names("?status=archived").await, ["Old orders"]);
    assert_eq!(names("?q=%C3%96F").await, ["Öfen"]);
    assert_eq!(names("?q=0%25").await, ["100% cotton"]);
    assert_eq!(names("?q=_").await, Vec::<String>::new());
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = app.get(&format!("/collections?paginate=true&limit=3{cursor}"), &key).await;
        seen.extend(
            page.expect(200).as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()),
        );
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&starting_after={next}"),
            None => break,
        }
    }
    assert_eq!(seen, names("").await);
    let first = &app.get("/collections", &key).await.expect(200)[0];
    assert!(first.get("fields").is_none() && first["primary_field"] == "name", "{first}");
    app.get("/collections?status=odd", &key).await.expect_error(400, "validation_error");
}

#[testkit::both]
async fn a_collection_is_changed(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let body = json!({ "name": "A", "fields": [
        { "label": "Name", "type": "text" }, { "label": "Code", "type": "integer" }, { "label": "Tags", "type": "json" },
    ] });
    let path = make(&app, &key, body).await;
    let other = make(&app, &key, json!({ "name": "Other" })).await;
    let rows =
        items(&app, &key, &path, &[json!({ "name": "x", "code": 5 }), json!({ "name": "y", "code": 5 })])
            .await;
    let change = json!({ "name": "B", "description": "d", "icon": "i", "color": "green", "position": 3, "primary_field": "code" });
    let changed = app.patch(&path, &key, change.clone()).await.expect(200);
    for (name, value) in change.as_object().unwrap() {
        assert_eq!(&changed[name], value, "{name}");
    }
    assert_eq!((&changed["version"], &changed["slug"]), (&json!(2), &json!("a")));
    assert_eq!(app.get(&rows[0], &key).await.expect(200)["title"], "5");
    assert_eq!(app.patch(&path, &key, change).await.expect(200)["version"], 2);
    let emitted = events(&app).await;
    let (kind, data) = emitted.last().unwrap();
    assert_eq!(
        (kind.as_str(), &data["changed"]["name"]),
        ("collection.updated", &json!({ "old": "A", "new": "B" }))
    );
    let cleared = app.patch(&path, &key, json!({ "description": null, "icon": null })).await.expect(200);
    assert_eq!(
        (&cleared["description"], &cleared["icon"], &cleared["version"]),
        (&json!(null), &json!(null), &json!(3))
    );
    for (body, header, param) in [
        (json!({ "name": "C", "version": 2 }), None, "version"),
        (json!({ "name": "C" }), Some("\"2\""), "If-Match"),
    ] {
        let mut ask = app.ask("PATCH", &path).key(&key).json(&body);
        if let Some(tag) = header {
            ask = ask.header("if-match", tag);
        }
        let refused = ask.send().await;
        assert_eq!(refused.expect_error(409, "version_conflict").as_deref(), Some(param));
        let details = &refused.body["error"]["details"];
        assert_eq!((&details["current_version"], &details["current"]["version"]), (&json!(3), &json!(3)));
    }
    for (body, code, param) in [
        (json!({ "name": "other" }), "duplicate_value", "name"),
        (json!({ "slug": "other" }), "duplicate_value", "slug"),
        (json!({ "settings": { "unique_keys": [["code"]] } }), "duplicate_value", "settings.unique_keys[0]"),
    ] {
        let refused = app.patch(&path, &key, body).await;
        assert_eq!(refused.expect_error(409, code).as_deref(), Some(param));
    }
    for (body, param) in [
        (json!({ "primary_field": "tags" }), "primary_field"),
        (json!({ "settings": { "unique_keys": [["tags"]] } }), "settings.unique_keys[0][0]"),
        (json!({ "fields": [] }), "fields"),
    ] {
        assert_eq!(
            app.patch(&path, &key, body).await.expect_error(400, "validation_error").as_deref(),
            Some(param)
        );
    }
    let both = app
        .patch(&path, &key, json!({ "settings": { "unique_keys": [["code", "name"]] } }))
        .await
        .expect(200);
    assert_eq!(both["settings"]["activity_retention_days"], 365);
    app.post(&format!("{path}/items"), &key, json!({ "data": { "name": "x", "code": 5 } }))
        .await
        .expect_error(409, "duplicate_value");
    app.patch(&path, &key, json!({ "settings": { "unique_keys": [] } })).await.expect(200);
    app.post(&format!("{path}/items"), &key, json!({ "data": { "name": "x", "code": 5 } })).await.expect(201);
    app.get(&other, &key).await.expect(200);
}

#[testkit::both]
async fn groups_order_collections(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let first = app.post("/collections/groups", &key, json!({ "name": "First" })).await.expect(201);
    let second = app.post("/collections/groups", &key, json!({ "name": "Second" })).await.expect(201);
    assert_eq!(
        (&first["object"], &first["position"], &second["position"]),
        (&json!("collection_group"), &json!(0), &json!(1))
    );
    app.post("/collections/groups", &key, json!({ "name": "FIRST " }))
        .await
        .expect_error(409, "duplicate_value");
    app.post("/collections/groups", &key, json!({ "name": "" })).await.expect_error(400, "validation_error");
    let path = format!("/collections/groups/{}", first["id"]);
    let moved = app.patch(&path, &key, json!({ "name": "Last", "position": 5 })).await.expect(200);
    assert_eq!(
        (&moved["name"], &moved["position"], &moved["version"]),
        (&json!("Last"), &json!(5), &json!(2))
    );
    app.patch(&path, &key, json!({ "name": "second" })).await.expect_error(409, "duplicate_value");
    let list = app.get("/collections/groups", &key).await.expect(200);
    let names: Vec<&Value> = list.as_array().unwrap().iter().map(|group| &group["name"]).collect();
    assert_eq!(names, ["Second", "Last"]);
    let collection = make(&app, &key, json!({ "name": "C", "group_id": first["id"] })).await;
    let gone = app.delete(&path, &key).await.expect(200);
    assert_eq!(gone, json!({ "id": first["id"], "object": "collection_group", "deleted": true }));
    assert_eq!(app.get(&collection, &key).await.expect(200)["group_id"], json!(null));
    app.delete(&path, &key).await.expect_error(404, "not_found");
    app.patch(&path, &key, json!({ "name": "X" })).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn other_workspaces_see_nothing(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, stranger) = (full(&app).await, full(&app).await);
    let group = app.post("/collections/groups", &key, json!({ "name": "G" })).await.expect(201);
    let body = json!({ "name": "C", "group_id": group["id"], "fields": [
        { "label": "Name", "type": "text" }, { "label": "Kind", "type": "select", "options": { "choices": [{ "label": "A" }] } },
    ] });
    let made = app.post("/collections", &key, body).await.expect(201);
    let path = format!("/collections/{}", made["id"]);
    let field = format!("{path}/fields/{}", made["fields"][1]["id"]);
    let before = event_types(&app).await.len();
    for (method, address, body) in [
        ("GET", path.clone(), json!({})),
        ("PATCH", path.clone(), json!({ "name": "X" })),
        ("POST", format!("{path}/archive"), json!({})),
        ("POST", format!("{path}/unarchive"), json!({})),
        ("GET", format!("{path}/fields"), json!({})),
        ("POST", format!("{path}/fields"), json!({ "label": "X", "type": "text" })),
        (
            "PUT",
            format!("{path}/fields/order"),
            json!({ "field_ids": [made["fields"][1]["id"], made["fields"][0]["id"]] }),
        ),
        ("GET", field.clone(), json!({})),
        ("PATCH", field.clone(), json!({ "label": "X" })),
        ("POST", format!("{field}/options"), json!({ "label": "B" })),
        ("PATCH", format!("{field}/options/1"), json!({ "label": "B" })),
        ("DELETE", format!("{field}/options/1"), json!({})),
        ("DELETE", field.clone(), json!({})),
        ("PATCH", format!("/collections/groups/{}", group["id"]), json!({ "name": "X" })),
        ("DELETE", format!("/collections/groups/{}", group["id"]), json!({})),
        ("DELETE", path.clone(), json!({})),
    ] {
        app.ask(method, &address).key(&stranger).json(&body).send().await.expect_error(404, "not_found");
    }
    app.post("/collections", &stranger, json!({ "name": "C", "group_id": group["id"] }))
        .await
        .expect_error(400, "validation_error");
    let mine = app.post("/collections", &stranger, json!({ "name": "C" })).await.expect(201);
    let relation =
        json!({ "label": "R", "type": "relation", "options": { "target_collection_id": made["id"] } });
    let refused = app.post(&format!("/collections/{}/fields", mine["id"]), &stranger, relation).await;
    assert_eq!(
        refused.expect_error(400, "validation_error").as_deref(),
        Some("options.target_collection_id")
    );
    assert_eq!(event_types(&app).await.len(), before + 1);
    assert_eq!(app.get(&path, &key).await.expect(200)["fields"], made["fields"]);
    let reader = app.key(key.workspace, Env::Live, &["collections:read"]).await;
    app.get(&path, &reader).await.expect(200);
    app.patch(&path, &reader, json!({ "name": "X" })).await.expect_error(403, "missing_scope");
}
