//! What is kept about a contact is deleted with it, when it is deleted permanently.

use crate::broadcasts::{all, open};
use crate::support::Desk;
use serde_json::{Value, json};
use testkit::Kind;

impl Desk {
    /// What is kept of conversations with a contact.
    async fn kept_of(&self, contact: &Value) -> i64 {
        let of = |table: &str| format!("(SELECT count(*) FROM {table} WHERE contact_id = {contact})");
        let tables = ["conversations", "messages", "message_attachments"];
        self.count(&format!("SELECT {} AS n", tables.map(of).join(" + "))).await
    }

    async fn erase(&self, contact: &Value) {
        self.app.delete(&format!("/contacts/{contact}?erase=true"), &self.key).await.expect(200);
        self.run().await;
    }
}

#[testkit::both]
async fn conversations_messages_and_files_are_deleted(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    let (contact, sent) = desk.document(&ana).await;
    for number in 0..130 {
        desk.network.write(&ana.user_id, &format!("Word {number}")).unwrap();
    }
    desk.settle().await;
    let ben = desk.customer("Ben", "+5511987654322");
    desk.hear(&ben, "Hello").await;
    let others = desk.get("/conversations").await.expect(200)[0]["contact_id"].clone();
    let before = desk.messages_of(&others).await;
    desk.erase(&contact).await;
    assert_eq!((desk.kept_of(&contact).await, desk.remains().await), (0, 0));
    assert!(desk.is_trashed(&sent["file_id"]).await);
    assert_eq!(desk.get("/conversations/search?q=word").await.expect(200), json!([]));
    assert_eq!(desk.messages_of(&others).await, before);
    // Who writes again is somebody new.
    desk.hear(&ana, "It is me").await;
    let again = desk.get("/conversations").await.expect(200)[0].clone();
    assert_ne!(again["contact_id"], contact);
    assert_eq!(again["last_message"]["content"], "ok");
}

#[testkit::both]
async fn the_same_is_done_when_the_time_in_the_trash_is_over(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    let (contact, sent) = desk.document(&ana).await;
    let kept = desk.kept_of(&contact).await;
    desk.app.delete(&format!("/contacts/{contact}"), &desk.key).await.expect(200);
    desk.days(29).await;
    assert_eq!(desk.kept_of(&contact).await, kept);
    desk.days(2).await;
    desk.run().await;
    assert_eq!((desk.kept_of(&contact).await, desk.remains().await), (0, 0));
    assert!(desk.is_trashed(&sent["file_id"]).await);
}

#[testkit::both]
async fn what_waits_is_not_sent_and_its_broadcast_ends(kind: Kind) {
    let desk = open(kind).await;
    desk.crowd(3).await;
    let id = desk.draft(all(), json!({})).await;
    desk.act(id, "send").await;
    desk.run().await;
    let before = desk.recipients(id, "").await;
    // The second is being handed to the network at this moment.
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

#[testkit::both]
async fn a_file_that_something_else_needs_stays(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    let (contact, sent) = desk.document(&ana).await;
    let reply = json!({ "shortcode": "order", "title": "Order", "body": "Your order.", "attachments": [sent["file_id"]] });
    desk.post("/quick-replies", reply).await.expect(201);
    desk.erase(&contact).await;
    assert_eq!(desk.kept_of(&contact).await, 0);
    assert!(!desk.is_trashed(&sent["file_id"]).await);
}
