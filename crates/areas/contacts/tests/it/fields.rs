//! Contact fields of a workspace: definitions, and values of every type.

use crate::Crm;
use business::team::{self, NewMember};
use serde_json::{Value, json};
use testkit::Kind;

const FIELDS: &str = "/variables/contact-fields";

impl Crm {
    pub(super) async fn field(&self, body: Value) -> Value {
        self.app.post(FIELDS, &self.key, body).await.expect(201)
    }
}

/// Encodes a text for a query string.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[testkit::both]
async fn definitions_are_made_changed_and_deleted(kind: Kind) {
    let crm = Crm::open(kind).await;
    let (app, key) = (&crm.app, &crm.key);
    assert_eq!(app.get(FIELDS, key).await.expect(200), json!([]));
    let made = crm.field(json!({ "label": "Tamaño del pie", "type": "integer", "options": { "min": 10 }, "description": "EU" })).await;
    assert_eq!(
        (&made["object"], &made["field_key"], &made["position"]),
        (&json!("contact_field"), &json!("tamano_del_pie"), &json!(1))
    );
    let path = format!("{FIELDS}/tamano_del_pie");
    assert_eq!(app.get(&path, key).await.expect(200), made);
    assert_eq!(app.get(FIELDS, key).await.expect(200), json!([made]));
    let again = app.post(FIELDS, key, json!({ "field_key": "tamano_del_pie", "type": "text" })).await;
    assert_eq!(again.expect_error(409, "duplicate_value").as_deref(), Some("field_key"));
    for (body, param) in [
        (json!({ "label": "x" }), "type"),
        (json!({ "label": "x", "type": "formula", "options": { "expression": "1" } }), "type"),
        (json!({ "label": "x", "type": "relation" }), "type"),
        (json!({ "field_key": "$name", "type": "text" }), "field_key"),
        (json!({ "field_key": "id", "type": "text" }), "field_key"),
        (
            json!({ "label": "x", "type": "select", "options": { "choices": [{ "label": "A" }, { "label": "a" }] } }),
            "options.choices[1].label",
        ),
    ] {
        let refused = app.post(FIELDS, key, body.clone()).await.expect_error(400, "validation_error");
        assert_eq!(refused.as_deref(), Some(param), "{body}");
    }
    let patch = json!({ "label": "Shoe size", "description": null, "archived": true, "version": 1 });
    let changed = app.patch(&path, key, patch.clone()).await.expect(200);
    assert_eq!(
        (&changed["label"], &changed["description"], &changed["archived"], &changed["options"]),
        (&json!("Shoe size"), &Value::Null, &json!(true), &json!({ "min": 10 })),
    );
    app.patch(&path, key, patch).await.expect_error(409, "version_conflict");
    for path in [format!("{FIELDS}/unknown"), format!("{FIELDS}/$name"), format!("{FIELDS}/%24phone")] {
        app.get(&path, key).await.expect_error(404, "not_found");
        app.patch(&path, key, json!({ "label": "x" })).await.expect_error(404, "not_found");
        app.delete(&path, key).await.expect_error(404, "not_found");
    }
    let other = app.bare_workspace("scale", 0).await;
    let stranger = app.key(other, model::Env::Live, &["*"]).await;
    app.get(&path, &stranger).await.expect_error(404, "not_found");
    app.delete(&path, &stranger).await.expect_error(404, "not_found");
    assert_eq!(app.delete(&path, key).await.expect(200)["object"], "contact_field");
    app.get(&path, key).await.expect_error(404, "not_found");
    crm.field(json!({ "field_key": "tamano_del_pie", "type": "text" })).await;
}

#[testkit::both]
async fn values_of_every_type_are_stored_found_and_cleared(kind: Kind) {
    let crm = Crm::open(kind).await;
    let (app, key) = (&crm.app, &crm.key);
    let workspace = key.workspace;
    let member = app.db().write(move |tx| {
        team::add(
            tx,
            workspace,
            NewMember { name: "Marta".into(), email: "m@example.com".into(), ..NewMember::default() },
        )
    });
    let member = member.await.unwrap().id;
    let friend = crm.create(json!({ "$name": "Friend" })).await["id"].clone();
    let uploaded = app.ask("POST", "/files").key(key).form(&[], ("a.txt", b"hello")).send().await;
    let file = uploaded.expect(201)["id"].clone();
    let choices =
        json!({ "choices": [{ "label": "Größe Ä", "key": "big" }, { "label": "小", "key": "small" }] });
    // Type, options, a value, another value, and whether the type has an order in which the first value comes first.
    let table = [
        ("text", json!({}), json!("Ägypten 日本"), json!("żółw"), true),
        ("long_text", json!({}), json!("line\nanother 👩‍👩‍👧"), json!("z"), true),
        ("email", json!({}), json!("a@example.com"), json!("b@example.com"), true),
        ("url", json!({}), json!("https://example.com/a"), json!("https://example.com/b"), true),
        ("phone", json!({}), json!("+34612345678"), json!("+5511987654321"), true),
        ("number", json!({ "precision": 2 }), json!(-1.5), json!(12.25), true),
        ("currency", json!({ "currency": "EUR" }), json!(0.5), json!(99.99), true),
        ("percent", json!({}), json!(12.5), json!(100), true),
        ("rating", json!({}), json!(1), json!(5), true),
        ("duration", json!({}), json!(60), json!(3600), true),
        ("integer", json!({}), json!(-7), json!(42), true),
        ("boolean", json!({}), json!(false), json!(true), true),
        ("date", json!({}), json!("1990-02-28"), json!("2026-11-22"), true),
        ("datetime", json!({}), json!("2026-01-01T00:00:00.000Z"), json!("2026-06-01T00:00:00.000Z"), true),
        ("time", json!({}), json!("08:00"), json!("23:59:30"), true),
        ("select", choices.clone(), json!("big"), json!("small"), true),
        ("multi_select", choices, json!(["big", "small"]), json!(["small"]), false),
        ("tags", json!({}), json!(["é", "b"]), json!(["c"]), false),
        ("contact", json!({}), json!([friend]), json!([]), false),
        ("user", json!({}), json!([member]), json!([]), false),
        ("file", json!({}), json!([file]), json!([]), false),
        ("json", json!({}), json!({ "a": [1, null, "ü"] }), json!([1]), false),
    ];
    let mut created = Vec::new();
    for (kind, options, ..) in &table {
        created.push(
            json!({ "field_key": format!("f_{kind}"), "label": kind, "type": kind, "options": options }),
        );
    }
    created.push(json!({ "field_key": "f_auto_number", "type": "auto_number" }));
    for body in created {
        crm.field(body).await;
    }
    let with = |place: usize, name: &str| -> Value {
        let mut data = json!({ "$name": name });
        for (kind, _, first, second, _) in &table {
            data[format!("f_{kind}")] = if place == 0 { first.clone() } else { second.clone() };
        }
        data
    };
    let first = crm.create(with(0, "First")).await;
    crm.create(with(1, "Second")).await;
    let empty: serde_json::Map<String, Value> =
        table.iter().map(|(kind, ..)| (format!("f_{kind}"), Value::Null)).collect();
    let mut nothing = Value::Object(empty.clone());
    nothing["$name"] = json!("Third");
    let third = crm.create(nothing).await;
    assert!(third["data"]["f_auto_number"].is_i64());
    assert_eq!(
        third["data"].as_object().unwrap().keys().filter(|key| key.starts_with("f_")).count(),
        1,
        "{third}"
    );
    for (kind, _, given, other, ordered) in &table {
        let key = format!("f_{kind}");
        assert_eq!(first["data"][&key], *given, "{kind}");
        let null = json!({ "field": key, "op": "eq", "value": null });
        let tree = encoded(&null.to_string());
        let mut without = vec!["Friend", "Third"];
        if other.as_array().is_some_and(Vec::is_empty) {
            without.insert(1, "Second");
        }
        assert_eq!(crm.names(&format!("sort=$name&filter_tree={tree}")).await, without, "{kind}");
        if *kind == "json" {
            continue;
        }
        let element = given.get(0).unwrap_or(given);
        for op in ["eq", "neq"] {
            let tree = json!({ "field": key, "op": op, "value": element }).to_string();
            let exact = json!([{ "field": key, "op": op, "value": element }]).to_string();
            let found = if op == "eq" { vec!["First"] } else { vec!["Friend", "Second", "Third"] };
            let second_too = op == "eq" && other.as_array().is_some_and(|other| other.contains(element));
            assert!(!second_too, "{kind}");
            assert_eq!(
                crm.names(&format!("sort=$name&filter_tree={}", encoded(&tree))).await,
                found,
                "{kind} {op}"
            );
            assert_eq!(
                crm.names(&format!("sort=$name&filters={}", encoded(&exact))).await,
                found,
                "{kind} {op}"
            );
        }
        if *ordered {
            assert_eq!(
                crm.names(&format!("sort={key},$name")).await,
                ["First", "Second", "Friend", "Third"],
                "{kind}"
            );
            assert_eq!(
                crm.names(&format!("sort=-{key},$name")).await,
                ["Second", "First", "Friend", "Third"],
                "{kind}"
            );
        }
    }
    for words in ["agypten", "日本", "größe"] {
        assert_eq!(crm.names(&format!("q={}", encoded(words))).await, ["First"], "{words}");
    }
    let path = format!("/contacts/{}", first["id"]);
    let cleared = app.patch(&path, key, json!({ "data": empty })).await.expect(200);
    assert_eq!(cleared["data"].as_object().unwrap().len(), 3, "{cleared}");
    let refused = app
        .patch(
            &path,
            key,
            json!({ "data": { "f_txt": "x", "f_integer": 1.5, "f_select": "none", "f_contact": [999] } }),
        )
        .await;
    refused.expect_error(400, "validation_error");
    let errors: Vec<_> = refused.body["error"]["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["param"].as_str().unwrap().to_owned())
        .collect();
    for param in ["data.f_txt", "data.f_integer", "data.f_select"] {
        assert!(errors.contains(&param.to_owned()), "{errors:?}");
    }
}

#[testkit::both]
async fn unknown_and_duplicate_values_are_refused_everywhere(kind: Kind) {
    let crm = Crm::open(kind).await;
    let (app, key) = (&crm.app, &crm.key);
    crm.field(json!({ "field_key": "tax_id", "type": "text", "unique": true })).await;
    let ana = crm.create(json!({ "$name": "Ana", "$email": "ana@example.com", "tax_id": "X1" })).await;
    for (path, body, param) in [
        ("/contacts", json!({ "data": { "$name": "B", "taxid": "X2" } }), "data.taxid"),
        ("/contacts/upsert", json!({ "data": { "$email": "b@example.com", "taxid": "X2" } }), "data.taxid"),
        (
            "/contacts/bulk-upsert",
            json!({ "rows": [{ "data": { "$email": "b@example.com", "taxid": "X2" } }] }),
            "rows[0].data.taxid",
        ),
    ] {
        let refused = app.post(path, key, body).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{path}");
        assert_eq!(refused.body["error"]["errors"][0]["code"], "unknown_field");
    }
    let clash = app.post("/contacts", key, json!({ "data": { "$name": "B", "tax_id": "X1" } })).await;
    assert_eq!(clash.expect_error(409, "duplicate_value").as_deref(), Some("data.tax_id"));
    assert_eq!(clash.body["error"]["details"]["existing_id"], ana["id"]);
    let bea = app
        .post("/contacts/upsert", key, json!({ "data": { "$email": "bea@example.com", "tax_id": "X2" } }))
        .await
        .expect(200);
    assert_eq!(bea["contact"]["data"]["tax_id"], "X2");
    app.post("/contacts/upsert", key, json!({ "data": { "$email": "bea@example.com", "tax_id": "X1" } }))
        .await
        .expect_error(409, "duplicate_value");
    let rows = json!([{ "data": { "$email": "bea@example.com", "tax_id": "X3" } }, { "data": { "$email": "cem@example.com", "tax_id": "X1" } }]);
    let report =
        app.post("/contacts/bulk-upsert", key, json!({ "mode": "partial", "rows": rows })).await.expect(200);
    let statuses: Vec<_> = report["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["status"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(statuses, ["updated", "error"]);
}

#[testkit::both]
async fn changes_of_a_field_reach_its_values(kind: Kind) {
    let crm = Crm::open(kind).await;
    let (app, key) = (&crm.app, &crm.key);
    crm.field(json!({ "field_key": "points", "type": "text" })).await;
    crm.field(json!({ "field_key": "tier", "type": "select", "options": { "choices": [{ "label": "Basic" }, { "label": "Gold" }] } })).await;
    let ana = crm.create(json!({ "$name": "Ana", "points": "12", "tier": "gold" })).await;
    let bea = crm.create(json!({ "$name": "Bea", "points": "many" })).await;
    let points = format!("{FIELDS}/points");
    let dry = app.patch(&points, key, json!({ "type": "integer", "dry_run": true })).await.expect(200);
    assert_eq!((&dry["type"], &dry["conversion"]["would_be_null"]), (&json!("text"), &json!(1)));
    app.patch(&points, key, json!({ "type": "integer" })).await.expect_error(409, "invalid_state");
    app.patch(&points, key, json!({ "type": "integer", "force": true })).await.expect(200);
    assert_eq!(crm.get(&ana["id"]).await["data"]["points"], 12);
    assert_eq!(crm.get(&bea["id"]).await["data"].get("points"), None);
    let tier = format!("{FIELDS}/tier");
    let choices =
        json!([{ "key": "basic", "label": "Basic" }, { "key": "gold", "label": "Gold", "archived": true }]);
    app.patch(&tier, key, json!({ "options": { "choices": choices } })).await.expect(200);
    let path = format!("/contacts/{}", bea["id"]);
    let refused = app.patch(&path, key, json!({ "data": { "tier": "gold" } })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("data.tier"));
    assert_eq!(crm.get(&ana["id"]).await["data"]["tier"], "gold");
    let gone = app
        .patch(&tier, key, json!({ "options": { "choices": [{ "key": "basic", "label": "Basic" }] } }))
        .await;
    gone.expect_error(409, "resource_in_use");
    assert!(gone.body["error"]["message"].as_str().unwrap().starts_with("1 contacts use"), "{}", gone.body);
    let tree = json!({ "and": [{ "field": "tier", "op": "eq", "value": "gold" }] });
    let segment =
        app.post("/contacts/segments", key, json!({ "name": "Gold", "filter_tree": tree })).await.expect(201);
    let used = app.delete(&tier, key).await;
    used.expect_error(409, "field_in_use");
    assert_eq!(
        used.body["error"]["details"]["used_by"],
        json!([{ "object": "segment", "id": segment["id"], "name": "Gold" }])
    );
    app.delete(&format!("{tier}?force=true"), key).await.expect(200);
    assert_eq!(crm.get(&ana["id"]).await["data"].get("tier"), None);
    let answer = app.get(&format!("/contacts/segments/{}", segment["id"]), key).await;
    answer.expect_error(409, "invalid_state");
    app.patch(&path, key, json!({ "data": { "tier": "basic" } })).await.expect_error(400, "validation_error");
    crm.field(json!({ "field_key": "required", "type": "text", "required": true, "default": "none" })).await;
    assert_eq!(crm.get(&bea["id"]).await["data"]["required"], "none");
}

#[testkit::both]
async fn more_contacts_than_the_plan_allows_cut_the_workspace(kind: Kind) {
    let crm = Crm::open(kind).await;
    let workspace = crm.app.bare_workspace("trial", 0).await;
    let key = crm.app.key(workspace, model::Env::Live, &["*"]).await;
    crm.app.sql("UPDATE plans SET contacts_limit = 2 WHERE id = 'trial'").await;
    for name in ["A", "B"] {
        crm.app.post("/contacts", &key, json!({ "data": { "$name": name } })).await.expect(201);
    }
    crm.app.service.pipeline.directory.forget();
    let third = crm.app.post("/contacts", &key, json!({ "data": { "$name": "C" } })).await.expect(201);
    crm.app.service.pipeline.directory.forget();
    let cut = crm.app.get("/contacts", &key).await;
    cut.expect_error(403, "workspace_blocked");
    assert_eq!(cut.body["error"]["message"], "The workspace has more contacts than the 2 of its plan.");
    // Other workspaces are unaffected, as is one that moves to a larger plan.
    crm.app.get("/contacts", &crm.key).await.expect(200);
    crm.app.sql(format!("UPDATE items SET trashed_at = created_at WHERE id = {}", third["id"])).await;
    crm.app.get("/contacts", &key).await.expect(200);
}
