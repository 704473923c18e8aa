//! Files that are sent.

use crate::support::Desk;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::Kind;

#[testkit::both]
async fn files_of_a_contact_are_listed_with_those_of_its_messages(kind: Kind) {
    let desk = Desk::open(kind).await;
    desk.post("/variables/contact-fields", json!({ "label": "Contract", "type": "file" })).await.expect(201);
    let ana = desk.customer("Ana", "+5511987654321");
    let (contact, received) = desk.document(&ana).await;
    let (own, deleted, sent) = (desk.upload().await, desk.upload().await, desk.upload().await);
    for file in [&deleted, &sent, &sent] {
        let body = json!({ "contact_id": contact, "type": "document", "file_id": file });
        desk.post(&desk.path("/chatnet/send-media"), body).await.expect(200);
        desk.settle().await;
    }
    let patch = json!({ "data": { "contract": [own] } });
    desk.app.patch(&format!("/contacts/{contact}"), &desk.key, patch).await.expect(200);
    desk.app.delete(&format!("/files/{deleted}"), &desk.key).await.expect(200);
    let path = format!("/contacts/{contact}/files");
    let listed = desk.get(&path).await.expect(200);
    let ids: Vec<&Value> = listed.as_array().unwrap().iter().map(|file| &file["id"]).collect();
    assert_eq!(ids, [&received["file_id"], &own, &sent]);
    let (mut pages, mut after) = (Vec::new(), String::new());
    loop {
        let page = desk.get(&format!("{path}?paginate=true&limit=1{after}")).await;
        pages.extend(page.expect(200).as_array().unwrap().iter().map(|file| file["id"].clone()));
        let Some(cursor) = page.body["next_cursor"].as_str() else { break };
        after = format!("&starting_after={cursor}");
    }
    assert_eq!(pages.iter().collect::<Vec<_>>(), ids);
}

#[testkit::both]
async fn a_file_that_the_network_has_lost_is_uploaded_again(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let contact = desk.only_contact().await["id"].clone();
    let file = desk.upload().await;
    let send = async || {
        let body = json!({ "contact_id": contact, "type": "document", "file_id": file });
        let sent = desk.post(&desk.path("/chatnet/send-media"), body).await.expect(200);
        desk.settle().await;
        desk.status(&sent["message_id"]).await.0
    };
    assert_eq!((send().await, send().await), ("delivered".to_owned(), "delivered".to_owned()));
    desk.network.lose_files();
    assert_eq!((send().await, send().await), ("delivered".to_owned(), "delivered".to_owned()));
    // It is kept for 30 days, and not used on the last.
    desk.app.data.clock.advance(chrono::Duration::days(29));
    desk.hear(&ana, "Hi").await;
    assert_eq!(send().await, "delivered");
    let media = desk.media();
    assert_eq!((&media[0], &media[2]), (&media[1], &media[3]));
    assert_eq!(media.iter().collect::<BTreeSet<_>>().len(), 3, "{media:?}");
}

#[testkit::both]
async fn a_message_whose_file_was_deleted_fails(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let contact = desk.only_contact().await["id"].clone();
    let file = desk.upload().await;
    let body = json!({ "contact_id": contact, "type": "document", "file_id": file });
    let sent = desk.post(&desk.path("/chatnet/send-media"), body).await.expect(200);
    desk.app.delete(&format!("/files/{file}?force=true"), &desk.key).await.expect(200);
    desk.settle().await;
    assert_eq!(
        desk.status(&sent["message_id"]).await,
        ("failed".to_owned(), Some("media_invalid".to_owned()))
    );
    assert_eq!(desk.sent(&ana), ["ok"]);
}

#[testkit::both]
async fn a_person_sends_a_file_and_the_agent_pauses(kind: Kind) {
    let desk = Desk::with_settings(kind, |settings| settings.takeover_pause_minutes = 30).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let contact = desk.only_contact().await["id"].clone();
    let path = format!("/contacts/{contact}/operator-messages");
    let file = desk.upload().await;
    let attachment = json!({ "file_id": file, "caption": "Our prices" });
    let sent = desk.post(&path, json!({ "attachment": attachment })).await.expect(200);
    assert_eq!(sent["message"]["body"], "Our prices");
    desk.settle().await;
    assert_eq!(desk.status(&sent["message_id"]).await.0, "delivered");
    let received = desk.network.transcript().pop().unwrap();
    assert_eq!((received.kind.as_str(), &received.content["caption"]), ("document", &json!("Our prices")));
    let message = desk.messages_of(&contact).await.into_iter().find(|one| one["id"] == sent["message_id"]);
    let message = message.unwrap();
    assert_eq!((&message["type"], &message["content"]), (&json!("document"), &json!("Our prices")));
    assert_eq!((&message["sender"]["type"], &message["attachments"][0]["file_id"]), (&json!("user"), &file));
    desk.hear(&ana, "Thanks").await;
    assert_eq!(desk.sent(&ana), ["ok", "document"]);
}

#[testkit::both]
async fn files_that_a_person_cannot_send_are_refused(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let contact = desk.only_contact().await["id"].clone();
    let path = format!("/contacts/{contact}/operator-messages");
    let file = desk.upload().await;
    for (body, code, param) in [
        (json!({ "text": "Hi", "attachment": { "file_id": file } }), "validation_error", "text"),
        (json!({ "attachment": { "file_id": 999_999 } }), "not_found", "attachment.file_id"),
        (json!({ "attachment": {} }), "validation_error", "attachment.file_id"),
        (
            json!({ "attachment": { "file_id": file, "type": "image" } }),
            "validation_error",
            "attachment.file_id",
        ),
        (
            json!({ "attachment": { "file_id": file, "caption": "x".repeat(1_025) } }),
            "validation_error",
            "attachment.caption",
        ),
        (
            json!({ "attachment": { "file_id": file, "caption": " " } }),
            "validation_error",
            "attachment.caption",
        ),
    ] {
        let status = if code == "not_found" { 404 } else { 400 };
        let refused = desk.post(&path, body.clone()).await;
        assert_eq!(refused.expect_error(status, code).as_deref(), Some(param), "{body}");
    }
    let voice = b"OggS\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0OpusHead";
    let voice = desk.upload_as("voice.ogg", voice).await;
    let refused = desk.post(&path, json!({ "attachment": { "file_id": voice, "caption": "Listen" } })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("attachment.caption"));
    desk.post(&path, json!({ "attachment": { "file_id": voice } })).await.expect(200);
    desk.settle().await;
    assert_eq!(desk.sent(&ana), ["ok", "audio"]);
}

#[testkit::both]
async fn a_large_picture_does_not_pass_as_a_document(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let contact = desk.only_contact().await["id"].clone();
    let mut picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0".to_vec();
    picture.resize(5 * 1_024 * 1_024 + 1, 0);
    let file = desk.upload_as("large.png", &picture).await;
    let body = json!({ "contact_id": contact, "type": "document", "file_id": file });
    let refused = desk.post(&desk.path("/chatnet/send-media"), body).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("file_id"));
}
