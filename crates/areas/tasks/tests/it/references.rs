//! The items and projects of tasks.

use crate::Tasks;
use model::Env;
use serde_json::{Value, json};
use testkit::Kind;

/// Creates a collection with one item in the workspace of the key. Returns the reference to the item.
async fn item(tasks: &Tasks, key: &testkit::Key, name: &str) -> Value {
    let collection = json!({ "name": name, "fields": [{ "label": "Name", "type": "text" }] });
    let collection = tasks.app.post("/collections", key, collection).await.expect(201);
    let at = format!("/collections/{}/items", collection["id"]);
    let item = tasks.app.post(&at, key, json!({ "data": { "name": name } })).await.expect(201);
    json!({ "collection_id": collection["id"], "item_id": item["id"] })
}

fn address(item: &Value) -> String {
    format!("/collections/{}/items/{}", item["collection_id"], item["item_id"])
}

#[testkit::both]
async fn a_task_is_about_an_item(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let (book, toy) = (item(&tasks, &tasks.key, "Books").await, item(&tasks, &tasks.key, "Toys").await);
    let task = tasks.create(json!({ "title": "Sell", "item_ref": book, "project": "Spring" })).await;
    assert_eq!((&task["item_ref"], &task["project"]), (&book, &json!("Spring")));
    assert_eq!(tasks.get(&task).await, task);
    let other = tasks.create(json!({ "title": "Buy" })).await;
    assert_eq!((&other["item_ref"], &other["project"]), (&Value::Null, &Value::Null));
    let of_item = format!("item_id={}", book["item_id"]);
    assert_eq!(tasks.titles(&of_item).await, ["Sell"]);
    // Members that are not sent stay, and equal values are no change.
    let same = tasks.patch(&task, json!({ "item_ref": book, "project": "Spring" })).await.expect(200);
    assert_eq!(same["version"], 1);
    let changed = tasks.patch(&task, json!({ "item_ref": toy })).await.expect(200);
    assert_eq!((&changed["item_ref"], &changed["project"]), (&toy, &json!("Spring")));
    assert!(tasks.titles(&of_item).await.is_empty());
    let cleared = tasks.patch(&task, json!({ "item_ref": null, "project": null })).await.expect(200);
    assert_eq!((&cleared["item_ref"], &cleared["project"]), (&Value::Null, &Value::Null));
    let events = tasks.events().await;
    let last = &events.last().unwrap()["data"];
    assert_eq!(last["changed"]["item_id"], json!({ "old": toy["item_id"], "new": null }));
    assert_eq!(last["changed"]["project"], json!({ "old": "Spring", "new": null }));
    let row = json!({ "id": task["id"], "change": { "item_ref": book, "project": "Autumn" } });
    let report =
        tasks.app.post(&format!("{}/bulk-update", tasks.at), &tasks.key, json!({ "rows": [row] })).await;
    assert_eq!(report.expect(200)["summary"]["updated"], 1);
    assert_eq!(tasks.titles(&of_item).await, ["Sell"]);
}

#[testkit::both]
async fn a_task_is_about_items_of_its_workspace_only(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let (book, toy) = (item(&tasks, &tasks.key, "Books").await, item(&tasks, &tasks.key, "Toys").await);
    let elsewhere = tasks.app.bare_workspace("scale", 0).await;
    let stranger = tasks.app.key(elsewhere, Env::Live, &["*"]).await;
    let foreign = item(&tasks, &stranger, "Books").await;
    let contact =
        tasks.app.post("/contacts", &tasks.key, json!({ "data": { "$name": "Ana" } })).await.expect(201);
    // The set of the workspace's contacts is also stored as a collection.
    let set = contacts::CONTACTS.set_of(tasks.key.workspace);
    let task = tasks.create(json!({ "title": "A", "item_ref": book })).await;
    for (given, param) in [
        (json!(7), "item_ref"),
        (json!({}), "item_ref.collection_id"),
        (json!({ "collection_id": book["collection_id"] }), "item_ref.item_id"),
        (json!({ "collection_id": book["collection_id"], "item_id": toy["item_id"] }), "item_ref.item_id"),
        (
            json!({ "collection_id": book["collection_id"], "item_id": foreign["item_id"] }),
            "item_ref.item_id",
        ),
        (json!({ "collection_id": book["collection_id"], "item_id": i64::MAX }), "item_ref.item_id"),
        (foreign, "item_ref.collection_id"),
        (json!({ "collection_id": set, "item_id": contact["id"] }), "item_ref.collection_id"),
        (json!({ "collection_id": 999_999, "item_id": book["item_id"] }), "item_ref.collection_id"),
    ] {
        let answer = tasks.app.post(&tasks.at, &tasks.key, json!({ "title": "B", "item_ref": given })).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{given}");
        let answer = tasks.patch(&task, json!({ "item_ref": given })).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{given}");
    }
    let long = json!({ "title": "B", "project": "x".repeat(121) });
    let answer = tasks.app.post(&tasks.at, &tasks.key, long).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("project"));
    assert_eq!(tasks.get(&task).await, task);
}

#[testkit::both]
async fn a_task_keeps_an_item_that_is_deleted(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let book = item(&tasks, &tasks.key, "Books").await;
    let new = json!({ "title": "Sell", "item_ref": book, "project": "Spring", "recurrence": { "rule": "FREQ=DAILY" } });
    let task = tasks.create(new).await;
    let next = tasks.complete(&task).await["recurrence"]["next_id"].clone();
    let next = tasks.get(&json!({ "id": next })).await;
    assert_eq!((&next["item_ref"], &next["project"]), (&book, &json!("Spring")));
    tasks.app.delete(&address(&book), &tasks.key).await.expect(200);
    // As with contacts, the task keeps the reference to the deleted item and can be changed, but no other task can
    // refer to it.
    assert_eq!(tasks.get(&next).await, next);
    let changed = tasks.patch(&next, json!({ "title": "Give away", "item_ref": book })).await.expect(200);
    assert_eq!((&changed["title"], &changed["item_ref"]), (&json!("Give away"), &book));
    let answer = tasks.app.post(&tasks.at, &tasks.key, json!({ "title": "B", "item_ref": book })).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("item_ref.item_id"));
    let last = tasks.complete(&next).await["recurrence"]["next_id"].clone();
    let last = tasks.get(&json!({ "id": last })).await;
    assert_eq!((&last["item_ref"], &last["project"]), (&Value::Null, &json!("Spring")));
}

#[testkit::both]
async fn tasks_are_filtered_and_ordered_by_project(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    for (title, project) in [("Ash", json!("Spring")), ("Beech", json!("Autumn")), ("Cedar", Value::Null)] {
        tasks.create(json!({ "title": title, "project": project })).await;
    }
    for (query, titles) in [
        ("sort=project", &["Beech", "Ash", "Cedar"][..]),
        ("sort=-project", &["Ash", "Beech", "Cedar"]),
        ("project=Spring", &["Ash"]),
        ("project=Winter", &[]),
        ("filter[project]=Autumn", &["Beech"]),
    ] {
        assert_eq!(tasks.titles(query).await, titles, "{query}");
    }
    for (query, param) in [("project=", "project"), ("item_id=x", "item_id")] {
        let answer = tasks.app.get(&format!("{}?{query}", tasks.at), &tasks.key).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{query}");
    }
}
