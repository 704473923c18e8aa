//! Identities of contacts: naming, creating and changing contacts by them.

use crate::Crm;
use futures::future::join_all;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn a_path_names_a_contact_by_what_identifies_it(kind: Kind) {
    let crm = Crm::open(kind).await;
    let body =
        json!({ "data": { "$phone": "+5511987654321", "$email": "ana@example.com" }, "external_id": "a/1" });
    let contact = crm.app.post("/contacts", &crm.key, body).await.expect(201);
    for path in [
        "phone:+5511987654321",
        "phone:+551187654321",
        "phone:+55%2011%2098765-4321",
        "email:ana@example.com",
        "email:ANA@example.com",
        "external:a%2F1",
    ] {
        let found = crm.app.get(&format!("/contacts/{path}"), &crm.key).await.expect(200);
        assert_eq!(found["id"], contact["id"], "{path}");
    }
    for path in
        ["phone:+5511987654322", "phone:x", "email:x", "external:x", "name:Ana", "ana", "0", "-1", "999999"]
    {
        crm.app.get(&format!("/contacts/{path}"), &crm.key).await.expect_error(404, "not_found");
    }
    let tagged =
        crm.app.put("/contacts/email:ana@example.com/tags/VIP", &crm.key, json!({})).await.expect(200);
    assert_eq!(tagged["tags"], json!(["vip"]));
}

#[testkit::both]
async fn no_two_contacts_share_an_identity(kind: Kind) {
    let crm = Crm::open(kind).await;
    let body = json!({
        "data": {
            "$phone": "+5511987654321", "$email": "ana@example.com", "$username": "ana", "$chat_user_id": "u1",
        },
        "external_id": "e1",
    });
    let ana = crm.app.post("/contacts", &crm.key, body).await.expect(201);
    let other = crm.create(json!({ "$name": "Other", "$phone": "+34612345678" })).await;
    for (data, external_id, param) in [
        (json!({ "$phone": "+55 11 8765-4321" }), Value::Null, "data.$phone"),
        (json!({ "$email": "ANA@EXAMPLE.COM" }), Value::Null, "data.$email"),
        (json!({ "$name": "A", "$username": "ana" }), Value::Null, "data.$username"),
        (json!({ "$chat_user_id": "u1" }), Value::Null, "data.$chat_user_id"),
        (json!({}), json!("e1"), "external_id"),
    ] {
        let body = json!({ "data": data, "external_id": external_id });
        let answer = crm.app.post("/contacts", &crm.key, body.clone()).await;
        assert_eq!(answer.expect_error(409, "duplicate_value").as_deref(), Some(param), "{body}");
        assert_eq!(answer.body["error"]["details"]["existing_id"], ana["id"]);
        let answer = crm.app.patch(&format!("/contacts/{}", other["id"]), &crm.key, body).await;
        answer.expect_error(409, "duplicate_value");
    }
    let unchanged = crm.get(&other["id"]).await;
    assert_eq!((&unchanged["version"], &unchanged["data"]), (&other["version"], &other["data"]));
}

#[testkit::both]
async fn an_upsert_creates_or_changes(kind: Kind) {
    let crm = Crm::open(kind).await;
    let upsert = async |body: Value| crm.app.post("/contacts/upsert", &crm.key, body).await;
    let first = json!({ "data": { "$phone": "+5511987654321", "$name": "Ana" }, "tags": ["a"] });
    let created = upsert(first.clone()).await.expect(200);
    assert_eq!(created["status"], "created");
    assert_eq!(upsert(first).await.expect(200)["status"], "unchanged");
    let by_old_number = json!({ "data": { "$phone": "+551187654321", "$email": "ana@example.com" } });
    let updated = upsert(by_old_number).await.expect(200);
    assert_eq!(updated["status"], "updated");
    assert_eq!(updated["contact"]["id"], created["contact"]["id"]);
    assert_eq!(updated["contact"]["data"]["$phone"], "+5511987654321");
    assert_eq!(updated["contact"]["tags"], json!(["a"]));
    let by_email = json!({ "data": { "$email": "Ana@example.com", "$name": "B" }, "on_match": "skip" });
    let skipped = upsert(by_email).await.expect(200);
    assert_eq!((&skipped["status"], &skipped["contact"]["name"]), (&json!("skipped"), &json!("Ana")));
    let refused = upsert(json!({ "data": { "$email": "ana@example.com" }, "on_match": "error" })).await;
    refused.expect_error(409, "duplicate_value");
    crm.create(json!({ "$email": "li@example.com" })).await;
    let both = json!({ "data": { "$phone": "+5511987654321", "$email": "li@example.com" } });
    upsert(both).await.expect_error(409, "ambiguous_match");
    assert_eq!(
        upsert(json!({ "data": { "$name": "C" } })).await.expect_error(400, "validation_error").as_deref(),
        Some("data")
    );
    let by_key = upsert(json!({ "external_id": "e1", "data": { "$company": "Acme" } })).await.expect(200);
    assert_eq!(by_key["status"], "created");
}

#[testkit::both]
async fn racing_upserts_of_a_number_make_one_contact(kind: Kind) {
    let crm = Crm::open(kind).await;
    let spellings = ["+5511987654321", "+551187654321", "+55 (11) 98765-4321"];
    let requests = (0..64).map(|place| {
        let body = json!({ "data": { "$phone": spellings[place % 3], "$company": format!("{place}") } });
        let crm = &crm;
        async move { crm.app.post("/contacts/upsert", &crm.key, body).await.expect(200) }
    });
    let answers = join_all(requests).await;
    let created = answers.iter().filter(|answer| answer["status"] == "created").count();
    assert_eq!(created, 1);
    let listed = crm.app.get("/contacts", &crm.key).await.expect(200);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["version"], 64);
}

#[testkit::both]
async fn many_contacts_are_written_at_once(kind: Kind) {
    let crm = Crm::open(kind).await;
    let mut rows: Vec<Value> =
        (0..30).map(|place| json!({ "data": { "$email": format!("{place}@example.com") } })).collect();
    rows.push(json!({ "data": { "$email": "0@EXAMPLE.com", "$name": "Zero" }, "tags": ["twice"] }));
    rows.push(json!({ "data": { "$name": "Nobody" } }));
    rows.push(json!({ "data": { "$email": "broken" } }));
    let body = json!({ "mode": "partial", "rows": rows });
    let report = crm.app.post("/contacts/bulk-upsert", &crm.key, body.clone()).await.expect(200);
    let summary = &report["summary"];
    assert_eq!(
        (&summary["created"], &summary["updated"], &summary["failed"]),
        (&json!(30), &json!(1), &json!(2)),
        "{summary}"
    );
    let params: Vec<_> =
        report["results"].as_array().unwrap()[31..].iter().map(|row| row["error"]["param"].clone()).collect();
    assert_eq!(params, ["rows[31].data", "rows[32].data.$email"]);
    let zero = crm.app.get("/contacts/email:0@example.com", &crm.key).await.expect(200);
    assert_eq!((&zero["name"], &zero["tags"]), (&json!("Zero"), &json!(["twice"])));
    let mut atomic = body;
    atomic["mode"] = "atomic".into();
    crm.app.post("/contacts/bulk-upsert", &crm.key, atomic).await.expect_error(400, "validation_error");
    let tags = crm.app.get("/contacts/tags", &crm.key).await.expect(200);
    assert_eq!(tags, json!([{ "name": "twice", "object": "contact_tag", "contact_count": 1 }]));
}
