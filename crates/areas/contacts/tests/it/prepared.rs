//! Contacts whose values are prepared before the transaction. They equal those that the transaction would have
//! prepared, even if fields changed in between.

use crate::Crm;
use serde_json::{Value, json};
use testkit::Kind;

/// Removes the members of a contact that always differ.
fn bare(mut contact: Value) -> Value {
    let fields = contact.as_object_mut().unwrap();
    for other in ["id", "created_at", "updated_at", "app_url"] {
        assert!(fields.shift_remove(other).is_some(), "{other}");
    }
    contact
}

#[testkit::both]
async fn the_first_contact_of_a_workspace_is_like_the_next(kind: Kind) {
    let crm = Crm::open(kind).await;
    let body = json!({
        "data": {
            "$name": "Ana Souza", "$phone": "+55 (11) 98765-4321", "$email": "Ana@Example.com", "$stage": "won",
            "$birthday": "1990-04-02",
        },
        "tags": ["VIP", "vip"], "external_id": "A-1",
    });
    let mut all = Vec::new();
    // The first contact cannot be prepared, because the workspace has no shape yet.
    for _ in 0..2 {
        let made = crm.app.post("/contacts", &crm.key, body.clone()).await.expect(201);
        for finds in ["q=souza", "filter[$stage]=won", "filter[$phone]=%2B5511987654321", "filter[tags]=vip"]
        {
            assert_eq!(crm.names(finds).await, ["Ana Souza"], "{finds}");
        }
        let clash = crm.app.post("/contacts", &crm.key, body.clone()).await;
        clash.expect_error(409, "duplicate_value");
        assert_eq!(clash.body["error"]["details"]["existing_id"], made["id"]);
        let erased = format!("/contacts/{}?erase=true", made["id"]);
        crm.app.delete(&erased, &crm.key).await.expect(200);
        all.push(bare(made));
    }
    assert_eq!(all[0], all[1]);
    assert_eq!(all[0]["data"]["$phone"], "+5511987654321");
}

#[testkit::both]
async fn a_contact_has_the_fields_that_there_are_when_it_is_stored(kind: Kind) {
    let crm = Crm::open(kind).await;
    crm.create(json!({ "$name": "First" })).await;
    let field = json!({ "field_key": "level", "label": "Level", "type": "number", "default": 3 });
    crm.app.post("/variables/contact-fields", &crm.key, field).await.expect(201);
    let with_default = crm.create(json!({ "$name": "Second" })).await;
    assert_eq!(with_default["data"]["level"], 3, "{with_default}");
    let refused = json!({ "data": { "$name": "Third", "level": "much" } });
    let refused = crm.app.post("/contacts", &crm.key, refused).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("data.level"));
    crm.app.delete("/variables/contact-fields/level", &crm.key).await.expect(200);
    let unknown = json!({ "data": { "$name": "Fourth", "level": 1 } });
    let unknown = crm.app.post("/contacts", &crm.key, unknown).await;
    assert_eq!(unknown.expect_error(400, "validation_error").as_deref(), Some("data.level"));
}
