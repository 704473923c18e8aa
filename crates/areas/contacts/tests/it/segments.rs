//! Segments of contacts.

use crate::Crm;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn a_dynamic_segment_has_who_matches(kind: Kind) {
    let crm = Crm::open(kind).await;
    let tree = json!({ "field": "$stage", "op": "eq", "value": "won" });
    let new = json!({ "name": "Winners", "filter_tree": tree });
    let segment = crm.app.post("/contacts/segments", &crm.key, new.clone()).await.expect(201);
    assert_eq!((&segment["kind"], &segment["filter_tree"]), (&json!("dynamic"), &tree));
    let path = format!("/contacts/segments/{}", segment["id"]);
    let size = async || crm.app.get(&path, &crm.key).await.expect(200)["contact_count"].clone();
    assert_eq!(size().await, 0);
    let ana = crm.create(json!({ "$name": "Ana", "$stage": "won" })).await;
    crm.create(json!({ "$name": "Ben", "$stage": "new" })).await;
    assert_eq!(size().await, 1);
    let query = format!("segment_id={}", segment["id"]);
    assert_eq!(crm.names(&query).await, ["Ana"]);
    crm.app
        .patch(&format!("/contacts/{}", ana["id"]), &crm.key, json!({ "data": { "$stage": "lost" } }))
        .await
        .expect(200);
    assert_eq!(crm.names(&query).await, [""; 0]);
    let patch = json!({ "name": "Everybody", "filter_tree": { "not": { "field": "$name", "op": "eq", "value": "" } } });
    let changed = crm.app.patch(&path, &crm.key, patch).await.expect(200);
    assert_eq!((&changed["name"], &changed["version"]), (&json!("Everybody"), &json!(2)));
    assert_eq!(size().await, 2);
    let list = crm.app.get("/contacts/segments", &crm.key).await.expect(200);
    assert_eq!(list, json!([changed]));
    crm.app
        .post("/contacts/segments", &crm.key, json!({ "name": " everybody ", "contact_ids": [] }))
        .await
        .expect_error(409, "duplicate_value");
    crm.app
        .patch(&path, &crm.key, json!({ "add_contact_ids": [ana["id"]] }))
        .await
        .expect_error(400, "validation_error");
    crm.app.delete(&path, &crm.key).await.expect(200);
    assert_eq!(
        crm.app.get(&format!("/contacts?{query}"), &crm.key).await.expect_error(404, "not_found").as_deref(),
        Some("segment_id")
    );
}

#[testkit::both]
async fn a_static_segment_has_who_was_put_in(kind: Kind) {
    let crm = Crm::open(kind).await;
    let mut ids = Vec::new();
    for name in ["Ana", "Ben", "Cem"] {
        ids.push(crm.create(json!({ "$name": name })).await["id"].clone());
    }
    let new = json!({ "name": "Guests", "contact_ids": [ids[1], ids[0], ids[0]] });
    let segment = crm.app.post("/contacts/segments", &crm.key, new).await.expect(201);
    let path = format!("/contacts/segments/{}", segment["id"]);
    let query = format!("sort=$name&segment_id={}", segment["id"]);
    assert_eq!((&segment["kind"], &segment["filter_tree"]), (&json!("static"), &Value::Null));
    assert_eq!(crm.names(&query).await, ["Ana", "Ben"]);
    let change = json!({ "add_contact_ids": [ids[2]], "remove_contact_ids": [ids[0]] });
    crm.app.patch(&path, &crm.key, change).await.expect(200);
    assert_eq!(crm.names(&query).await, ["Ben", "Cem"]);
    assert_eq!(crm.app.get(&path, &crm.key).await.expect(200)["contact_count"], 2);
    assert!(crm.get(&ids[1]).await["data"].get("$segments").is_none());
    let unknown = json!({ "add_contact_ids": [ids[0], 999_999] });
    let answer = crm.app.patch(&path, &crm.key, unknown).await;
    assert_eq!(answer.expect_error(404, "not_found").as_deref(), Some("add_contact_ids[1]"));
    assert_eq!(crm.names(&query).await, ["Ben", "Cem"]);
    for (body, param) in [
        (json!({ "name": "Neither" }), "filter_tree"),
        (json!({ "name": "Both", "contact_ids": [], "filter_tree": {} }), "contact_ids"),
        (
            json!({ "name": "Wrong", "filter_tree": { "field": "shoe", "op": "eq", "value": 1 } }),
            "filter_tree.field",
        ),
    ] {
        let answer = crm.app.post("/contacts/segments", &crm.key, body).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param));
    }
    crm.app.delete(&path, &crm.key).await.expect(200);
    crm.app.deliver().await;
    let events = crm.app.get("/events?type=contact.segment.*", &crm.key).await.expect(200);
    assert_eq!(events.as_array().unwrap().len(), 2);
}
