//! A file that is attached while it is deleted. One of the two requests must fail.

use crate::full;
use diesel::prelude::*;
use futures::future::join_all;
use model::{CollectionId, FileId, ItemId};
use records::schema::item_files;
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::{Answer, Key, Kind, TestApp};

async fn file(app: &TestApp, key: &Key, name: &str) -> Value {
    // The file is a list of recipients as well, for the case of broadcasts.
    let content = format!("external_id\n{name}\n");
    app.ask("POST", "/files").key(key).form(&[], (name, content.as_bytes())).send().await.expect(201)["id"]
        .clone()
}

async fn collection(app: &TestApp, key: &Key) -> Value {
    let fields = json!([{ "field_key": "doc", "type": "file" }]);
    app.post("/collections", key, json!({ "name": "Docs", "fields": fields })).await.expect(201)["id"].clone()
}

async fn item(app: &TestApp, key: &Key, collection: &Value) -> Value {
    let path = format!("/collections/{collection}/items");
    app.post(&path, key, json!({ "data": {} })).await.expect(201)["id"].clone()
}

/// Makes `object` refer to a file in one of the possible ways.
async fn refer(app: &TestApp, key: &Key, way: &str, object: &str, file: &Value) -> Answer {
    match way {
        "field" => app.patch(object, key, json!({ "data": { "doc": [file] } })).await,
        "link" => {
            app.post(&format!("{object}/links"), key, json!({ "to": { "type": "file", "id": file } })).await
        }
        "reply" => {
            let body = json!({ "shortcode": format!("r{file}"), "text": "Hi", "attachments": [file] });
            app.post("/quick-replies", key, body).await
        }
        "broadcast" => {
            let body = json!({ "name": format!("To {file}"), "audience": { "file_id": file } });
            app.post("/broadcasts", key, body).await
        }
        _ => app.post(&format!("{object}/files"), key, json!({ "file_id": file })).await,
    }
}

#[testkit::both]
async fn a_file_is_never_attached_and_deleted(kind: Kind) {
    const PAIRS: usize = 12;
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let docs = collection(&app, &key).await;
    for way in ["item", "field", "link", "task", "reply", "broadcast"] {
        let mut pairs = Vec::new();
        for number in 0..PAIRS {
            let object = match way {
                "task" => {
                    let path = format!("/workspaces/{}/tasks", key.workspace.0);
                    let task = app.post(&path, &key, json!({ "title": "x" })).await.expect(201);
                    format!("{path}/{}", task["id"])
                }
                "reply" | "broadcast" => String::new(),
                _ => format!("/collections/{docs}/items/{}", item(&app, &key, &docs).await),
            };
            pairs.push((object, file(&app, &key, &format!("{way} {number}.csv")).await));
        }
        let (app, key) = (&app, &key);
        let race = pairs.iter().map(|(object, file)| async move {
            let path = format!("/files/{file}");
            let (referred, deleted) =
                tokio::join!(refer(app, key, way, object, file), app.delete(&path, key));
            (file, referred, deleted)
        });
        for (file, referred, deleted) in join_all(race).await {
            match (referred.status < 300, deleted.status) {
                (true, 409) => drop(deleted.expect_error(409, "file_in_use")),
                (false, 200) => assert!([400, 404].contains(&referred.status), "{}", referred.text),
                _ => unreachable!("{way} {file}: {} {}", referred.text, deleted.text),
            }
            let trashed = app.get(&format!("/files/{file}"), key).await.expect(200)["trashed_at"].clone();
            assert_eq!(trashed.is_null(), referred.status < 300);
        }
    }
}

#[testkit::both]
async fn force_deletes_a_file_that_is_in_use(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let docs = collection(&app, &key).await;
    let object = format!("/collections/{docs}/items/{}", item(&app, &key, &docs).await);
    let file = file(&app, &key, "a.txt").await;
    refer(&app, &key, "item", &object, &file).await.expect(201);
    let refused = app.delete(&format!("/files/{file}"), &key).await;
    refused.expect_error(409, "file_in_use");
    app.delete(&format!("/files/{file}?force=true"), &key).await.expect(200);
    assert_eq!(refer(&app, &key, "item", &object, &file).await.status, 404);
}

#[derive(QueryableByName)]
struct Waiting {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    n: i64,
}

/// A deletion that found no reference waits for a concurrent transaction that creates one, and then sees the
/// reference.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgresql_makes_a_deletion_wait_for_a_reference() {
    let app = TestApp::new(testkit::Kind::Postgres).await;
    let key = full(&app).await;
    let docs = collection(&app, &key).await;
    let row = item(&app, &key, &docs).await;
    let id = file(&app, &key, "a.txt").await;
    let (file_id, item_id) = (FileId(id.as_i64().unwrap()), ItemId(row.as_i64().unwrap()));
    let (collection_id, workspace) = (CollectionId(docs.as_i64().unwrap()), key.workspace);
    let is_held = Arc::new(tokio::sync::Notify::new());
    let holding = is_held.clone();
    let attaching = app.db().write(move |tx| {
        assert_eq!(files::held(tx, workspace, &[file_id])?.len(), 1);
        holding.notify_one();
        // Hold this transaction open until the deletion waits for it.
        let waiting = "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while diesel::sql_query(waiting).get_result::<Waiting>(tx.connection())?.n == 0 {
            std::thread::yield_now();
        }
        let row = (
            item_files::item_id.eq(item_id),
            item_files::file_id.eq(file_id),
            item_files::workspace_id.eq(workspace),
            item_files::collection_id.eq(collection_id),
            item_files::created_by.eq("{\"type\":\"system\"}"),
            item_files::created_at.eq(tx.now()),
        );
        diesel::insert_into(item_files::table).values(row).execute(tx.connection())?;
        Ok(())
    });
    let deleting = async {
        is_held.notified().await;
        app.delete(&format!("/files/{id}"), &key).await
    };
    let (attached, deleted) = tokio::join!(attaching, deleting);
    attached.unwrap();
    deleted.expect_error(409, "file_in_use");
}
