//! Creating, changing and deleting contacts.

use crate::Crm;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn a_contact_is_created_changed_and_deleted(kind: Kind) {
    let crm = Crm::open(kind).await;
    let body = json!({
        "data": { "$name": "Ana Souza", "$phone": "+55 11 98765-4321", "$email": "Ana@Example.com", "$language": "PT-br" },
        "tags": ["VIP", "vip", "Newsletter"], "external_id": "shop-1",
    });
    let contact = crm.app.post("/contacts", &crm.key, body).await.expect(201);
    assert_eq!(
        contact["data"],
        json!({
            "$name": "Ana Souza", "$phone": "+5511987654321", "$email": "Ana@Example.com", "$language": "pt-BR",
            "$country": "BR", "$created_via": "api",
        })
    );
    assert_eq!(contact["tags"], json!(["vip", "newsletter"]));
    assert_eq!(contact["status"], "active");
    assert_eq!(contact["autopilot"], json!({ "enabled": true, "paused_until": null }));
    assert_eq!(contact["opted_out"], false);
    assert_eq!(contact.get("app_url"), Some(&Value::Null), "there is no such page");
    let path = format!("/contacts/{}", contact["id"]);
    let patch = json!({ "data": { "$stage": "won", "$email": null }, "status": "blocked", "version": 1 });
    let changed = crm.app.patch(&path, &crm.key, patch.clone()).await.expect(200);
    assert_eq!((&changed["version"], &changed["status"]), (&json!(2), &json!("blocked")));
    assert_eq!(changed["data"]["$email"], Value::Null);
    assert_eq!(changed["tags"], contact["tags"]);
    crm.app.patch(&path, &crm.key, patch).await.expect_error(409, "version_conflict");
    let same = crm.app.patch(&path, &crm.key, json!({ "status": "blocked" })).await.expect(200);
    assert_eq!(same["version"], 2);
    crm.app.delete(&path, &crm.key).await.expect(200);
    crm.app.get(&path, &crm.key).await.expect_error(404, "not_found");
    crm.app.get("/contacts/external:shop-1", &crm.key).await.expect_error(404, "not_found");
    let trashed = crm.app.get(&format!("{path}?trashed=true"), &crm.key).await.expect(200);
    assert!(trashed["trashed_at"].is_string());
    // A contact in the trash frees its identities.
    crm.create(json!({ "$phone": "+5511987654321" })).await;
    crm.app.delete(&format!("{path}?erase=true"), &crm.key).await.expect(200);
    crm.app.get(&format!("{path}?trashed=true"), &crm.key).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn what_a_contact_cannot_be_is_refused(kind: Kind) {
    let crm = Crm::open(kind).await;
    for (body, param) in [
        (json!({}), "data"),
        (json!({ "data": { "$company": "Nobody" } }), "data"),
        (json!({ "data": { "$name": " " } }), "data"),
        (json!({ "data": { "$phone": "12" } }), "data.$phone"),
        (json!({ "data": { "$email": "ana" } }), "data.$email"),
        (json!({ "data": { "$name": "A", "$country": "XX" } }), "data.$country"),
        (json!({ "data": { "$name": "A", "$timezone": "Mars/Base" } }), "data.$timezone"),
        (json!({ "data": { "$name": "A", "$language": "english!" } }), "data.$language"),
        (json!({ "data": { "$name": "A", "$stage": "bought" } }), "data.$stage"),
        (json!({ "data": { "$name": "A", "$status": "blocked" } }), "data.$status"),
        (json!({ "data": { "$name": "A", "$nmae": "B" } }), "data.$nmae"),
        (json!({ "data": { "$name": "A" }, "tags": ["a,b"] }), "data.$tags"),
    ] {
        let answer = crm.app.post("/contacts", &crm.key, body.clone()).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
    let contact = crm.create(json!({ "$name": "Ana" })).await;
    let nothing_left = json!({ "data": { "$name": null } });
    let answer = crm.app.patch(&format!("/contacts/{}", contact["id"]), &crm.key, nothing_left).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("data"));
    assert_eq!(crm.names("").await, ["Ana"]);
}

#[testkit::both]
async fn events_tell_of_contacts(kind: Kind) {
    let crm = Crm::open(kind).await;
    let contact = crm.create(json!({ "$name": "Ana" })).await;
    let path = format!("/contacts/{}", contact["id"]);
    crm.app.patch(&path, &crm.key, json!({ "data": { "$stage": "new" } })).await.expect(200);
    crm.app.delete(&path, &crm.key).await.expect(200);
    crm.app.delete(&format!("{path}?erase=true"), &crm.key).await.expect(200);
    crm.app.deliver().await;
    let events = crm.app.get("/events?type=contact.*", &crm.key).await.expect(200);
    let mut events: Vec<&Value> = events.as_array().unwrap().iter().collect();
    events.reverse();
    let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["contact.created", "contact.updated", "contact.trashed", "contact.deleted"]);
    assert!(events.iter().all(|event| event["data"]["contact_id"] == contact["id"]));
    assert_eq!(events[1]["data"]["changed"], json!({ "$stage": { "old": null, "new": "new" } }));
    assert_eq!(events[0]["data"]["app_url"], contact["app_url"]);
}

#[testkit::both]
async fn fields_of_items_name_contacts(kind: Kind) {
    let crm = Crm::open(kind).await;
    let contact = crm.create(json!({ "$name": "Ana" })).await;
    let collection = json!({ "name": "Orders", "fields": [{ "label": "Buyer", "type": "contact" }, { "label": "Words", "type": "tags" }] });
    let collection = crm.app.post("/collections", &crm.key, collection).await.expect(201);
    let items = format!("/collections/{}/items", collection["id"]);
    let order = json!({ "data": { "buyer": [contact["id"]], "words": ["Red", "blue", "RED"] } });
    let order = crm.app.post(&items, &crm.key, order).await.expect(201);
    assert_eq!(order["data"], json!({ "buyer": [contact["id"]], "words": ["red", "blue"] }));
    let found =
        crm.app.get(&format!("{items}?filter[buyer]={}&filter[words]=Blue", contact["id"]), &crm.key).await;
    assert_eq!(found.expect(200)[0]["id"], order["id"]);
    // An item is not a contact.
    for id in [order["id"].clone(), json!(999_999)] {
        let answer = crm.app.post(&items, &crm.key, json!({ "data": { "buyer": [id] } })).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("data.buyer"));
    }
    let contact = format!("/collections/{}/items/{}", collection["id"], contact["id"]);
    crm.app.get(&contact, &crm.key).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn what_is_the_same_everywhere_is_listed(kind: Kind) {
    let crm = Crm::open(kind).await;
    let list = async |path: &str| crm.app.get(path, &crm.key).await.expect(200).as_array().unwrap().clone();
    let fields = list("/contacts/system-fields").await;
    let of = |key: &str| fields.iter().find(|field| field["key"] == key).unwrap().clone();
    assert_eq!((&of("$phone")["unique"], &of("$phone")["read_only"]), (&json!(true), &json!(false)));
    assert_eq!(of("$status")["read_only"], true);
    let stages = list("/contacts/pipeline-stages").await;
    assert_eq!(of("$stage")["choices"].as_array().unwrap().len(), stages.len());
    assert_eq!((&stages[0]["key"], &stages[0]["position"]), (&json!("new"), &json!(0)));
    assert!(list("/contacts/sources").await.iter().any(|source| source["key"] == "referral"));
    let exact: Vec<_> = list("/contacts/filter-operators").await;
    assert_eq!(exact.iter().filter(|op| op["filters"] == true).count(), 2);
    for (phone, country, expected) in [
        ("(11) 98765-4321", json!("BR"), json!("+5511987654321")),
        ("+55 11 8765 4321", Value::Null, json!("+5511987654321")),
        ("12", Value::Null, Value::Null),
    ] {
        let body = json!({ "phone": phone, "country": country });
        let answer = crm.app.post("/contacts/normalize-phone", &crm.key, body).await.expect(200);
        assert_eq!((&answer["phone"], answer["valid"].as_bool().unwrap()), (&expected, !expected.is_null()));
        assert_eq!(answer["reason"].is_null(), answer["valid"].as_bool().unwrap());
    }
}
