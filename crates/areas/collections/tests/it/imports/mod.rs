//! Imports of CSV and JSON Lines.

mod fields;
mod matching;
mod mistakes;
mod spelling;

use crate::{event_types, events, full, number, seed};
use model::CollectionId;
use serde_json::{Value, json};
use testkit::{Key, Kind, TestApp};

struct Shop {
    app: TestApp,
    key: Key,
    collection: CollectionId,
}

impl Shop {
    /// Opens a workspace with a collection of products, with an indexed `sku`.
    async fn open(kind: Kind) -> Self {
        Self::with(
            kind,
            json!([
                { "key": "name", "type": "text" },
                { "key": "sku", "type": "text", "indexed": true },
                { "key": "price", "type": "number", "options": { "min": 0 } },
                { "key": "sold", "type": "boolean" },
                { "key": "tags", "type": "multi_select", "options": { "choices": [
                    { "id": 1, "key": "new", "label": "New" }, { "id": 2, "key": "sale", "label": "On sale" },
                ] } },
                { "key": "note", "type": "long_text" },
                { "key": "stock", "type": "integer", "default": 5 },
            ]),
        )
        .await
    }

    async fn with(kind: Kind, fields: Value) -> Self {
        let app = TestApp::new(kind).await;
        let key = full(&app).await;
        let collection = seed::collection(&app, &key, fields).await;
        Self { app, key, collection }
    }

    fn path(&self, rest: &str) -> String {
        format!("/collections/{}{rest}", self.collection)
    }

    /// Starts an import and runs it to its end.
    async fn import(&self, import_of: Value) -> Value {
        let started = self.app.post(&self.path("/items/import"), &self.key, import_of).await.expect(201);
        assert_eq!(started["status"], "queued");
        self.app.service.jobs.run_due().await.unwrap();
        let done = self.read(&started).await;
        let (counts, rows) = (&done["counts"], done["processed"]["rows"].as_i64().unwrap());
        let sum: i64 = counts.as_object().unwrap().values().map(|count| count.as_i64().unwrap()).sum();
        assert_eq!(sum, rows, "the counts add up: {done}");
        done
    }

    async fn read(&self, import: &Value) -> Value {
        let path = self.path(&format!("/imports/{}", import["id"].as_str().unwrap()));
        self.app.get(&path, &self.key).await.expect(200)
    }

    /// Returns the values of all items, oldest first.
    async fn items(&self) -> Vec<Value> {
        #[derive(diesel::QueryableByName)]
        struct Row {
            #[diesel(sql_type = diesel::sql_types::Text)]
            data: String,
        }
        let rows = self.app.db().read(|read| {
            let sql = "SELECT data FROM items WHERE trashed_at IS NULL ORDER BY id";
            Ok(diesel::RunQueryDsl::load::<Row>(diesel::sql_query(sql), read.connection())?)
        });
        rows.await.unwrap().iter().map(|row| serde_json::from_str(&row.data).unwrap()).collect()
    }
}

fn counts(created: i64, updated: i64, unchanged: i64, skipped: i64, failed: i64) -> Value {
    json!({ "created": created, "updated": updated, "unchanged": unchanged, "skipped": skipped, "failed": failed })
}

#[testkit::both]
async fn a_file_becomes_items(kind: Kind) {
    let shop = Shop::open(kind).await;
    let text = "Name;SKU;Price;Sold;Tags;Colour\r\n\
        \"Chair; \"\"big\"\"\r\nand red\";c1;12.50;yes;New, on sale;red\r\n\r\nTable;t1;80;no;;\r\n";
    let done = shop.import(json!({ "content": format!("\u{feff}{text}") })).await;
    assert_eq!((&done["status"], &done["counts"]), (&json!("completed"), &counts(2, 0, 0, 0, 0)));
    assert_eq!(done["total"], done["processed"]);
    let source = &done["source"];
    assert_eq!(
        (&source["format"], &source["encoding"], &source["delimiter"], &source["has_header"]),
        (&json!("csv"), &json!("UTF-8"), &json!(";"), &json!(true))
    );
    assert_eq!(
        source["columns"][2],
        json!({ "name": "Price", "field_key": "price", "looks_like": "number" })
    );
    assert_eq!(source["columns"][5]["field_key"], Value::Null);
    assert_eq!(
        shop.items().await,
        [
            json!({ "name": "Chair; \"big\"\r\nand red", "sku": "c1", "price": 12.5, "sold": true,
            "tags": ["new", "sale"], "stock": 5 }),
            json!({ "name": "Table", "sku": "t1", "price": 80, "sold": false, "stock": 5 }),
        ]
    );
    assert_eq!(event_types(&shop.app).await, ["import.completed"]);
    let emitted = events(&shop.app).await;
    assert_eq!(emitted[0].1["import"]["counts"], done["counts"]);
    shop.app.deliver().await;
    let event = &shop.app.get("/events?type=import.completed", &shop.key).await.expect(200)[0];
    let by = json!({ "type": "import", "id": done["id"] });
    assert_eq!((&event["request"], &event["caused_by"]["actor"]), (&Value::Null, &by));
    assert_eq!(
        number(&shop.app, "SELECT COUNT(*) AS n FROM item_activity WHERE action = 'imported'").await,
        1
    );
    assert_eq!(
        number(&shop.app, "SELECT COUNT(*) AS n FROM item_activity WHERE action = 'created'").await,
        2
    );
    let listed = shop.app.get(&shop.path("/imports"), &shop.key).await.expect(200);
    assert_eq!((&listed[0]["id"], listed[0].get("errors")), (&done["id"], None));
}

#[testkit::both]
async fn encodings_are_understood(kind: Kind) {
    let shop = Shop::open(kind).await;
    let text = "name,sku\nGröße,é1\n";
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let latin: Vec<u8> = text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect();
    for (bytes, encoding) in [(utf16, "UTF-16LE"), (latin, "windows-1252")] {
        let file = crate::files::bytes(&shop.app, shop.key.workspace, "a.csv", bytes).await;
        let done = shop.import(json!({ "file_id": file })).await;
        assert_eq!((&done["source"]["encoding"], &done["counts"]["created"]), (&json!(encoding), &json!(1)));
    }
    for item in shop.items().await {
        assert_eq!((&item["name"], &item["sku"]), (&json!("Größe"), &json!("é1")));
    }
}

#[testkit::both]
async fn json_lines_become_items(kind: Kind) {
    let shop = Shop::open(kind).await;
    let lines = [
        json!({ "name": "Chair", "price": 3, "tags": ["new"], "stock": null }).to_string(),
        String::new(),
        json!({ "object": "item", "id": 9, "external_key": "k", "data": { "name": "Table" } }).to_string(),
        "{\"name\": ".to_owned(),
        json!({ "name": "a\u{0}b" }).to_string(),
    ];
    let done = shop.import(json!({ "content": lines.join("\r\n") })).await;
    assert_eq!((&done["source"]["format"], &done["counts"]), (&json!("jsonl"), &counts(2, 0, 0, 0, 2)));
    assert_eq!(done["status"], "completed_with_errors");
    assert_eq!(
        shop.items().await,
        [json!({ "name": "Chair", "price": 3, "tags": ["new"] }), json!({ "name": "Table", "stock": 5 }),]
    );
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM items WHERE external_key = 'k'").await, 1);
    let codes: Vec<&Value> = done["errors"].as_array().unwrap().iter().map(|error| &error["code"]).collect();
    assert_eq!(codes, ["invalid_json", "invalid_character"]);
}

#[testkit::both]
async fn numbers_are_imported_with_all_digits_or_not_at_all(kind: Kind) {
    let shop = Shop::with(
        kind,
        json!([
            { "key": "sku", "type": "text" },
            { "key": "price", "type": "number", "options": { "precision": 2 } },
            { "key": "size", "type": "number" },
            { "key": "extra", "type": "json" },
        ]),
    )
    .await;
    let csv =
        "sku,price,size\na,123.456,\nb,,0.12345678901234567890\nc,,9007199254740993\nd,,1e400\ne,12.50,0.1\n";
    let done = shop.import(json!({ "content": csv })).await;
    let emitted = |done: &Value| -> Vec<Value> {
        done["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|error| json!([error["row"], error["column"], error["code"], error["value"]]))
            .collect()
    };
    assert_eq!(
        emitted(&done),
        [
            json!([1, "price", "too_precise", "123.456"]),
            json!([2, "size", "too_precise", "0.12345678901234567890"]),
            json!([3, "size", "too_precise", "9007199254740993"]),
            json!([4, "size", "out_of_range", "1e400"]),
        ]
    );
    let lines = [
        r#"{"sku":"f","size":0.12345678901234567890}"#,
        r#"{"sku":"g","size":1e400}"#,
        r#"{"sku":"h","price":1.001}"#,
        r#"{"sku":"i","extra":{"a":[0.12345678901234567890]}}"#,
        r#"{"object":"item","id":9,"data":{"sku":"j","size":9007199254740993.0}}"#,
        r#"{"sku":"k","size":0.3}"#,
    ];
    let done = shop.import(json!({ "content": lines.join("\n") })).await;
    assert_eq!(
        emitted(&done),
        [
            json!([1, "size", "too_precise", "0.12345678901234567890"]),
            json!([2, "size", "out_of_range", "1e400"]),
            json!([3, "price", "too_precise", "1.001"]),
            json!([4, "extra", "too_precise", r#"{"a":[0.12345678901234567890]}"#]),
            json!([5, "size", "too_precise", "9007199254740993.0"]),
        ]
    );
    let url = done["error_file"]["signed_url"].as_str().unwrap();
    let file = shop.app.ask_beside("GET", &url["https://svc.example".len()..]).send().await.text;
    assert!(file.contains("0.12345678901234567890") && file.contains("9007199254740993.0"), "{file}");
    assert_eq!(
        shop.items().await,
        [json!({ "sku": "e", "price": 12.5, "size": 0.1 }), json!({ "sku": "k", "size": 0.3 }),]
    );
}

#[testkit::both]
async fn rejected_rows_are_reported(kind: Kind) {
    let shop = Shop::open(kind).await;
    let long = "x".repeat(1_000_000);
    let text = format!(
        "name,sku,price,tags,note\nA,1,5,,\nB,2,many,blue,\nC,3\nD,4,5,,,6\nE,5,-1,,\nF,6,1,,{long}\n'=G,7,1,,\n"
    );
    let done = shop.import(json!({ "content": text })).await;
    assert_eq!(done["counts"], counts(3, 0, 0, 0, 4));
    let errors: Vec<Value> = done["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| json!([error["row"], error["column"], error["code"]]))
        .collect();
    assert_eq!(
        errors,
        [
            json!([2, "price", "invalid_type"]),
            json!([2, "tags", "unknown_option"]),
            json!([4, null, "wrong_column_count"]),
            json!([5, "price", "out_of_range"]),
            json!([6, "note", "too_long"]),
        ]
    );
    assert_eq!(done["errors"][0]["value"], "many");
    assert_eq!(done["errors"][4]["value"].as_str().unwrap().len(), 200);
    assert_eq!(shop.items().await[2]["name"], "=G", "the guard of a spreadsheet is taken off");

    // The error file can be corrected and imported.
    let url = done["error_file"]["signed_url"].as_str().unwrap();
    let file = shop.app.ask_beside("GET", &url["https://svc.example".len()..]).send().await.text;
    let lines: Vec<&str> = file.lines().collect();
    assert_eq!(lines[0], "name,sku,price,tags,note,_error");
    assert!(lines[1].starts_with("B,2,many,blue,,"), "{}", lines[1]);
    assert!(lines[2].starts_with("D,4,5,,,") && lines[2].ends_with(",6"), "{}", lines[2]);
    let mended =
        file.replace("many,blue", "8,new").replace("-1", "1").replace(&long, "short").replace(",6\n", "\n");
    let again = shop.import(json!({ "content": mended })).await;
    assert_eq!(again["counts"], counts(4, 0, 0, 0, 0), "{again}");
}

#[testkit::both]
async fn a_dry_run_reports_and_changes_nothing(kind: Kind) {
    let shop = Shop::with(
        kind,
        json!([
            { "key": "name", "type": "text" }, { "key": "sku", "type": "text", "unique": true },
        ]),
    )
    .await;
    shop.import(json!({ "content": "name,sku\nA,s0\n" })).await;
    // More rows than fit into one transaction, with equal rows far apart.
    let mut text = "name,sku\nA,s0\n".to_owned();
    for row in 1..=1_100 {
        text.push_str(&format!("n{row},s{row}\n"));
    }
    text.push_str("B,s1\nn2,s2\n");
    let before = event_types(&shop.app).await.len();
    let rehearsed = shop.import(json!({ "content": text, "dry_run": true })).await;
    assert_eq!(
        (&rehearsed["status"], &rehearsed["settings"]["dry_run"]),
        (&json!("completed_with_errors"), &json!(true))
    );
    assert_eq!(rehearsed["counts"], counts(1_100, 0, 0, 0, 3), "{}", rehearsed["errors"]);
    let matched =
        shop.import(json!({ "file_id": rehearsed["file_id"], "dry_run": true, "match_on": ["sku"] })).await;
    assert_eq!(matched["counts"], counts(1_100, 2, 1, 0, 0));
    assert_eq!(shop.items().await.len(), 1);
    assert_eq!(event_types(&shop.app).await.len(), before + 2);
    let done = shop.import(json!({ "file_id": rehearsed["file_id"], "match_on": ["sku"] })).await;
    assert_eq!(done["counts"], counts(1_100, 1, 2, 0, 0), "only the real one knows that nothing changes");
    assert_eq!(shop.items().await.len(), 1_101);
}

#[testkit::both]
async fn an_import_ends_at_its_limit(kind: Kind) {
    let shop = Shop::open(kind).await;
    let text = "name,price\nA,1\nB,x\nC,2\nD,y\nE,3\n";
    let done = shop.import(json!({ "content": text, "on_error": { "abort_at": 2 } })).await;
    assert_eq!((&done["status"], &done["error"]["code"]), (&json!("failed"), &json!("too_many_errors")));
    assert_eq!(done["counts"], counts(2, 0, 0, 0, 2));
    assert_eq!(event_types(&shop.app).await, ["import.failed"]);
    assert_eq!(done["errors"].as_array().unwrap().len(), 2);
}

#[testkit::both]
async fn a_row_that_is_refused_half_written_leaves_nothing(kind: Kind) {
    let shop = Shop::with(
        kind,
        json!([
            { "key": "name", "type": "text" }, { "key": "sku", "type": "text", "unique": true },
        ]),
    )
    .await;
    let text = "name,sku,external_key\nA,1,a\nB,2,b\nC,1,c\nD,3,b\nE,4,e\n";
    let done = shop.import(json!({ "content": text })).await;
    assert_eq!(done["counts"], counts(3, 0, 0, 0, 2));
    let emitted: Vec<Value> = done["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| json!([error["row"], error["column"], error["code"]]))
        .collect();
    assert_eq!(
        emitted,
        [json!([3, "sku", "duplicate_value"]), json!([4, "external_key", "duplicate_value"])]
    );
    let names: Vec<Value> = shop.items().await.into_iter().map(|item| item["name"].clone()).collect();
    assert_eq!(names, ["A", "B", "E"]);
    for (table, rows) in [("item_unique", 3), ("item_activity WHERE action = 'created'", 3)] {
        assert_eq!(number(&shop.app, &format!("SELECT COUNT(*) AS n FROM {table}")).await, rows, "{table}");
    }
}

#[testkit::both]
async fn files_that_cannot_be_imported(kind: Kind) {
    let shop = Shop::open(kind).await;
    for (import_of, code) in [
        (json!({ "content": " \n " }), "empty_file"),
        (json!({ "content": "a,b\n1,2\n" }), "no_column_mapped"),
        (json!({ "content": "name\nx\n", "mapping": { "title": "name" } }), "unknown_column"),
        (json!({ "content": "name\nx\n", "match_on": ["sku"] }), "match_column_missing"),
    ] {
        let done = shop.import(import_of).await;
        assert_eq!((&done["status"], &done["error"]["code"]), (&json!("failed"), &json!(code)), "{done}");
    }
    let path = shop.path("/items/import");
    for (import_of, param) in [
        (json!({}), "file_id"),
        (json!({ "content": "x", "file_id": 1 }), "content"),
        (json!({ "content": "x", "mapping": { "a": "nothing" } }), "mapping.a"),
        (json!({ "content": "x", "mapping": { "a": "name", "b": "name" } }), "mapping.b"),
        (json!({ "content": "x", "match_on": ["tags"] }), "match_on[0]"),
        (json!({ "content": "x", "match_on": ["sku", "sku"] }), "match_on[1]"),
        (json!({ "content": "x", "match_on": ["sku", "external_key"] }), "match_on[1]"),
        (json!({ "content": "x", "on_error": { "abort_at": 0 } }), "on_error.abort_at"),
        (json!({ "content": "x", "encoding": "klingon" }), "encoding"),
        (json!({ "content": "x", "delimiter": "é" }), "delimiter"),
        (json!({ "content": "x", "colour": "red" }), "colour"),
    ] {
        let answer = shop.app.post(&path, &shop.key, import_of.clone()).await;
        let found = answer.expect_error(400, "validation_error");
        // A file of another workspace is indistinguishable from a missing one.
        assert_eq!(found.as_deref(), Some(param), "{import_of}");
    }
    let missing = shop.app.post(&path, &shop.key, json!({ "file_id": 999_999 })).await;
    assert_eq!(missing.expect_error(404, "not_found").as_deref(), Some("file_id"));
    let stranger = full(&shop.app).await;
    let done = shop.import(json!({ "content": "name\nx\n" })).await;
    let path = shop.path(&format!("/imports/{}", done["id"].as_str().unwrap()));
    shop.app.get(&path, &stranger).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn a_deleted_collection_ends_its_imports(kind: Kind) {
    let shop = Shop::open(kind).await;
    let import_of = json!({ "content": "name\nx\n" });
    shop.app.post(&shop.path("/items/import"), &shop.key, import_of).await.expect(201);
    shop.app
        .sql(format!("UPDATE collections SET trashed_at = created_at WHERE id = {}", shop.collection))
        .await;
    shop.app.service.jobs.run_due().await.unwrap();
    assert_eq!(
        number(&shop.app, "SELECT COUNT(*) AS n FROM item_imports WHERE status = 'cancelled'").await,
        1
    );
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM items").await, 0);
}

#[testkit::both]
async fn an_import_is_started_once_for_one_key(kind: Kind) {
    let shop = Shop::open(kind).await;
    let path = shop.path("/items/import");
    let import_of = json!({ "content": "name\nx\n" });
    let send = async || {
        shop.app
            .ask("POST", &path)
            .key(&shop.key)
            .header("idempotency-key", "once")
            .json(&import_of)
            .send()
            .await
    };
    let (first, second) = (send().await.expect(201), send().await.expect(201));
    assert_eq!(first, second);
    shop.app.service.jobs.run_due().await.unwrap();
    assert_eq!(shop.items().await.len(), 1);
}
