//! Files that are attached to items.

use super::Shop;
use crate::{events, full};
use diesel::prelude::*;
use files::schema::files as f;
use model::{FileId, WorkspaceId};
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

/// Inserts a file in the state that an upload leaves.
async fn file(app: &TestApp, workspace: WorkspaceId, name: &'static str) -> FileId {
    let made = app.db().write(move |tx| {
        let now = tx.now();
        Ok(diesel::insert_into(f::table)
            .values((
                (
                    f::workspace_id.eq(workspace),
                    f::name.eq(name),
                    f::mime_type.eq("text/plain"),
                    f::size.eq(3),
                ),
                (f::sha256.eq("00"), f::storage_key.eq(name), f::path_token.eq(name), f::status.eq("ready")),
                (f::uploaded_by.eq("{}"), f::version.eq(1), f::created_at.eq(now), f::updated_at.eq(now)),
            ))
            .returning(f::id)
            .get_result(tx.connection())?)
    });
    made.await.unwrap()
}

#[testkit::both]
async fn files_are_attached_listed_and_detached(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let item = shop.put_up(json!({ "name": "Ball" })).await;
    let path = shop.of(&item, "/files");
    let (first, second) = (file(app, key.workspace, "a.txt").await, file(app, key.workspace, "b.txt").await);
    let attached = app.post(&path, key, json!({ "file_id": first })).await.expect(201);
    assert_eq!(
        (&attached["id"], &attached["name"], &attached["size"]),
        (&json!(first), &json!("a.txt"), &json!(3))
    );
    app.post(&path, key, json!({ "file_id": second })).await.expect(201);
    let again = app.post(&path, key, json!({ "file_id": first })).await;
    assert_eq!(again.expect_error(409, "duplicate_value").as_deref(), Some("file_id"));
    let names =
        |list: Value| list.as_array().unwrap().iter().map(|file| file["name"].clone()).collect::<Vec<_>>();
    assert_eq!(names(app.get(&path, key).await.expect(200)), ["b.txt", "a.txt"]);
    let page = app.get(&format!("{path}?limit=1&paginate=true"), key).await;
    let next = format!("{path}?starting_after={}", page.body["next_cursor"].as_str().unwrap());
    assert_eq!(names(app.get(&next, key).await.expect(200)), ["a.txt"]);
    assert_eq!(shop.look(&item).await["version"], 1);

    let at = format!("{path}/{first}");
    app.post(&shop.of(&item, "/lock"), key, json!({})).await.expect(200);
    app.delete(&at, key).await.expect_error(409, "item_locked");
    app.post(&shop.of(&item, "/unlock"), key, json!({})).await.expect(200);
    let gone = app.delete(&at, key).await.expect(200);
    assert_eq!(gone, json!({ "id": first, "object": "item_file", "deleted": true }));
    app.delete(&at, key).await.expect_error(404, "not_found");
    let emitted: Vec<String> =
        events(app).await.into_iter().map(|(kind, _)| kind).filter(|kind| kind.contains("file")).collect();
    assert_eq!(emitted, ["item.file.attached", "item.file.attached", "item.file.detached"]);
}

#[testkit::both]
async fn only_files_of_the_workspace_that_are_there_are_attached(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let item = shop.put_up(json!({ "name": "Ball" })).await;
    let path = shop.of(&item, "/files");
    let stranger = full(app).await;
    let foreign = file(app, stranger.workspace, "foreign.txt").await;
    let own = file(app, key.workspace, "own.txt").await;
    let nowhere = app.post(&path, key, json!({ "file_id": foreign })).await;
    assert_eq!(nowhere.expect_error(404, "not_found").as_deref(), Some("file_id"));
    app.post(&path, &stranger, json!({ "file_id": foreign })).await.expect_error(404, "not_found");
    app.get(&path, &stranger).await.expect_error(404, "not_found");
    for (body, param) in [
        (json!({}), "file_id"),
        (json!({ "file_id": "x" }), "file_id"),
        (json!({ "file_id": own, "a": 1 }), "a"),
    ] {
        let refused = app.post(&path, key, body).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param));
    }
    app.post(&path, key, json!({ "file_id": own })).await.expect(201);
    let comment = json!({ "body": "See.", "attachments": [own] });
    let comment = app.post(&shop.of(&item, "/comments"), key, comment).await.expect(201);
    assert_eq!(comment["attachments"], json!([own]));
    app.sql("UPDATE files SET trashed_at = '2026-01-15 12:00:00'").await;
    app.post(&path, key, json!({ "file_id": own })).await.expect_error(404, "not_found");
    assert_eq!(app.get(&path, key).await.expect(200), json!([]));
}
