//! Broadcasts whose contacts are deleted, or whose messages pass the retention of the business.

use crate::support::{Desk, all, open};
use serde_json::{Value, json};
use testkit::Kind;

impl Desk {
    /// Sets the retention of messages and files.
    async fn keep(&self, retention: Value) {
        let (workspace, patch) = (self.workspace, json!({ "retention": retention }));
        let patch = move || serde_json::from_value(patch.clone()).unwrap();
        self.app.db().write(move |tx| business::set(tx, workspace, patch())).await.unwrap();
    }
}

#[testkit::both]
async fn what_is_still_to_be_done_stays(kind: Kind) {
    let desk = open(kind).await;
    desk.keep(json!({ "messages_days": 1 })).await;
    desk.crowd(3).await;
    let id = desk.draft(all(), json!({})).await;
    desk.act(id, "send").await;
    desk.run().await;
    desk.days(2).await;
    assert_eq!(desk.messages().await.len(), 3, "messages that wait to be sent");
    desk.act(id, "pause").await;
    desk.days(2).await;
    assert_eq!(desk.messages().await.len(), 3, "messages of a broadcast that is paused");
    desk.act(id, "cancel").await;
    desk.days(2).await;
    assert_eq!((desk.messages().await.len(), desk.remains().await), (0, 0));
    // Contents and addresses are gone, but the states remain.
    let over = desk.broadcast(id).await;
    assert_eq!(
        (&over["status"], &over["counts"]["total"], &over["counts"]["cancelled"]),
        (&json!("cancelled"), &json!(3), &json!(3))
    );
    for row in desk.recipients(id, "").await {
        assert_eq!((&row["state"], &row["message_id"]), (&json!("cancelled"), &Value::Null));
        assert_eq!((&row["address"], &row["params"]), (&Value::Null, &json!({})));
    }
}

#[testkit::both]
async fn what_was_forgotten_is_not_sent_again(kind: Kind) {
    let desk = open(kind).await;
    desk.keep(json!({ "messages_days": 1 })).await;
    desk.crowd(2).await;
    let id = desk.draft(all(), json!({})).await;
    desk.act(id, "send").await;
    desk.run().await;
    for row in desk.recipients(id, "").await {
        desk.report(&row, "failed", Some("undeliverable")).await;
    }
    desk.app.sql("DELETE FROM message_outbox").await;
    desk.seconds(3).await;
    let before = desk.broadcast(id).await;
    assert_eq!((&before["status"], &before["counts"]["failed"]), (&json!("completed"), &json!(2)));
    desk.days(2).await;
    assert_eq!((desk.messages().await.len(), &desk.broadcast(id).await["counts"]), (0, &before["counts"]));
    desk.post(&format!("/broadcasts/{id}/send"), json!({ "retry": "failed" })).await.expect(200);
    desk.run().await;
    let states: Vec<String> = desk.states(id).await.into_iter().map(|(_, state)| state).collect();
    assert_eq!((states, desk.messages().await.len()), (vec!["no_address".to_owned(); 2], 0));
}

#[testkit::both]
async fn what_waits_is_not_sent_and_its_broadcast_ends(kind: Kind) {
    let desk = open(kind).await;
    desk.crowd(3).await;
    let id = desk.draft(all(), json!({})).await;
    desk.act(id, "send").await;
    desk.run().await;
    let before = desk.recipients(id, "").await;
    // The second message is being handed to the network.
    let second = &before[1]["message_id"];
    desk.app.sql(format!("UPDATE message_outbox SET claimed_epoch = 99 WHERE message_id = {second}")).await;
    desk.erase(&before[0]["contact_id"]).await;
    desk.erase(&before[1]["contact_id"]).await;
    assert_eq!(desk.kept_of(&before[0]["contact_id"]).await, 0);
    assert!(desk.kept_of(&before[1]["contact_id"]).await > 0);
    let rows = desk.recipients(id, "").await;
    assert_eq!((&rows[0]["state"], &rows[0]["skip_reason"]), (&json!("skipped"), &json!("no_address")));
    assert_eq!((&rows[1]["state"], &rows[1]["address"]), (&json!("claimed"), &Value::Null));
    desk.app.sql(format!("UPDATE message_outbox SET claimed_epoch = NULL WHERE message_id = {second}")).await;
    desk.app.data.clock.advance(chrono::Duration::seconds(61));
    desk.run().await;
    assert_eq!((desk.kept_of(&before[1]["contact_id"]).await, desk.remains().await), (0, 0));
    desk.let_pass(5).await;
    let over = desk.broadcast(id).await;
    assert_eq!((&over["status"], &over["counts"]["skipped"]), (&json!("completed"), &json!(2)), "{over}");
    assert_eq!(desk.messages().await.len(), 1, "that of the third");
}
