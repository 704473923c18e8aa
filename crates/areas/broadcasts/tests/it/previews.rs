//! Previews, test sends, and broadcasts without a channel.

use crate::support::{Desk, open, sale};
use serde_json::{Value, json};
use testkit::Kind;

/// Creates four contacts: two who can receive the message, one who opted out, and one without an address.
async fn contacts(desk: &Desk) -> Vec<i64> {
    let ana = desk.contact("Ana", "+5511987650001").await;
    let ben = desk.contact("Ben", "+5511987650002").await;
    let cem = desk.contact("Cem", "+5511987650003").await;
    let max = json!({ "data": { "$name": "Max", "$email": "max@example.com" } });
    let max = desk.post("/contacts", max).await.expect(201)["id"].as_i64().unwrap();
    desk.post(&format!("/contacts/{cem}/opt-out"), json!({})).await.expect(200);
    vec![ana, ben, cem, max]
}

fn expected(desk: &Desk, ids: &[i64]) -> Value {
    let message = |name: &str| json!({ "header": null, "body": format!("Hi {name}, 10 % off!"), "footer": "Shop", "buttons": [] });
    json!({
        "object": "broadcast_preview", "channel_id": desk.channel, "recipients": 2, "failing": 0, "skipped": 2,
        "skip_reasons": [{ "reason": "no_address", "count": 1 }, { "reason": "opted_out", "count": 1 }],
        "unmatched": 0, "contradictory": 0, "complete": true,
        "messages": [
            { "contact_id": ids[0], "address": "+5511987650001", "message": message("Ana") },
            { "contact_id": ids[1], "address": "+5511987650002", "message": message("Ben") },
        ],
    })
}

#[testkit::both]
async fn a_preview_counts_and_shows_and_stores_nothing(kind: Kind) {
    let desk = open(kind).await;
    let ids = contacts(&desk).await;
    let draft = json!({ "name": "Sale", "template": sale(), "audience": { "contact_ids": ids } });
    let preview = desk.post("/broadcasts?dry_run=true", draft.clone()).await.expect(200);
    assert_eq!(preview, expected(&desk, &ids));
    assert_eq!(desk.get("/broadcasts").await.expect(200), json!([]));
    let stored = desk.post("/broadcasts", draft.clone()).await.expect(201);
    assert_eq!((&stored["preview"], &stored["channel_id"]), (&Value::Null, &Value::Null));
    let path = format!("/broadcasts/{}", stored["id"]);
    let send = format!("{path}/send");
    let shown = desk.post(&format!("{send}?dry_run=true"), json!({})).await.expect(200);
    assert_eq!((&shown["preview"], &shown["status"]), (&expected(&desk, &ids), &json!("draft")));
    desk.run().await;
    assert_eq!(desk.get(&path).await.expect(200), stored);
    assert_eq!(desk.messages().await.len(), 0);
    // Sending has the result that the preview showed.
    assert_eq!(desk.post(&send, json!({})).await.expect(200)["channel_id"], json!(desk.channel));
    desk.run().await;
    let counts = desk.get(&path).await.expect(200)["counts"].clone();
    assert_eq!((&counts["total"], &counts["skipped"]), (&json!(4), &json!(2)));
    assert_eq!(desk.messages().await.len(), 2);
    let late = desk.post(&format!("{send}?dry_run=true"), json!({})).await;
    late.expect_error(409, "invalid_state");
    for (lacking, code, param) in [
        (json!({ "template": null }), "validation_error", "template"),
        (json!({ "audience": null }), "validation_error", "audience"),
        (
            json!({ "template": { "name": "sale", "language": "en", "params": {} } }),
            "template_params_mismatch",
            "template.params.1",
        ),
    ] {
        let mut draft = draft.clone();
        draft.as_object_mut().unwrap().extend(lacking.as_object().unwrap().clone());
        let refused = desk.post("/broadcasts?dry_run=true", draft).await;
        assert_eq!(refused.expect_error(400, code).as_deref(), Some(param), "{lacking}");
    }
}

#[testkit::both]
async fn a_file_is_counted_line_by_line(kind: Kind) {
    let desk = open(kind).await;
    contacts(&desk).await;
    let list = b"phone\n+5511987650001\n+5511987650001\n+5511987650009\n+5511987650003\n";
    let file = desk.upload_as("list.csv", list).await;
    let draft = json!({ "name": "Sale", "template": sale(), "audience": { "file_id": file } });
    let preview = desk.post("/broadcasts?dry_run=true", draft).await.expect(200);
    assert_eq!(
        (&preview["recipients"], &preview["skipped"], &preview["unmatched"]),
        (&json!(1), &json!(1), &json!(1)),
        "{preview}"
    );
}

#[testkit::both]
async fn a_test_goes_to_one_contact(kind: Kind) {
    let desk = open(kind).await;
    let ids = contacts(&desk).await;
    let id = desk.draft(json!({ "contact_ids": ids }), json!({ "channel_id": null })).await;
    let send = format!("/broadcasts/{id}/send");
    let checked =
        desk.post(&format!("{send}?dry_run=true"), json!({ "test_contact_id": ids[1] })).await.expect(200);
    assert_eq!(
        (&checked["test"]["message_id"], &checked["test"]["message"]["body"]),
        (&Value::Null, &json!("Hi Ben, 10 % off!"))
    );
    assert_eq!(desk.messages().await.len(), 0);
    let body = json!({ "test_contact_id": ids[1] });
    let once = desk.app.ask("POST", &send).key(&desk.key).header("Idempotency-Key", "test-1").json(&body);
    let tested = once.send().await.expect(200);
    let again = desk.app.ask("POST", &send).key(&desk.key).header("Idempotency-Key", "test-1").json(&body);
    assert_eq!(again.send().await.expect(200), tested);
    assert!(tested["test"]["message_id"].is_i64(), "{tested}");
    assert_eq!((&tested["status"], &tested["test"]["contact_id"]), (&json!("draft"), &json!(ids[1])));
    assert_eq!(desk.messages().await, [(ids[1], "Hi Ben, 10 % off!".to_owned(), None)]);
    desk.settle().await;
    let after = desk.broadcast(id).await;
    assert_eq!((&after["status"], &after["counts"]["total"]), (&json!("draft"), &json!(0)));
    for (contact, status, code) in
        [(ids[2], 409, "recipient_opted_out"), (ids[3], 409, "no_channel"), (999_999, 404, "not_found")]
    {
        let refused = desk.post(&send, json!({ "test_contact_id": contact })).await;
        assert_eq!(refused.expect_error(status, code).as_deref(), Some("test_contact_id"), "{contact}");
    }
    // A contact that received a test also receives the broadcast.
    desk.act(id, "send").await;
    desk.run().await;
    assert_eq!(desk.messages().await.len(), 3);
}

#[testkit::both]
async fn a_broadcast_without_a_channel_takes_the_one_with_the_template(kind: Kind) {
    let desk = open(kind).await;
    let ids = contacts(&desk).await;
    let second = desk.second_channel().await;
    desk.app.sql(format!("UPDATE message_templates SET channel_id = {second} WHERE name = 'sale'")).await;
    let id = desk.draft(json!({ "contact_ids": ids }), json!({ "channel_id": null })).await;
    assert_eq!(desk.act(id, "send").await["channel_id"], json!(second));
    desk.app.sql("UPDATE channels SET status = 'disabled'").await;
    let id = desk.draft(json!({ "contact_ids": ids }), json!({ "channel_id": null })).await;
    desk.post(&format!("/broadcasts/{id}/send"), json!({})).await.expect_error(409, "no_channel");
}
