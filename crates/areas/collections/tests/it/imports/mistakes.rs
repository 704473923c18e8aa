//! Dates in several forms, invalid values, missing choices, and requests that wait for the result.

use super::{Shop, counts};
use serde_json::{Value, json};
use testkit::Kind;

impl Shop {
    /// Runs an import whose request waits for its end, and returns the response.
    async fn import_now(&self, mut body: Value) -> Value {
        body["wait_seconds"] = json!(25);
        let path = self.path("/items/import");
        self.app.while_jobs_run(self.app.post(&path, &self.key, body)).await.expect(201)
    }
}

async fn calendar(kind: Kind) -> Shop {
    Shop::with(kind, json!([{ "key": "name", "type": "text" }, { "key": "day", "type": "date" }, { "key": "end", "type": "date" }])).await
}

#[testkit::both]
async fn dates_are_read_as_their_column_is_written(kind: Kind) {
    // The date that decides the order is far down in the file.
    let ambiguous = "a,03/04/2024,\n".repeat(1_200);
    for (settings, rows, days, format, warnings) in [
        (json!({}), "a,13/02/2024,\nb,3/4/2024,\n".to_owned(), ["2024-02-13", "2024-04-03"], "dmy", 0),
        (json!({}), "a,02/13/2024,\nb,3/4/2024,\n".to_owned(), ["2024-02-13", "2024-03-04"], "mdy", 0),
        (json!({}), "a,3/4/2024,13/04/2024\nb,3-4-24,\n".to_owned(), ["2024-04-03", "2024-04-03"], "dmy", 0),
        (json!({}), "a,3/4/2024,04/13/2024\nb,3-4-24,\n".to_owned(), ["2024-03-04", "2024-03-04"], "mdy", 0),
        (json!({}), "a,3/4/2024,\nb,2024-02-13,\n".to_owned(), ["2024-04-03", "2024-02-13"], "dmy", 1),
        (
            json!({ "date_format": "mdy" }),
            "a,3/4/2024,\nb,2024/2/13,\n".to_owned(),
            ["2024-03-04", "2024-02-13"],
            "mdy",
            0,
        ),
        (
            json!({ "date_format": "ymd" }),
            "a,24.2.13,\nb,2024.2.3 0:00,\n".to_owned(),
            ["2024-02-13", "2024-02-03"],
            "ymd",
            0,
        ),
        (json!({}), format!("{ambiguous}b,02/13/2024,\n"), ["2024-03-04", "2024-03-04"], "mdy", 0),
    ] {
        let shop = calendar(kind).await;
        let mut body = settings.clone();
        body["content"] = json!(format!("name,day,end\n{rows}"));
        let done = shop.import_now(body).await;
        assert_eq!(done["status"], "completed", "{done}");
        let items = shop.items().await;
        assert_eq!([&items[0]["day"], &items[1]["day"]], days, "{settings} {rows}");
        assert_eq!(done["source"]["columns"][1]["date_format"], format, "{done}");
        let told: Vec<&Value> =
            done["source"]["warnings"].as_array().unwrap().iter().map(|warning| &warning["code"]).collect();
        assert_eq!(told, vec!["ambiguous_dates"; warnings], "{done}");
    }
    let shop = calendar(kind).await;
    let done = shop
        .import_now(json!({ "content": "name,since\na,13/02/2024\nb,1/2/2024\n", "create_fields": true }))
        .await;
    assert_eq!(done["source"]["columns"][1]["creates"]["type"], "date", "{done}");
    assert_eq!(shop.items().await[1]["since"], "2024-02-01");
}

#[testkit::both]
async fn values_that_do_not_fit_are_skipped(kind: Kind) {
    let fields = json!([
        { "key": "name", "type": "text", "required": true }, { "key": "sku", "type": "text", "unique": true },
        { "key": "price", "type": "number", "options": { "min": 0 } }, { "key": "day", "type": "date" },
        { "key": "colour", "type": "select", "options": { "choices": [{ "label": "Red" }] } },
        { "key": "like", "type": "relation", "options": { "target_collection_id": 1 } },
    ]);
    let shop = Shop::with(kind, fields).await;
    let text = "name,sku,price,day,colour,like\n\
        Chair,c1,-5,soon,blue,999\n\
        Table,c1,7,,red,\n\
        ,c3,x,,,\n\
        Lamp,c4,1,2024-02-13,red,\n";
    let rejected = shop.import_now(json!({ "content": text, "dry_run": true })).await;
    assert_eq!(rejected["counts"], counts(2, 0, 0, 0, 2), "{rejected}");
    let of_row = |errors: &Value, row: i64| -> Vec<String> {
        let of_row = errors.as_array().unwrap().iter().filter(|error| error["row"] == row);
        of_row.map(|error| error["column"].as_str().unwrap_or("-").to_owned()).collect()
    };
    assert_eq!(of_row(&rejected["errors"], 1), ["price", "day", "colour"]);
    assert_eq!(of_row(&rejected["errors"], 3), ["name", "price"]);
    let body =
        json!({ "content": text, "on_invalid": "skip_value", "match_on": ["sku"], "on_match": "error" });
    let done = shop.import_now(body).await;
    assert_eq!(done["counts"], counts(2, 0, 0, 0, 2), "{done}");
    assert_eq!(
        (&done["skipped_value_count"], of_row(&done["skipped_values"], 1).len()),
        (&json!(4), 4),
        "{done}"
    );
    assert_eq!(done["skipped_values"][3]["value"], "999");
    assert_eq!(of_row(&done["errors"], 3), ["name", "price"], "a name is needed: {done}");
    assert_eq!(of_row(&done["errors"], 2), ["-"]);
    let file = shop.app.get(&format!("/files/{}", done["error_file"]["id"]), &shop.key).await.expect(200);
    assert!(file["name"].as_str().unwrap().ends_with("-errors.csv"));
    let chair = shop.items().await.into_iter().find(|item| item["sku"] == "c1").unwrap();
    assert_eq!(chair, json!({ "name": "Chair", "sku": "c1" }));
    let listed = shop.app.get(&shop.path("/imports"), &shop.key).await.expect(200);
    let one = listed.as_array().unwrap().iter().find(|one| one["id"] == done["id"]).unwrap();
    assert_eq!((&one["skipped_value_count"], one.get("skipped_values")), (&json!(4), None));
    let emitted = crate::events(&shop.app).await;
    let ended = emitted.iter().find(|(_, data)| data["import"]["id"] == done["id"]).unwrap();
    assert_eq!(ended.0, "import.completed");
    assert_eq!(ended.1["import"]["counts"], done["counts"]);
}

#[testkit::both]
async fn options_are_created_for_values_that_name_none(kind: Kind) {
    let fields = json!([
        { "key": "name", "type": "text" }, { "key": "colour", "type": "select", "options": { "choices": [{ "label": "Red" }] } },
        { "key": "kinds", "type": "multi_select", "options": { "choices": [] } },
    ]);
    let shop = Shop::with(kind, fields).await;
    let text = "name,colour,kinds\na,red,\"x, y\"\nb,Sky blue,y\nc,sky BLUE,\n";
    let plain = shop.import_now(json!({ "content": text })).await;
    assert_eq!(plain["counts"], counts(0, 0, 0, 0, 3), "{plain}");
    let dry = shop.import_now(json!({ "content": text, "create_options": true, "dry_run": true })).await;
    assert_eq!((&dry["status"], &dry["counts"]), (&json!("completed"), &counts(3, 0, 0, 0, 0)), "{dry}");
    let collection = shop.app.get(&shop.path(""), &shop.key).await.expect(200);
    assert_eq!(collection["fields"][1]["options"]["choices"].as_array().unwrap().len(), 1);
    let done = shop.import_now(json!({ "content": text, "create_options": true })).await;
    assert_eq!(done["counts"], counts(3, 0, 0, 0, 0), "{done}");
    let collection = shop.app.get(&shop.path(""), &shop.key).await.expect(200);
    let labels: Vec<&Value> = collection["fields"][1]["options"]["choices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|choice| &choice["label"])
        .collect();
    assert_eq!(labels, ["Red", "Sky blue"]);
    let items = shop.items().await;
    assert_eq!((&items[1]["colour"], items[0]["kinds"].as_array().unwrap().len()), (&items[2]["colour"], 2));
}

#[testkit::both]
async fn a_request_waits_for_the_result(kind: Kind) {
    let shop = Shop::open(kind).await;
    let body = json!({ "content": "name,sku,price\nA,a1,-1\nB,b1,2\n", "wait_seconds": 25 });
    let path = shop.path("/items/import");
    let ask = || shop.app.ask("POST", &path).key(&shop.key).header("idempotency-key", "import-1").json(&body);
    let done = shop.app.while_jobs_run(ask().send()).await.expect(201);
    assert_eq!(
        (&done["status"], &done["errors"][0]["row"]),
        (&json!("completed_with_errors"), &json!(1)),
        "{done}"
    );
    assert_eq!(done["counts"], counts(1, 0, 0, 0, 1));
    // A resend gets the same response.
    assert_eq!(ask().send().await.expect(201), done);
    assert_eq!(shop.items().await.len(), 1);
    // With no time to wait, nothing has run the import yet.
    let body = json!({ "content": "name\nC\n", "wait_seconds": 0 });
    assert_eq!(shop.app.post(&path, &shop.key, body).await.expect(201)["status"], "queued");
}
