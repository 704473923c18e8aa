//! Notes on contacts.

use crate::Crm;
use serde_json::json;
use testkit::Kind;

#[testkit::both]
async fn notes_are_written_changed_and_deleted(kind: Kind) {
    let crm = Crm::open(kind).await;
    let contact = crm.create(json!({ "$name": "Ana" })).await;
    let notes = format!("/contacts/{}/notes", contact["id"]);
    let note = crm.app.post(&notes, &crm.key, json!({ "body": "Call her." })).await.expect(201);
    assert_eq!((&note["contact_id"], &note["pinned"]), (&contact["id"], &json!(false)));
    let newer = crm.app.post(&notes, &crm.key, json!({ "body": "Later.", "pinned": true })).await.expect(201);
    let path = format!("{notes}/{}", note["id"]);
    let changed =
        crm.app.patch(&path, &crm.key, json!({ "body": "Called her.", "version": 1 })).await.expect(200);
    assert_eq!((&changed["body"], &changed["version"]), (&json!("Called her."), &json!(2)));
    crm.app.patch(&path, &crm.key, json!({ "version": 1 })).await.expect_error(409, "version_conflict");
    assert_eq!(crm.app.get(&notes, &crm.key).await.expect(200), json!([newer, changed]));
    let page = crm.app.get(&format!("{notes}?paginate=true&limit=1"), &crm.key).await;
    assert_eq!((page.body["data"].clone(), page.body["has_more"].as_bool()), (json!([newer]), Some(true)));
    let other = crm.create(json!({ "$name": "Ben" })).await;
    let foreign = format!("/contacts/{}/notes/{}", other["id"], note["id"]);
    crm.app.delete(&foreign, &crm.key).await.expect_error(404, "not_found");
    crm.app.delete(&path, &crm.key).await.expect(200);
    crm.app.patch(&path, &crm.key, json!({ "pinned": true })).await.expect_error(404, "not_found");
    let answer = crm.app.post(&notes, &crm.key, json!({ "body": " " })).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("body"));
    crm.app.deliver().await;
    for name in ["contact.note.created", "contact.note.updated", "contact.note.deleted"] {
        let events = crm.app.get(&format!("/events?type={name}"), &crm.key).await.expect(200);
        assert_eq!(events[0]["data"]["contact_id"], contact["id"], "{name}");
    }
}
