//! Archiving and deleting collections, and the effects on their contents.

use super::{items, make};
use crate::{event_types, full, number};
use serde_json::json;
use testkit::{Kind, TestApp};

#[testkit::both]
async fn an_archived_collection_is_read_only(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let path = make(&app, &key, json!({ "name": "C" })).await;
    let rows = items(&app, &key, &path, &[json!({ "name": "x" })]).await;
    for _ in 0..2 {
        let archived = app.post(&format!("{path}/archive"), &key, json!({})).await.expect(200);
        assert_eq!((&archived["status"], &archived["version"]), (&json!("archived"), &json!(2)));
    }
    app.get(&rows[0], &key).await.expect(200);
    app.get(&format!("{path}/fields"), &key).await.expect(200);
    for (method, address, body) in [
        ("PATCH", path.clone(), json!({ "name": "X" })),
        ("POST", format!("{path}/fields"), json!({ "label": "X", "type": "text" })),
        ("POST", format!("{path}/items"), json!({ "data": {} })),
        ("PATCH", rows[0].clone(), json!({ "data": { "name": "y" } })),
    ] {
        let refused = app.ask(method, &address).key(&key).json(&body).send().await;
        refused.expect_error(409, "invalid_state");
        assert_eq!(refused.body["error"]["details"]["state"], "archived");
    }
    let back = app.post(&format!("{path}/unarchive"), &key, json!({})).await.expect(200);
    assert_eq!(back["status"], "active");
    app.patch(&rows[0], &key, json!({ "data": { "name": "y" } })).await.expect(200);
    let emitted = event_types(&app).await;
    assert_eq!(
        emitted,
        [
            "collection.created",
            "item.created",
            "collection.archived",
            "collection.unarchived",
            "item.updated"
        ]
    );
}

#[testkit::both]
async fn a_deleted_collection_is_purged_after_thirty_days(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let body = json!({ "name": "C", "fields": [
        { "label": "Name", "type": "text", "unique": true }, { "label": "N", "type": "integer" },
    ], "settings": { "unique_keys": [["name", "n"]] } });
    let path = make(&app, &key, body.clone()).await;
    let rows: Vec<_> = (0..450).map(|n| json!({ "name": format!("row {n}"), "n": n })).collect();
    let paths = items(&app, &key, &path, &rows).await;
    app.delete(&paths[3], &key).await.expect(200);
    let gone = app.delete(&path, &key).await.expect(200);
    assert_eq!(gone["object"], "collection");
    for address in [&path, &paths[0], &format!("{path}/fields")] {
        app.get(address, &key).await.expect_error(404, "not_found");
    }
    // The name is free at once.
    make(&app, &key, body).await;
    app.service.jobs.run_due().await.unwrap();
    assert_eq!(number(&app, "SELECT COUNT(*) AS n FROM items").await, 450);
    app.data.clock.advance(chrono::Duration::days(30));
    app.service.jobs.run_due().await.unwrap();
    for table in [
        "items",
        "item_keys",
        "item_unique",
        "item_search",
        "item_comments",
        "item_links",
        "collection_rewrites",
    ] {
        assert_eq!(number(&app, &format!("SELECT COUNT(*) AS n FROM {table}")).await, 0, "{table}");
    }
    assert_eq!(number(&app, "SELECT COUNT(*) AS n FROM collections").await, 1);
    assert_eq!(number(&app, "SELECT COUNT(*) AS n FROM collection_fields").await, 2);
    assert_eq!(number(&app, "SELECT COUNT(*) AS n FROM item_activity").await, 1);
    app.service.jobs.run_due().await.unwrap();
}

#[testkit::both]
async fn a_collection_that_others_point_to_stays(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let target = app.post("/collections", &key, json!({ "name": "Target" })).await.expect(201);
    let body = json!({ "name": "C", "fields": [
        { "label": "Name", "type": "text" },
        { "label": "Refs", "type": "relation", "options": { "target_collection_id": target["id"] } },
    ] });
    let made = app.post("/collections", &key, body).await.expect(201);
    let refused = app.delete(&format!("/collections/{}", target["id"]), &key).await;
    refused.expect_error(409, "resource_in_use");
    assert_eq!(refused.body["error"]["details"]["used_by"][0]["id"], made["fields"][1]["id"]);
    app.delete(&format!("/collections/{}/fields/{}", made["id"], made["fields"][1]["id"]), &key)
        .await
        .expect(200);
    app.delete(&format!("/collections/{}", target["id"]), &key).await.expect(200);
}
