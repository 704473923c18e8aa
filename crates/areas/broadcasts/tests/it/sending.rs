//! Broadcasts from the draft to the last status.

use crate::support::{all, open};
use model::ContactId;
use serde_json::json;
use testkit::Kind;
#[testkit::both]
async fn a_broadcast_reaches_its_audience(kind: Kind) {
    let desk = open(kind).await;
    let ids = [desk.contact("Ana", "+5511987650001").await, desk.contact("Ben", "+5511987650002").await];
    let id = desk.draft(all(), json!({})).await;
    let draft = desk.broadcast(id).await;
    assert_eq!(
        (&draft["status"], &draft["counts"]["total"], &draft["template"]),
        (
            &json!("draft"),
            &json!(0),
            &json!({
                "name": "sale", "language": "en", "namespace": null,
                "params": { "1": { "value": "{{contact.$name}}", "fallback": "there" }, "2": { "value": "10 %", "fallback": null } },
            })
        )
    );
    assert_eq!(desk.act(id, "send").await["status"], "preparing");
    desk.run().await;
    let sending = desk.broadcast(id).await;
    assert_eq!((&sending["status"], &sending["counts"]["sending"]), (&json!("sending"), &json!(2)));
    assert!(sending["eta_at"].is_string());
    let expected = [
        (ids[0], "Hi Ana, 10 % off!".to_owned(), Some(format!("bcast:{id}:{}:1", ids[0]))),
        (ids[1], "Hi Ben, 10 % off!".to_owned(), Some(format!("bcast:{id}:{}:1", ids[1]))),
    ];
    assert_eq!(desk.messages().await, expected);
    // Starting it again changes nothing.
    assert_eq!(desk.act(id, "send").await["version"], sending["version"]);
    let rows = desk.recipients(id, "").await;
    assert_eq!(
        (&rows[0]["params"], &rows[0]["address"]),
        (&json!({ "1": "Ana", "2": "10 %" }), &json!("+5511987650001"))
    );
    desk.report(&rows[0], "sent", None).await;
    desk.report(&rows[0], "read", None).await;
    desk.report(&rows[1], "failed", Some("undeliverable")).await;
    desk.seconds(3).await;
    desk.reply(ContactId(ids[0]), model::Clock::now(&*desk.app.data.clock)).await;
    let done = desk.broadcast(id).await;
    assert_eq!(done["status"], "completed");
    assert_eq!(
        done["counts"],
        json!({
            "total": 2, "pending": 0, "sending": 0, "sent": 0, "delivered": 0, "read": 1, "replied": 1, "failed": 1,
            "skipped": 0, "unknown": 0, "cancelled": 0, "unmatched": 0, "contradictory": 0,
        })
    );
    let failed = desk.recipients(id, "state=failed").await;
    assert_eq!((failed.len(), &failed[0]["error"]["code"]), (1, &json!("undeliverable")));
    let read = desk.recipients(id, "state=read").await;
    assert!(
        ["sent_at", "delivered_at", "read_at", "replied_at"].iter().all(|key| read[0][key].is_string()),
        "{read:?}"
    );
    assert_eq!(desk.broadcast_events().await, ["broadcast.started", "broadcast.completed"]);
    // Late statuses still count.
    desk.report(&failed[0], "delivered", None).await;
    assert_eq!(desk.broadcast(id).await["counts"]["delivered"], 1);
    let pages = desk.get("/broadcasts?paginate=true&limit=1").await;
    assert_eq!(pages.body["data"][0]["id"], id);
    assert_eq!(desk.get("/broadcasts?status=draft").await.expect(200), json!([]));
}

#[testkit::both]
async fn what_failed_can_be_sent_again(kind: Kind) {
    let desk = open(kind).await;
    desk.crowd(3).await;
    let id = desk.draft(all(), json!({})).await;
    desk.act(id, "send").await;
    desk.run().await;
    let rows = desk.recipients(id, "").await;
    for (row, status) in rows.iter().zip(["failed", "unknown", "sent"]) {
        desk.report(row, status, None).await;
    }
    desk.seconds(3).await;
    assert_eq!(desk.broadcast(id).await["status"], "completed");
    desk.post(&format!("/broadcasts/{id}/send"), json!({})).await.expect_error(409, "invalid_state");
    let send = format!("/broadcasts/{id}/send");
    for (retry, place) in [("failed", 0), ("unknown", 1)] {
        assert_eq!(desk.post(&send, json!({ "retry": retry })).await.expect(200)["status"], "sending");
        desk.run().await;
        let row = desk.recipients(id, "state=claimed").await.remove(0);
        assert_eq!((&row["id"], &row["attempt"]), (&rows[place]["id"], &json!(2)));
        // Statuses of the first attempt no longer count.
        desk.report(&rows[place], "delivered", None).await;
        assert_eq!(desk.recipients(id, "state=claimed").await.len(), 1);
        desk.report(&row, "sent", None).await;
        desk.seconds(3).await;
        assert_eq!(desk.broadcast(id).await["status"], "completed");
        let nothing = desk.post(&send, json!({ "retry": retry })).await;
        assert_eq!(nothing.expect_error(409, "invalid_state").as_deref(), Some("retry"));
    }
    assert_eq!(desk.messages().await.len(), 5);
}

#[testkit::both]
async fn preparing_goes_on_where_it_was_interrupted(kind: Kind) {
    let desk = open(kind).await;
    let ids = desk.crowd(2_100).await;
    let id = desk.draft(all(), json!({ "throttle": { "rate_per_minute": 1 } })).await;
    desk.act(id, "send").await;
    desk.run().await;
    assert_eq!(desk.broadcast(id).await["counts"]["total"], 2_100);
    assert_eq!(desk.messages().await.len(), 1);
    // The state that a server leaves behind if it dies after the first batch.
    desk.app.sql(format!("DELETE FROM broadcast_recipients WHERE contact_id > {}", ids[999])).await;
    desk.app
        .sql(format!(
            "UPDATE broadcasts SET status = 'preparing', prepared_at = NULL, prepared_to = {}",
            ids[999]
        ))
        .await;
    desk.app.sql("DELETE FROM jobs WHERE kind = 'broadcasts.run'").await;
    assert_eq!(desk.act(id, "pause").await["status"], "paused");
    assert_eq!(desk.act(id, "send").await["status"], "preparing");
    desk.run().await;
    let broadcast = desk.broadcast(id).await;
    assert_eq!((&broadcast["status"], &broadcast["counts"]["total"]), (&json!("sending"), &json!(2_100)));
    assert_eq!(desk.messages().await.len(), 1);
}
