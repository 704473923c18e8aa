//! Sets of other kinds of records are stored like collections, but callers cannot address them.

use super::make;
use crate::full;
use model::Code;
use records::sets;
use records::shape::{Kind as RecordKind, Shapes, push_json};
use serde_json::json;
use testkit::Kind;
use testkit::TestApp;

/// A kind as another group could declare it.
static NOTES: RecordKind = RecordKind {
    number: 30,
    noun: "note",
    set_noun: "notebook",
    external_key: "external_key",
    aliases: None,
    referenced_by: None,
    fields: Vec::new,
    title: None,
    param: |key| format!("data.{key}"),
    indexes: &[],
    print: |shown, out| push_json(out, shown.data),
    complete: |_, _, _, _| Ok(()),
    match_keys: |_| Vec::new(),
    publish: |_, _, _| Ok(()),
};

#[testkit::both]
async fn sets_of_other_records_are_no_collections(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let path = make(&app, &key, json!({ "name": "Notebook" })).await;
    let item = app.post(&format!("{path}/items"), &key, json!({ "data": { "name": "x" } })).await.expect(201);
    let workspace = key.workspace;
    let set = app.db().write(move |tx| sets::ensure(tx, &Shapes::new([&NOTES]), workspace, &NOTES));
    let set = set.await.unwrap();
    let listed = app.get("/collections", &key).await.expect(200);
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    for rest in [
        "",
        "/items",
        "/items/count",
        "/items/1",
        "/fields",
        "/views",
        "/indexes",
        "/imports",
        "/stats",
        "/activity",
    ] {
        let refused = app.get(&format!("/collections/{set}{rest}"), &key).await;
        assert_eq!(refused.status, 404, "{rest}: {}", refused.body);
    }
    let refused = app.post(&format!("/collections/{set}/items"), &key, json!({ "data": {} })).await;
    refused.expect_error(404, Code::NotFound.as_str());
    let target = json!({ "label": "Note", "type": "relation", "options": { "target_collection_id": set } });
    let refused = app.post(&format!("{path}/fields"), &key, target).await;
    assert_eq!(
        refused.expect_error(400, "validation_error").as_deref(),
        Some("options.target_collection_id")
    );
    let moving =
        app.post(&format!("{path}/items/{}/move", item["id"]), &key, json!({ "collection_id": set })).await;
    assert_eq!(moving.expect_error(404, "not_found").as_deref(), Some("collection_id"));
    // A collection can have the name of a set, and the set is not counted.
    make(&app, &key, json!({ "name": "KIND 30" })).await;
}
