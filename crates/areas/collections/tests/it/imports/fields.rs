//! Imports that create the missing fields of their columns.

use super::{Shop, counts};
use crate::{event_types, events, number};
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn columns_without_a_field_get_one(kind: Kind) {
    let shop = Shop::with(
        kind,
        json!([
            { "key": "name", "type": "text" }, { "key": "made", "type": "created_at" },
        ]),
    )
    .await;
    let text = "Name;Made;Unit price;Größe;In stock;Since;Seen at;Mail;Page;Empty;\u{7}id;Secret;Note\n\
        A;x;1.5;XL;yes;2026-01-02;2026-01-02T03:04:05Z;a@shop.example;https://shop.example;;9;s;short\n\
        B;y;2;M;no;2026-01-03;2026-01-02T03:04:06Z;b@shop.example;https://shop.example/b;;8;s;LONG\n";
    let text = text.replace("LONG", &"x".repeat(1_500));
    let import_of = json!({ "content": text, "create_fields": true, "mapping": { "Secret": null } });
    let rehearsed = shop
        .import(json!({
            "content": text, "create_fields": true, "mapping": { "Secret": null }, "dry_run": true,
        }))
        .await;
    assert_eq!((&rehearsed["status"], &rehearsed["counts"]), (&json!("completed"), &counts(2, 0, 0, 0, 0)));
    let made = |import: &Value| -> Vec<Value> {
        let columns = import["source"]["columns"].as_array().unwrap();
        columns.iter().map(|column| column["creates"].clone()).collect()
    };
    let field =
        |key: &str, label: &str, kind: &str| json!({ "field_key": key, "label": label, "type": kind });
    let expected = [
        Value::Null,
        Value::Null,
        field("unit_price", "Unit price", "number"),
        field("gro_e", "Größe", "text"),
        field("in_stock", "In stock", "boolean"),
        field("since", "Since", "date"),
        field("seen_at", "Seen at", "datetime"),
        field("mail", "Mail", "email"),
        field("page", "Page", "url"),
        field("empty", "Empty", "text"),
        field("id_2", "id", "integer"),
        Value::Null,
        field("note", "Note", "long_text"),
    ];
    assert_eq!(made(&rehearsed), expected);
    assert_eq!(
        (&rehearsed["source"]["columns"][1]["field_key"], &rehearsed["source"]["columns"][2]["field_key"]),
        (&Value::Null, &json!("unit_price"))
    );
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM collection_fields").await, 2, "only told");
    assert_eq!(event_types(&shop.app).await, ["import.completed"]);

    let done = shop.import(import_of.clone()).await;
    assert_eq!((&done["counts"], made(&done)), (&counts(2, 0, 0, 0, 0), expected.to_vec()));
    let fields = shop.app.get(&shop.path("/fields"), &shop.key).await.expect(200);
    let shown: Vec<Value> = fields
        .as_array()
        .unwrap()
        .iter()
        .skip(2)
        .map(|found| {
            field(
                found["field_key"].as_str().unwrap(),
                found["label"].as_str().unwrap(),
                found["type"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(shown, expected.iter().filter(|made| !made.is_null()).cloned().collect::<Vec<_>>());
    let item = &shop.items().await[0];
    for (key, value) in [
        ("unit_price", json!(1.5)),
        ("gro_e", json!("XL")),
        ("in_stock", json!(true)),
        ("since", json!("2026-01-02")),
        ("seen_at", json!("2026-01-02T03:04:05.000Z")),
        ("mail", json!("a@shop.example")),
        ("id_2", json!(9)),
    ] {
        assert_eq!(item[key], value, "{key}");
    }
    let emitted = events(&shop.app).await;
    assert_eq!(emitted.iter().filter(|(kind, _)| kind == "field.created").count(), 10);
    let activity = shop.app.get(&shop.path("/activity"), &shop.key).await.expect(200);
    let changes = activity.as_array().unwrap().iter().filter(|entry| entry["action"] == "schema_changed");
    let actors: Vec<&Value> = changes.map(|entry| &entry["actor"]["id"]).collect();
    assert_eq!(actors, vec![&done["id"]; 10]);

    // The next file of this kind matches the new fields.
    let again = shop.import(import_of).await;
    assert_eq!((&again["counts"], made(&again)), (&counts(2, 0, 0, 0, 0), vec![Value::Null; 13]));
}

#[testkit::both]
async fn unknown_keys_of_json_lines_get_a_field(kind: Kind) {
    let shop = Shop::with(kind, json!([{ "key": "name", "type": "text" }])).await;
    let mut lines = vec![json!({ "name": "A", "tags": ["x", "y"], "count": 3 }).to_string()];
    lines.extend((0..1_200).map(|number| json!({ "name": "B", "count": number }).to_string()));
    // A key that first occurs far into the file counts as well.
    lines.push(json!({ "name": "C", "count": 1.5, "late": true, "tags": "none" }).to_string());
    let done = shop.import(json!({ "content": lines.join("\n"), "create_fields": true })).await;
    assert_eq!((&done["status"], &done["counts"]["created"]), (&json!("completed"), &json!(1_202)));
    let fields = shop.app.get(&shop.path("/fields"), &shop.key).await.expect(200);
    let types: std::collections::BTreeMap<&str, &str> = fields
        .as_array()
        .unwrap()
        .iter()
        .map(|field| (field["field_key"].as_str().unwrap(), field["type"].as_str().unwrap()))
        .collect();
    let expected = [("count", "number"), ("late", "boolean"), ("name", "text"), ("tags", "json")];
    assert_eq!(types, expected.into());
    let items = shop.items().await;
    assert_eq!(items[0], json!({ "name": "A", "tags": ["x", "y"], "count": 3 }));
    assert_eq!(items[1_201], json!({ "name": "C", "tags": "none", "count": 1.5, "late": true }));
}

#[testkit::both]
async fn fields_are_made_once_and_all_or_none(kind: Kind) {
    let shop = Shop::with(kind, json!([{ "key": "name", "type": "text" }])).await;
    let path = shop.path("/items/import");
    // The scope for creating fields is required, also for a dry run.
    let key = shop.app.key(shop.key.workspace, model::Env::Live, &["items:write"]).await;
    let import_of = json!({ "content": "name,code\nA,x\n", "create_fields": true });
    let refused = shop.app.post(&path, &key, import_of.clone()).await;
    assert_eq!(refused.expect_error(403, "missing_scope").as_deref(), Some("collections:write"));
    shop.app.post(&path, &key, json!({ "content": "name\nA\n" })).await.expect(201);
    shop.app.service.jobs.run_due().await.unwrap();

    // Rows can be matched by a field that the import itself creates, both the first time and later.
    let twice =
        json!({ "content": "name,code\nA,x\nB,y\nC,x\n", "create_fields": true, "match_on": ["code"] });
    let mut dry = twice.clone();
    dry["dry_run"] = true.into();
    assert_eq!(shop.import(dry).await["counts"], counts(2, 1, 0, 0, 0));
    assert_eq!(shop.import(twice.clone()).await["counts"], counts(2, 1, 0, 0, 0));
    assert_eq!(shop.import(twice).await["counts"], counts(0, 2, 1, 0, 0));
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM events WHERE kind = 'field.created'").await, 1);
    let missing = json!({ "content": "name\nA\n", "create_fields": true, "match_on": ["cod"] });
    assert_eq!(shop.import(missing).await["error"]["code"], "match_column_missing");
    let list = json!({ "content": "{\"l\":[1]}", "create_fields": true, "match_on": ["l"] });
    assert_eq!(shop.import(list).await["error"]["code"], "not_matchable");

    // A job that was killed resumes before or after the creation of fields.
    let started = shop
        .app
        .post(&path, &shop.key, json!({ "content": "a,b\n1,2\n", "create_fields": true }))
        .await
        .expect(201);
    shop.app.service.jobs.run_due().await.unwrap();
    let id = started["id"].as_str().unwrap();
    shop.app.sql("DELETE FROM items WHERE data LIKE '%\"a\":1%'").await;
    shop.app.sql(format!(
        "UPDATE item_imports SET status = 'running', rows_done = 0, created_count = 0, bytes_done = 4 WHERE id = '{id}'"
    )).await;
    let payload = json!({ "import_id": id });
    let asked = shop.app.db().write(move |tx| {
        let now = tx.now();
        tx.enqueue(None, "data.import", None, &payload, now)
    });
    asked.await.unwrap();
    shop.app.service.jobs.run_due().await.unwrap();
    let done = shop.read(&started).await;
    assert_eq!((&done["status"], &done["counts"]["created"]), (&json!("completed"), &json!(1)));
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM collection_fields").await, 4);

    let many: Vec<String> = (0..497).map(|number| format!("c{number}")).collect();
    for dry_run in [true, false] {
        let import_of =
            json!({ "content": format!("{}\n", many.join(",")), "create_fields": true, "dry_run": dry_run });
        let full = shop.import(import_of).await;
        assert_eq!((&full["status"], &full["error"]["code"]), (&json!("failed"), &json!("limit_reached")));
    }
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM collection_fields").await, 4);
}
