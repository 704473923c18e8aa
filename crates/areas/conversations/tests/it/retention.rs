//! Messages, and files that contacts sent, are deleted when the business no longer keeps them.

use crate::support::Desk;
use chrono::Duration;
use serde_json::{Value, json};
use testkit::Kind;

impl Desk {
    /// For how many days the business keeps messages and files.
    async fn keep(&self, retention: Value) {
        let (workspace, patch) = (self.workspace, json!({ "retention": retention }));
        let patch = move || serde_json::from_value(patch.clone()).unwrap();
        self.app.db().write(move |tx| business::set(tx, workspace, patch())).await.unwrap();
    }

    async fn conversation(&self, contact: &Value) -> Value {
        let found = self.get(&format!("/conversations?contact_id={contact}")).await.expect(200);
        found[0].clone()
    }

    /// The attachment of the only message with one.
    async fn attachment(&self, contact: &Value) -> Value {
        let messages = self.messages_of(contact).await;
        let mut with = messages.iter().filter(|message| message["type"] == "document");
        with.next().unwrap()["attachments"][0].clone()
    }
}

#[testkit::both]
async fn messages_are_deleted_when_their_time_is_over(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Is the lamp available?").await;
    let contact = desk.only_contact().await["id"].clone();
    // Without a time all is kept.
    desk.days(400).await;
    assert_eq!(desk.messages_of(&contact).await.len(), 2);
    desk.hear(&ana, "And the table?").await;
    desk.keep(json!({ "messages_days": 7 })).await;
    desk.days(6).await;
    let left = desk.messages_of(&contact).await;
    assert_eq!((left.len(), &left[1]["content"]), (2, &json!("And the table?")));
    assert_eq!(desk.get("/conversations/search?q=available").await.expect(200), json!([]));
    let before = desk.conversation(&contact).await;
    assert_eq!(before["last_message"]["id"], left[0]["id"]);
    // The conversation remains without them, and goes on.
    desk.days(2).await;
    assert_eq!((desk.messages_of(&contact).await, desk.remains().await), (Vec::<Value>::new(), 0));
    let empty = desk.conversation(&contact).await;
    assert_eq!((&empty["id"], &empty["last_message"]), (&before["id"], &Value::Null));
    assert_eq!(empty["last_message_at"], before["last_message_at"]);
    assert!(empty["version"].as_i64() > before["version"].as_i64());
    desk.hear(&ana, "Hello?").await;
    let again = desk.conversation(&contact).await;
    assert_eq!((&again["id"], &again["last_message"]["content"]), (&before["id"], &json!("ok")));
}

#[testkit::both]
async fn what_is_left_of_a_conversation_is_unread(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let contact = desk.only_contact().await["id"].clone();
    desk.app
        .put(&format!("/contacts/{contact}/autopilot"), &desk.key, json!({ "enabled": false }))
        .await
        .expect(200);
    for text in ["One", "Two", "Three"] {
        desk.hear(&ana, text).await;
        desk.app.data.clock.advance(Duration::days(1));
    }
    assert_eq!(desk.conversation(&contact).await["unread_count"], 3);
    desk.keep(json!({ "messages_days": 2 })).await;
    for expected in [2, 1, 0] {
        desk.run().await;
        let conversation = desk.conversation(&contact).await;
        assert_eq!(conversation["unread_count"], expected);
        assert_eq!(desk.messages_of(&contact).await.len(), usize::try_from(expected).unwrap());
        desk.app.data.clock.advance(Duration::days(1));
    }
    assert_eq!(desk.get("/conversations?unread=true").await.expect(200), json!([]));
}

#[testkit::both]
async fn files_are_deleted_before_their_messages(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    let (contact, sent) = desk.document(&ana).await;
    let link = desk.get(&format!("/files/{}", sent["file_id"])).await.expect(200)["url"].clone();
    let link = link.as_str().unwrap()["https://svc.example".len()..].to_owned();
    let read = async || desk.app.ask_beside("GET", &link).send().await.status;
    desk.keep(json!({ "files_days": 30, "messages_days": 60 })).await;
    desk.days(29).await;
    assert_eq!((desk.attachment(&contact).await["status"].clone(), read().await), (json!("ready"), 302));
    desk.days(2).await;
    let expired = desk.attachment(&contact).await;
    for gone in ["permanent_url", "signed_url", "file_id", "size"] {
        assert_eq!(expired[gone], Value::Null, "{expired}");
    }
    assert_eq!((&expired["status"], &expired["name"]), (&json!("expired"), &json!("order.txt")));
    assert_eq!((read().await, desk.is_trashed(&sent["file_id"]).await), (410, true));
    desk.days(31).await;
    assert_eq!((desk.messages_of(&contact).await.len(), desk.remains().await), (0, 0));
}

#[testkit::both]
async fn a_file_outlives_its_message_until_its_own_time_is_over(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    let (contact, sent) = desk.document(&ana).await;
    desk.keep(json!({ "messages_days": 7 })).await;
    desk.days(100).await;
    assert_eq!((desk.messages_of(&contact).await.len(), desk.is_trashed(&sent["file_id"]).await), (0, false));
    desk.keep(json!({ "files_days": 101 })).await;
    desk.days(0).await;
    assert!(!desk.is_trashed(&sent["file_id"]).await);
    desk.days(2).await;
    assert!(desk.is_trashed(&sent["file_id"]).await);
    assert_eq!(desk.count("SELECT count(*) AS n FROM files_without_message").await, 0);
}

#[testkit::both]
async fn a_file_that_something_else_needs_stays(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    let (contact, sent) = desk.document(&ana).await;
    let reply = json!({ "shortcode": "order", "title": "Order", "body": "Your order.", "attachments": [sent["file_id"]] });
    desk.post("/quick-replies", reply).await.expect(201);
    desk.keep(json!({ "files_days": 30 })).await;
    desk.days(31).await;
    assert_eq!(desk.attachment(&contact).await["status"], "expired");
    assert!(!desk.is_trashed(&sent["file_id"]).await);
}

#[testkit::both]
async fn a_file_is_in_use_until_it_is_sent(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    let (contact, received) = desk.document(&ana).await;
    desk.keep(json!({ "files_days": 1 })).await;
    desk.app.data.clock.advance(Duration::hours(25));
    desk.hear(&ana, "Could you send it back to me?").await;
    let body = json!({ "contact_id": contact, "type": "document", "file_id": received["file_id"] });
    let sent = desk.post(&desk.path("/chatnet/send-media"), body).await.expect(200)["message_id"].clone();
    let refused = desk.app.delete(&format!("/files/{}", received["file_id"]), &desk.key).await;
    refused.expect_error(409, "file_in_use");
    assert_eq!(
        refused.body["error"]["details"]["attached_to"],
        json!([{ "type": "message", "id": sent.to_string() }])
    );
    desk.run().await;
    assert!(!desk.is_trashed(&received["file_id"]).await);
    desk.settle().await;
    assert_eq!(desk.status(&sent).await.0, "delivered");
    desk.days(1).await;
    assert!(desk.is_trashed(&received["file_id"]).await);
    // Both messages say so.
    let shown = desk.messages_of(&contact).await;
    let files: Vec<&Value> = shown
        .iter()
        .filter(|one| one["type"] == "document")
        .map(|one| &one["attachments"][0]["status"])
        .collect();
    assert_eq!(files, ["expired", "expired"]);
}
