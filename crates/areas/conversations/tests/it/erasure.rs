//! What is kept about a contact is deleted with it, when it is deleted permanently.

use crate::support::Desk;
use serde_json::json;
use testkit::Kind;

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
