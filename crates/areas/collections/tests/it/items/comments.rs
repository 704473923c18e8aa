//! Comments and activity logs.

use super::Shop;
use crate::{events, full};
use model::Env;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn a_thread_is_written_answered_edited_resolved_and_deleted(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let item = shop.put_up(json!({ "name": "Ball" })).await;
    let path = shop.of(&item, "/comments");
    let first = json!({ "body": "Too **multicoloured**?", "mentions": [7, 8, 7], "field_key": "name" });
    let first = app.post(&path, key, first).await.expect(201);
    assert_eq!(
        (&first["object"], &first["item_id"], &first["version"]),
        (&json!("item_comment"), &item["id"], &json!(1))
    );
    assert_eq!(
        (&first["mentions"], &first["field_key"], &first["parent_id"]),
        (&json!([7, 8]), &json!("name"), &Value::Null)
    );
    assert_eq!(first["author"], json!({ "type": "api_key", "id": key.id }));
    let answer = app.post(&path, key, json!({ "body": "No.", "parent_id": first["id"] })).await.expect(201);
    assert_eq!(shop.look(&item).await["comment_count"], 2);
    assert_eq!(shop.look(&item).await["version"], 1, "a comment is no change of the item");

    let at = |comment: &Value| format!("{path}/{}", comment["id"]);
    app.data.clock.advance(chrono::Duration::seconds(5));
    let edited = app.patch(&at(&answer), key, json!({ "body": "No!" })).await.expect(200);
    assert_eq!(
        (&edited["body"], &edited["edited_at"], &edited["version"]),
        (&json!("No!"), &json!("2026-01-15T12:00:05.000Z"), &json!(2))
    );
    let same = app.patch(&at(&answer), key, json!({ "body": "No!" })).await.expect(200);
    assert_eq!(same, edited);
    let resolved = app.patch(&at(&first), key, json!({ "resolved": true })).await.expect(200);
    assert_eq!(
        (&resolved["resolved_at"], &resolved["edited_at"]),
        (&json!("2026-01-15T12:00:05.000Z"), &Value::Null)
    );
    let open = app.patch(&at(&first), key, json!({ "resolved": false })).await.expect(200);
    assert_eq!(open["resolved_at"], Value::Null);

    let gone = app.delete(&at(&first), key).await.expect(200);
    assert_eq!(gone, json!({ "id": first["id"], "object": "item_comment", "deleted": true }));
    let all = app.get(&path, key).await.expect(200);
    assert_eq!(
        all.as_array().unwrap().iter().map(|comment| &comment["id"]).collect::<Vec<_>>(),
        [&answer["id"], &first["id"]]
    );
    assert_eq!(
        (&all[1]["deleted"], &all[1]["body"], &all[1]["mentions"]),
        (&json!(true), &json!(""), &json!([]))
    );
    assert_eq!(shop.look(&item).await["comment_count"], 1);
    app.delete(&at(&first), key).await.expect_error(404, "not_found");
    app.patch(&at(&first), key, json!({ "body": "x" })).await.expect_error(409, "invalid_state");
    let late = json!({ "body": "x", "parent_id": first["id"] });
    app.post(&path, key, late).await.expect_error(409, "invalid_state");
    let kinds: Vec<String> = events(app).await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(
        kinds,
        [
            "item.created",
            "item.comment.created",
            "item.comment.created",
            "item.comment.updated",
            "item.comment.updated",
            "item.comment.updated",
            "item.comment.deleted",
        ]
    );
    let activity = app.get(&shop.of(&item, "/activity"), key).await.expect(200);
    testkit::assert_absent(&activity.to_string(), "multicoloured");
}

#[testkit::both]
async fn bad_comments_are_refused(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let item = shop.put_up(json!({ "name": "Ball" })).await;
    let path = shop.of(&item, "/comments");
    let first = app.post(&path, key, json!({ "body": "a" })).await.expect(201);
    let answer = app.post(&path, key, json!({ "body": "b", "parent_id": first["id"] })).await.expect(201);
    for (body, param) in [
        (json!({}), "body"),
        (json!({ "body": "" }), "body"),
        (json!({ "body": " \n" }), "body"),
        (json!({ "body": "x".repeat(10_001) }), "body"),
        (json!({ "body": "x", "parent_id": answer["id"] }), "parent_id"),
        (json!({ "body": "x", "field_key": "nmae" }), "field_key"),
        (json!({ "body": "x", "mentions": ["a"] }), "mentions[0]"),
        (json!({ "body": "x", "attachments": [9] }), "attachments[0]"),
    ] {
        let refused = app.post(&path, key, body.clone()).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
    let nowhere = app.post(&path, key, json!({ "body": "x", "parent_id": 999 })).await;
    assert_eq!(nowhere.expect_error(404, "not_found").as_deref(), Some("parent_id"));
    let refused = app.patch(&format!("{path}/{}", answer["id"]), key, json!({ "resolved": true })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("resolved"));
    // A comment of another item is not found here, and other workspaces find nothing.
    let other = shop.put_up(json!({ "name": "Cube" })).await;
    app.patch(&shop.of(&other, &format!("/comments/{}", first["id"])), key, json!({ "body": "x" }))
        .await
        .expect_error(404, "not_found");
    let stranger = full(app).await;
    app.get(&path, &stranger).await.expect_error(404, "not_found");
    app.post(&path, &stranger, json!({ "body": "x" })).await.expect_error(404, "not_found");
    app.delete(&format!("{path}/{}", first["id"]), &stranger).await.expect_error(404, "not_found");
    app.sql(format!("UPDATE collections SET settings = '{{\"comments_enabled\": false}}', shape_version = 2 WHERE id = {}", shop.collection)).await;
    let closed = app.post(&path, key, json!({ "body": "x" })).await;
    closed.expect_error(409, "invalid_state");
    assert_eq!(closed.body["error"]["details"]["state"], "comments_disabled");
}

#[testkit::both]
async fn keys_speak_for_the_workspace_and_people_for_themselves(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let item = shop.put_up(json!({ "name": "Ball" })).await;
    let path = shop.of(&item, "/comments");
    let comment = app.post(&path, key, json!({ "body": "a" })).await.expect(201);
    let at = format!("{path}/{}", comment["id"]);
    let colleague = app.key(key.workspace, Env::Live, &["items:write"]).await;
    app.patch(&at, &colleague, json!({ "body": "b" })).await.expect(200);
    app.sql(r#"UPDATE item_comments SET author = '{"type":"user","id":"7"}'"#).await;
    app.patch(&at, key, json!({ "body": "c" })).await.expect_error(403, "not_author");
    app.delete(&at, key).await.expect_error(403, "not_author");
    app.patch(&at, key, json!({ "resolved": true })).await.expect(200);
}

#[testkit::both]
async fn comments_come_in_pages(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let item = shop.put_up(json!({ "name": "Ball" })).await;
    let path = shop.of(&item, "/comments");
    let first = app.post(&path, key, json!({ "body": "0" })).await.expect(201);
    for body in 1..5 {
        app.post(&path, key, json!({ "body": body.to_string(), "parent_id": first["id"] })).await.expect(201);
    }
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = app.get(&format!("{path}?paginate=true&limit=2{after}"), key).await;
        seen.extend(
            page.expect(200)
                .as_array()
                .unwrap()
                .iter()
                .map(|comment| comment["body"].as_str().unwrap().to_owned()),
        );
        if page.body["has_more"] == false {
            break;
        }
        after = format!("&starting_after={}", page.body["next_cursor"].as_str().unwrap());
    }
    assert_eq!(seen, ["4", "3", "2", "1", "0"]);
    let answers = app.get(&format!("{path}?parent_id={}", first["id"]), key).await.expect(200);
    assert_eq!(answers.as_array().unwrap().len(), 4);
    let wrong = app.get(&format!("{path}?starting_after=x"), key).await;
    assert_eq!(wrong.expect_error(400, "validation_error").as_deref(), Some("starting_after"));
}

#[testkit::both]
async fn activity_says_who_changed_what_and_when(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let made = app.post(&shop.at(""), key, json!({ "data": { "name": "Ball", "price": 1 } })).await;
    let item = made.expect(201);
    app.data.clock.advance(chrono::Duration::seconds(5));
    app.patch(
        &shop.of(&item, ""),
        key,
        json!({ "data": { "price": 2, "active": null }, "external_key": "k" }),
    )
    .await
    .expect(200);
    app.delete(&shop.of(&item, ""), key).await.expect(200);
    let entries = app.get(&shop.of(&item, "/activity"), key).await.expect(200);
    let actions: Vec<&str> =
        entries.as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["trashed", "updated", "created"]);
    assert_eq!(
        entries[1]["changed"],
        json!({
            "price": { "old": 1, "new": 2 },
            "active": { "old": true, "new": null },
            "external_key": { "old": null, "new": "k" },
        })
    );
    assert_eq!(
        (&entries[1]["actor"]["id"], &entries[1]["created_at"]),
        (&json!(key.id), &json!("2026-01-15T12:00:05.000Z"))
    );
    assert_eq!(
        entries[2]["source"]["request_id"].as_str(),
        made.headers.get("x-request-id").map(String::as_str)
    );
    assert_eq!(entries[2]["changed"]["name"], json!({ "old": null, "new": "Ball" }));
    let page = app.get(&shop.of(&item, "/activity?paginate=true&limit=1"), key).await;
    assert_eq!(page.body["has_more"], true);
    let next = format!("/activity?limit=2&starting_after={}", page.body["next_cursor"].as_str().unwrap());
    let rest = app.get(&shop.of(&item, &next), key).await;
    assert_eq!(
        (rest.body["data"][0]["action"].clone(), rest.body["has_more"].clone()),
        (json!("updated"), json!(false))
    );
    app.get(&shop.of(&item, "/activity"), &full(app).await).await.expect_error(404, "not_found");
}
