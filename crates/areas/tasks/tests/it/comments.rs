//! Comments on tasks, and files of tasks.

use crate::Tasks;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn comments_are_written_changed_and_deleted(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let task = tasks.create(json!({ "title": "A" })).await;
    let first = tasks.post(&task, "/comments", json!({ "body": "One" })).await.expect(201);
    let second = tasks.post(&task, "/comments", json!({ "body": "Two" })).await.expect(201);
    assert_eq!((&first["task_id"], &first["version"]), (&task["id"], &json!(1)));
    let path = tasks.path(&task, &format!("/comments/{}", first["id"]));
    let changed =
        tasks.app.patch(&path, &tasks.key, json!({ "body": "Uno", "version": 1 })).await.expect(200);
    assert_eq!((&changed["body"], &changed["version"]), (&json!("Uno"), &json!(2)));
    assert!(changed["edited_at"].is_string());
    tasks
        .app
        .patch(&path, &tasks.key, json!({ "body": "X", "version": 1 }))
        .await
        .expect_error(409, "version_conflict");
    let at = tasks.path(&task, "/comments");
    assert_eq!(tasks.app.get(&at, &tasks.key).await.expect(200), json!([second, changed]));
    let page = tasks.app.get(&format!("{at}?paginate=true&limit=1"), &tasks.key).await;
    assert_eq!((&page.body["data"], &page.body["has_more"]), (&json!([second]), &json!(true)));
    let now = tasks.get(&task).await;
    assert_eq!((&now["comment_count"], &now["version"]), (&json!(2), &json!(1)));
    let other = tasks.create(json!({ "title": "B" })).await;
    let foreign = tasks.path(&other, &format!("/comments/{}", first["id"]));
    tasks.app.delete(&foreign, &tasks.key).await.expect_error(404, "not_found");
    tasks.app.delete(&path, &tasks.key).await.expect(200);
    tasks.app.delete(&path, &tasks.key).await.expect_error(404, "not_found");
    assert_eq!(tasks.get(&task).await["comment_count"], 1);
    tasks.post(&task, "/comments", json!({ "body": " " })).await.expect_error(400, "validation_error");
    let types: Vec<Value> = tasks.events().await.iter().map(|event| event["type"].clone()).collect();
    for name in ["task.comment.created", "task.comment.updated", "task.comment.deleted"] {
        assert!(types.contains(&name.into()), "{name}");
    }
}

#[testkit::both]
async fn files_are_attached_and_then_in_use(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let task = tasks.create(json!({ "title": "A" })).await;
    let file = tasks.app.ask("POST", "/files").key(&tasks.key).header("idempotency-key", "file");
    let file = file.form(&[], ("a.txt", b"Hello.")).send().await.expect(201);
    let attached = tasks.post(&task, "/files", json!({ "file_id": file["id"] })).await.expect(201);
    assert_eq!((&attached["id"], &attached["name"]), (&file["id"], &json!("a.txt")));
    tasks.post(&task, "/files", json!({ "file_id": file["id"] })).await.expect_error(409, "duplicate_value");
    let answer = tasks.post(&task, "/files", json!({ "file_id": 999_999 })).await;
    assert_eq!(answer.expect_error(404, "not_found").as_deref(), Some("file_id"));
    let listed = tasks.app.get(&tasks.path(&task, "/files"), &tasks.key).await.expect(200);
    assert_eq!(listed, json!([attached]));
    let path = format!("/files/{}", file["id"]);
    let in_use = tasks.app.delete(&path, &tasks.key).await;
    in_use.expect_error(409, "file_in_use");
    assert_eq!(
        in_use.body["error"]["details"]["attached_to"],
        json!([{ "type": "task", "id": task["id"].to_string() }])
    );
    let at = tasks.path(&task, &format!("/files/{}", file["id"]));
    tasks.app.delete(&at, &tasks.key).await.expect(200);
    tasks.app.delete(&at, &tasks.key).await.expect_error(404, "not_found");
    tasks.app.delete(&path, &tasks.key).await.expect(200);
    let types: Vec<Value> = tasks.events().await.iter().map(|event| event["type"].clone()).collect();
    assert_eq!(json!(types), json!(["task.created", "task.file.attached", "task.file.detached"]));
}

#[testkit::both]
async fn items_link_to_tasks(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let task = tasks.create(json!({ "title": "Pack the order" })).await;
    let collection = json!({ "name": "Orders", "fields": [{ "label": "Number", "type": "text" }] });
    let collection = tasks.app.post("/collections", &tasks.key, collection).await.expect(201);
    let items = format!("/collections/{}/items", collection["id"]);
    let item = tasks.app.post(&items, &tasks.key, json!({ "data": { "number": "1" } })).await.expect(201);
    let links = format!("{items}/{}/links", item["id"]);
    let link = json!({ "to": { "type": "task", "id": task["id"] } });
    tasks.app.post(&links, &tasks.key, link).await.expect(201);
    let listed = tasks.app.get(&links, &tasks.key).await.expect(200);
    let text = listed.to_string();
    assert!(text.contains("Pack the order") && text.contains("todo"), "{text}");
    let missing = json!({ "to": { "type": "task", "id": item["id"] } });
    tasks.app.post(&links, &tasks.key, missing).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn what_was_in_the_trash_for_30_days_is_deleted(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let task = tasks.create(json!({ "title": "A" })).await;
    tasks.post(&task, "/comments", json!({ "body": "One" })).await.expect(201);
    tasks.app.delete(&tasks.path(&task, ""), &tasks.key).await.expect(200);
    tasks.app.data.clock.advance(chrono::TimeDelta::days(31));
    tasks.app.service.jobs.run_due().await.unwrap();
    let types: Vec<Value> = tasks.events().await.iter().map(|event| event["type"].clone()).collect();
    assert_eq!(types.last(), Some(&json!("task.deleted")), "{types:?}");
    let left: i64 = tasks
        .app
        .db()
        .read(|read| {
            use diesel::{QueryDsl, RunQueryDsl};
            Ok(tasks::schema::task_comments::table.count().get_result::<i64>(read.connection())?)
        })
        .await
        .unwrap();
    assert_eq!(left, 0);
}
