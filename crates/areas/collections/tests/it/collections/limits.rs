//! The limits of a collection. The last object that fits is accepted, and one more is rejected with a reason.

use super::{field, items, make};
use crate::{full, number, seed};
use serde_json::{Value, json};
use testkit::{Answer, Kind, TestApp};

#[track_caller]
fn full_of(answer: &Answer, what: &str) {
    answer.expect_error(409, "limit_reached");
    let message = answer.body["error"]["message"].as_str().unwrap();
    assert!(message.contains(what), "{message}");
}

fn numbered(most: usize, one: impl Fn(usize) -> Value) -> Vec<Value> {
    (0..most).map(one).collect()
}

#[testkit::both]
async fn fields(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let of = |most| json!({ "name": "Wide", "fields": numbered(most, |n| json!({ "field_key": format!("f{n}"), "type": "text" })) });
    let refused = app.post("/collections", &key, of(501)).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("fields"));
    // As many fields as fit into one collection, without a request for each.
    let wide = numbered(500, |n| json!({ "key": format!("f{n}"), "type": "text" }));
    let path = format!("/collections/{}", seed::collection(&app, &key, json!(wide)).await);
    let data = numbered(500, |n| json!([format!("f{n}"), "x"]));
    let data: Value =
        data.into_iter().map(|pair| (pair[0].as_str().unwrap().to_owned(), pair[1].clone())).collect();
    let rows = items(&app, &key, &path, std::slice::from_ref(&data)).await;
    assert_eq!(app.get(&rows[0], &key).await.expect(200)["data"], data);
    let one_more = json!({ "label": "More", "type": "text" });
    full_of(&app.post(&format!("{path}/fields"), &key, one_more.clone()).await, "500 fields");
    // The limit also applies to the reverse field of a relation.
    let other = make(&app, &key, json!({ "name": "Other" })).await;
    let options = json!({ "target_collection_id": path.rsplit('/').next().unwrap().parse::<i64>().unwrap(), "reverse_field_key": "back" });
    let relation = json!({ "label": "To", "type": "relation", "options": options });
    full_of(&app.post(&format!("{other}/fields"), &key, relation).await, "500 fields");
    assert_eq!(app.get(&format!("{other}/fields"), &key).await.expect(200).as_array().unwrap().len(), 1);
    let last = field(&app, &key, &path, "f499").await["id"].to_string();
    app.delete(&format!("{path}/fields/{last}"), &key).await.expect(200);
    app.post(&format!("{path}/fields"), &key, one_more).await.expect(201);
}

#[testkit::both]
async fn choices(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let of = |most| json!({ "choices": numbered(most, |n| json!({ "label": format!("C{n}") })) });
    let fields = |most| json!([{ "label": "Name", "type": "text" }, { "label": "Kind", "type": "select", "options": of(most) }]);
    let refused = app.post("/collections", &key, json!({ "name": "C", "fields": fields(201) })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("fields[1].options.choices"));
    let path = make(&app, &key, json!({ "name": "C", "fields": fields(199) })).await;
    let address = format!("{path}/fields/{}", field(&app, &key, &path, "kind").await["id"]);
    // The first of two new choices still fits, but the second does not, so neither is created.
    let rows = |names: &[&str]| json!({ "typecast": true, "rows": names.iter().map(|name| json!({ "data": { "kind": name } })).collect::<Vec<_>>() });
    let bulk = format!("{path}/items/bulk-create");
    let refused = app.post(&bulk, &key, rows(&["New", "Newer"])).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("rows[1].data.kind"));
    assert_eq!(refused.body["error"]["errors"][0]["code"], "unknown_option");
    app.post(&bulk, &key, rows(&["New"])).await.expect(200);
    let choices = field(&app, &key, &path, "kind").await["options"]["choices"].clone();
    assert_eq!(
        (choices.as_array().unwrap().len(), &choices[199]["key"], &choices[199]["id"]),
        (200, &json!("new"), &json!(200))
    );
    full_of(&app.post(&format!("{address}/options"), &key, json!({ "label": "More" })).await, "200 choices");
    let refused = app.patch(&address, &key, json!({ "options": of(201) })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("options.choices"));
    app.delete(&format!("{address}/options/1"), &key).await.expect(200);
    app.post(&format!("{address}/options"), &key, json!({ "label": "More" })).await.expect(201);
}

#[testkit::both]
async fn indexes(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let fields = numbered(21, |n| json!({ "field_key": format!("f{n}"), "type": "number" }));
    let path = make(&app, &key, json!({ "name": "C", "fields": fields })).await;
    let on = |name: String, unique: bool| json!({ "fields": [{ "field": name }], "unique": unique });
    let indexes = format!("{path}/indexes");
    // Indexes of all origins count. Two of them are on one field here.
    let first = app.post(&indexes, &key, on("f0".to_owned(), true)).await.expect(201);
    for n in 0..18 {
        app.post(&indexes, &key, on(format!("f{n}"), false)).await.expect(201);
    }
    let address = format!("{path}/fields/{}", field(&app, &key, &path, "f18").await["id"]);
    app.patch(&address, &key, json!({ "unique": true })).await.expect(200);
    let view = json!({ "name": "V", "sort": ["-f1", "f2"], "materialized_sort": true });
    let unique = json!({ "label": "Code", "type": "text", "unique": true });
    let settings = json!({ "settings": { "unique_keys": [["f1", "f2"]] } });
    for refused in [
        app.post(&indexes, &key, on("f20".to_owned(), false)).await,
        app.post(&format!("{path}/views"), &key, view.clone()).await,
        app.post(&format!("{path}/fields"), &key, unique.clone()).await,
        app.patch(&path, &key, settings).await,
    ] {
        full_of(&refused, "20 indexes");
        assert_eq!(refused.body["error"]["details"]["limit"], 20);
    }
    let kept = "SELECT COUNT(*) AS n FROM collection_indexes WHERE status <> 'dropping'";
    assert_eq!(number(&app, kept).await, 20);
    assert_eq!(
        app.get(&format!("{path}/fields"), &key).await.expect(200).as_array().unwrap().len(),
        21,
        "nothing is left of a refused one"
    );
    // An existing field can still be changed, and deleting an index makes room.
    app.patch(&address, &key, json!({ "label": "Other" })).await.expect(200);
    app.delete(&format!("{indexes}/{}", first["id"]), &key).await.expect(200);
    app.post(&format!("{path}/views"), &key, view).await.expect(201);
    full_of(&app.post(&format!("{path}/fields"), &key, unique).await, "20 indexes");
}

#[testkit::both]
async fn views_and_groups(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let path = make(&app, &key, json!({ "name": "C" })).await;
    let view = app.post(&format!("{path}/views"), &key, json!({ "name": "V" })).await.expect(201);
    app.post("/collections/groups", &key, json!({ "name": "G" })).await.expect(201);
    // Insert the rest as copies of the first.
    for (table, columns) in [
        (
            "collection_views",
            "workspace_id, collection_id, kind, settings, is_default, locked, position, version, created_at, updated_at",
        ),
        ("collection_groups", "workspace_id, position, version, created_at, updated_at"),
    ] {
        app.sql(format!(
            "INSERT INTO {table} (name, name_key, {columns}) \
             WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 199) \
             SELECT 'x' || i, 'x' || i, {columns} FROM {table}, n"
        ))
        .await;
    }
    app.post(&format!("{path}/views"), &key, json!({ "name": "Last" })).await.expect(201);
    app.post("/collections/groups", &key, json!({ "name": "Last" })).await.expect(201);
    full_of(&app.post(&format!("{path}/views"), &key, json!({ "name": "More" })).await, "200 views");
    full_of(&app.post(&format!("{path}/views/{}/duplicate", view["id"]), &key, json!({})).await, "200 views");
    full_of(&app.post("/collections/groups", &key, json!({ "name": "More" })).await, "200 groups");
    // The limits apply to one collection or one workspace.
    let other = make(&app, &key, json!({ "name": "D" })).await;
    app.post(&format!("{other}/views"), &key, json!({ "name": "More" })).await.expect(201);
    let stranger = full(&app).await;
    app.post("/collections/groups", &stranger, json!({ "name": "More" })).await.expect(201);
}
