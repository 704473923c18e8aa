//! Broadcasts that are paused, cancelled and resumed while their messages wait in the outbox. Also clocks and files.

use crate::support::{Desk, all, open, sale};
use serde_json::{Value, json};
use testkit::Kind;

impl Desk {
    /// Starts a broadcast with `count` messages in the outbox.
    async fn waiting(&self, count: usize) -> i64 {
        self.crowd(count).await;
        let id = self.draft(all(), json!({})).await;
        self.act(id, "send").await;
        self.run().await;
        assert_eq!(self.queued().await, i64::try_from(count).unwrap());
        id
    }

    async fn queued(&self) -> i64 {
        self.count("SELECT COUNT(*) AS n FROM message_outbox").await
    }

    async fn states_of(&self, id: i64) -> Vec<String> {
        self.states(id).await.into_iter().map(|(_, state)| state).collect()
    }
}

#[testkit::both]
async fn a_pause_takes_messages_back_and_they_are_sent_once(kind: Kind) {
    let desk = open(kind).await;
    let id = desk.waiting(3).await;
    let messages = desk.messages().await;
    // The first message is being handed to the network.
    let first = desk.recipients(id, "").await[0]["message_id"].clone();
    desk.app.sql(format!("UPDATE message_outbox SET claimed_epoch = 99 WHERE message_id = {first}")).await;
    desk.act(id, "pause").await;
    assert_eq!(desk.states_of(id).await, ["claimed", "pending", "pending"]);
    assert_eq!(desk.queued().await, 1);
    // The network asks for a retry.
    desk.app.sql("UPDATE message_outbox SET claimed_epoch = NULL").await;
    desk.seconds(3).await;
    assert_eq!((desk.states_of(id).await, desk.queued().await), (vec!["pending".to_owned(); 3], 0));
    let counts = desk.broadcast(id).await["counts"].clone();
    assert_eq!((&counts["pending"], &counts["sending"]), (&json!(3), &json!(0)));
    desk.act(id, "send").await;
    desk.run().await;
    assert_eq!((desk.states_of(id).await, desk.queued().await), (vec!["claimed".to_owned(); 3], 3));
    // The messages are the same as before.
    assert_eq!(desk.messages().await, messages);
}

#[testkit::both]
async fn what_is_cancelled_is_never_sent(kind: Kind) {
    let desk = open(kind).await;
    let id = desk.waiting(3).await;
    // One message was withdrawn before.
    let rows = desk.recipients(id, "").await;
    desk.act(id, "pause").await;
    desk.act(id, "send").await;
    desk.seconds(1).await;
    desk.app
        .sql(format!(
            "UPDATE message_outbox SET claimed_epoch = 99 WHERE message_id = {}",
            rows[0]["message_id"]
        ))
        .await;
    assert_eq!(desk.act(id, "cancel").await["status"], "cancelling");
    desk.run().await;
    assert_eq!(desk.broadcast(id).await["status"], "cancelling");
    assert_eq!(desk.states_of(id).await, ["claimed", "cancelled", "cancelled"]);
    assert_eq!(desk.queued().await, 1);
    desk.report(&rows[0], "sent", None).await;
    desk.app.sql("DELETE FROM message_outbox").await;
    desk.seconds(3).await;
    let done = desk.broadcast(id).await;
    assert_eq!(
        (&done["status"], &done["counts"]["cancelled"], &done["counts"]["sent"]),
        (&json!("cancelled"), &json!(2), &json!(1))
    );
    for row in &rows[1..] {
        assert_eq!(desk.status(&row["message_id"]).await, ("cancelled".to_owned(), None));
        let history = format!(
            "SELECT COUNT(*) AS n FROM message_statuses WHERE status = 'cancelled' AND message_id = {}",
            row["message_id"]
        );
        assert_eq!(desk.count(&history).await, 1);
    }
}

#[testkit::both]
async fn paused_messages_of_a_contact_who_opts_out_are_cancelled(kind: Kind) {
    let desk = open(kind).await;
    let id = desk.waiting(2).await;
    desk.act(id, "pause").await;
    let rows = desk.recipients(id, "").await;
    desk.post(&format!("/contacts/{}/opt-out", rows[0]["contact_id"]), json!({})).await.expect(200);
    desk.act(id, "send").await;
    desk.run().await;
    assert_eq!(desk.states_of(id).await, ["opted_out", "claimed"]);
    assert_eq!(desk.status(&rows[0]["message_id"]).await.0, "cancelled");
    assert_eq!(desk.queued().await, 1);
}

#[testkit::both]
async fn the_limit_of_the_network_ends_by_itself(kind: Kind) {
    let desk = open(kind).await;
    let id = desk.waiting(3).await;
    desk.app.sql("UPDATE channels SET messaging_limit = 2").await;
    let rows = desk.recipients(id, "").await;
    for row in &rows[..2] {
        desk.report(row, "sent", None).await;
    }
    desk.report(&rows[2], "failed", Some("messaging_limit")).await;
    desk.seconds(2).await;
    let paused = desk.broadcast(id).await;
    assert_eq!(
        (&paused["pause_reason"], &paused["resumes_at"]),
        (&json!("messaging_limit"), &json!("2026-01-16T12:00:00.000Z"))
    );
    let early = desk.post(&format!("/broadcasts/{id}/send"), json!({})).await;
    early.expect_error(409, "invalid_state");
    assert_eq!(
        early.body["error"]["details"],
        json!({
            "state": "paused", "pause_reason": "messaging_limit", "resumes_at": "2026-01-16T12:00:00.000Z",
        })
    );
    desk.app.data.clock.advance(chrono::Duration::hours(24));
    desk.run().await;
    let resumed = desk.broadcast(id).await;
    assert_eq!(
        (&resumed["status"], &resumed["pause_reason"], &resumed["resumes_at"]),
        (&json!("sending"), &Value::Null, &Value::Null)
    );
    assert_eq!(desk.states_of(id).await, ["sent", "sent", "claimed"]);
    let again = desk.recipients(id, "state=claimed").await.remove(0);
    assert_eq!((&again["attempt"], &again["error"]), (&json!(2), &Value::Null));
    assert_ne!(again["message_id"], rows[2]["message_id"]);
}

#[testkit::both]
async fn what_paused_it_must_be_over(kind: Kind) {
    let desk = open(kind).await;
    let id = desk.waiting(2).await;
    desk.app.sql("UPDATE channels SET quality = 'low'").await;
    desk.seconds(3).await;
    assert_eq!(desk.broadcast(id).await["pause_reason"], "quality_low");
    let send = format!("/broadcasts/{id}/send");
    let refused = desk.post(&send, json!({})).await;
    refused.expect_error(409, "invalid_state");
    assert_eq!(refused.body["error"]["details"]["pause_reason"], "quality_low");
    desk.app.sql("UPDATE channels SET quality = 'high'").await;
    assert_eq!(desk.act(id, "send").await["status"], "sending");
}

#[testkit::both]
async fn quiet_hours_and_local_times_follow_the_clocks_that_are_put_forward(kind: Kind) {
    let desk = open(kind).await;
    let data = json!({ "$name": "Ana", "$phone": "+34612345678" });
    desk.post("/contacts", json!({ "data": data })).await.expect(201);
    // Clocks in Madrid go forward in the night to 29 March: 08:00 is 07:00 UTC before and 06:00 UTC after.
    desk.app.data.clock.advance(chrono::Duration::days(72) + chrono::Duration::hours(10));
    let quiet = json!({ "time_zone": "Europe/Madrid", "quiet_hours": { "from": "21:00", "to": "08:00" } });
    let id = desk.draft(all(), json!({ "schedule": quiet })).await;
    desk.act(id, "send").await;
    let after = async |minutes: i64| {
        desk.app.data.clock.advance(chrono::Duration::minutes(minutes));
        desk.run().await;
        desk.messages().await.len()
    };
    // It is 22:00 UTC on 28 March.
    assert_eq!(after(0).await, 0);
    assert_eq!(after(8 * 60 - 1).await, 0);
    assert_eq!(after(1).await, 1);
    let local = json!({
        "send_at": "2026-10-24T08:00:00Z", "time_zone": "UTC", "contact_local_time": true,
    });
    let data = json!({ "$timezone": "Europe/Madrid" });
    let ana = desk.recipients(id, "").await[0]["contact_id"].clone();
    desk.app.patch(&format!("/contacts/{ana}"), &desk.key, json!({ "data": data })).await.expect(200);
    for (send_at, expected) in [
        ("2026-10-24T08:00:00Z", "2026-10-24T06:00:00.000Z"),
        ("2026-10-25T08:00:00Z", "2026-10-25T07:00:00.000Z"),
    ] {
        let mut schedule = local.clone();
        schedule["send_at"] = json!(send_at);
        let id = desk.draft(all(), json!({ "schedule": schedule })).await;
        assert_eq!(desk.act(id, "send").await["status"], "scheduled");
        desk.app
            .sql(format!("UPDATE broadcasts SET starts_at = '2026-03-29 06:00:00' WHERE id = {id}"))
            .await;
        desk.app.sql("UPDATE jobs SET run_at = '2026-03-29 06:00:00' WHERE kind = 'broadcasts.run'").await;
        desk.run().await;
        assert_eq!(desk.recipients(id, "").await[0]["not_before"], expected);
    }
}

#[testkit::both]
async fn a_template_has_a_file_above_its_text(kind: Kind) {
    let desk = open(kind).await;
    let header = json!({ "format": "image", "sample": "4::aW" });
    let body = json!({ "text": "Hi {{1}}, {{2}} off!", "samples": ["Ana", "10 %"] });
    let new = json!({
        "name": "promo", "language": "en", "category": "marketing", "components": { "header": header, "body": body },
    });
    desk.post(&desk.path("/chatnet/templates"), new).await.expect(201);
    desk.network.review("promo", "en", &simulator::Review::Approve).unwrap();
    desk.settle().await;
    let ana = desk.customer("Ana", "+5511987650001");
    desk.contact("Ana", "+5511987650001").await;
    let upload = desk.app.ask("POST", "/files").key(&desk.key).header("idempotency-key", "file");
    let upload = upload.form(&[], ("sale.png", b"\x89PNG\r\n\x1a\n")).send().await.expect(201);
    let with = |media: Value| {
        let mut template = sale();
        (template["name"], template["media"]) = (json!("promo"), media);
        json!({ "template": template })
    };
    let draft = json!({ "name": "Sale", "template": with(json!(999_999))["template"] });
    assert_eq!(
        desk.post("/broadcasts", draft).await.expect_error(404, "not_found").as_deref(),
        Some("template.media")
    );
    let id = desk.draft(all(), with(Value::Null)).await;
    let refused = desk.post(&format!("/broadcasts/{id}/send"), json!({})).await;
    assert_eq!(refused.expect_error(400, "template_params_mismatch").as_deref(), Some("template.media"));
    let id = desk.draft(all(), with(upload["id"].clone())).await;
    desk.act(id, "send").await;
    desk.run().await;
    desk.settle().await;
    let sent: Vec<_> =
        desk.network.transcript().into_iter().filter(|sent| sent.user_id == ana.user_id).collect();
    assert_eq!((sent.len(), sent[0].kind.as_str()), (1, "template"), "{sent:?}");
    assert!(format!("{sent:?}").contains("image"), "{sent:?}");
}

#[testkit::both]
async fn nothing_of_an_erased_contact_is_kept(kind: Kind) {
    let desk = open(kind).await;
    let id = desk.waiting(2).await;
    desk.act(id, "pause").await;
    let before = desk.recipients(id, "").await;
    let erased = before[0]["contact_id"].clone();
    desk.app.delete(&format!("/contacts/{erased}?erase=true"), &desk.key).await.expect(200);
    desk.run().await;
    let rows = desk.recipients(id, "").await;
    assert_eq!((&rows[0]["address"], &rows[0]["params"]), (&Value::Null, &json!({})));
    assert_eq!((&rows[1]["address"], &rows[1]["params"]), (&before[1]["address"], &before[1]["params"]));
    desk.act(id, "send").await;
    desk.run().await;
    assert_eq!(desk.states_of(id).await, ["no_address", "claimed"]);
}
