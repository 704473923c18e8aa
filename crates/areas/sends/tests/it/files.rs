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
