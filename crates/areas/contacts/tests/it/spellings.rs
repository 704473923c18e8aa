//! Values that look the same are equal: numbers, addresses, ids and names, however they are spelled or copied.

use crate::Crm;
use serde_json::{Value, json};
use testkit::Kind;

/// Spellings of one address: with invisible characters, and as a link.
const SPELLED: [&str; 7] = [
    "\u{200b}ana@example.com",
    "ana@example.com\u{feff}",
    "\u{202a}ana@example.com\u{202c}",
    "mailto:ana@example.com",
    "MAILTO: Ana@Example.com ",
    "\u{a0}ana@example.com\u{a0}",
    "a\u{ad}na@exam\u{2060}ple.com",
];

impl Crm {
    async fn refused(&self, data: Value, param: &str) -> String {
        let answer = self.app.post("/contacts", &self.key, json!({ "data": data })).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{data}");
        answer.body["error"]["message"].as_str().unwrap().to_owned()
    }

    async fn found(&self, key: &str) -> Value {
        let key = key.replace('%', "%25").replace(' ', "%20").replace(['?', '#'], "");
        self.app.get(&format!("/contacts/{key}"), &self.key).await.expect(200)
    }
}

#[testkit::both]
async fn an_address_is_the_same_with_what_nobody_sees(kind: Kind) {
    let crm = Crm::open(kind).await;
    let ana = crm.create(json!({ "$email": "\u{200b}mailto:ana@example.com\u{a0}" })).await;
    assert_eq!(ana["data"]["$email"], "ana@example.com");
    let rows: Vec<Value> = SPELLED.iter().map(|email| json!({ "data": { "$email": email } })).collect();
    for (email, row) in SPELLED.iter().zip(&rows) {
        let answer = crm.app.post("/contacts", &crm.key, row.clone()).await;
        assert_eq!(answer.expect_error(409, "duplicate_value").as_deref(), Some("data.$email"), "{email:?}");
        assert_eq!(crm.found(&format!("email:{email}")).await["id"], ana["id"], "{email:?}");
        let upserted = crm.app.post("/contacts/upsert", &crm.key, row.clone()).await.expect(200);
        assert_eq!(upserted["contact"]["id"], ana["id"], "{email:?}");
    }
    let report = crm.app.post("/contacts/bulk-upsert", &crm.key, json!({ "rows": rows })).await.expect(200);
    assert_eq!(report["summary"]["created"], 0, "{report}");
    for email in [
        "ana@example.com?subject=hi",
        "Ana <ana@example.com>",
        "<ana@example.com>",
        "a@b.c, d@e.f",
        "mailto:",
        "\u{200b}",
    ] {
        crm.refused(json!({ "$email": email }), "data.$email").await;
    }
    // A field of the workspace, and a cell with `typecast`.
    let field = json!({ "label": "Work", "type": "email" });
    crm.app.post("/variables/contact-fields", &crm.key, field).await.expect(201);
    let patch = json!({ "data": { "work": " mailto:li@example.com\u{feff}" } });
    let patched = crm.app.patch(&format!("/contacts/{}", ana["id"]), &crm.key, patch).await.expect(200);
    assert_eq!(patched["data"]["work"], "li@example.com");
}

#[testkit::both]
async fn ids_and_names_are_as_they_look(kind: Kind) {
    let crm = Crm::open(kind).await;
    let body = json!({
        "external_id": " sp\u{200b}1\u{a0}", "tags": ["VIP\u{200b}", "\u{feff}vip ", "❤\u{fe0f}"],
        "data": { "$name": "\u{a0}Ana \u{200b}", "$username": "\u{feff}ana", "$chat_user_id": "US.1\u{200d} " },
    });
    let ana = crm.app.post("/contacts", &crm.key, body.clone()).await.expect(201);
    assert_eq!((&ana["external_id"], &ana["name"]), (&json!("sp1"), &json!("Ana")));
    assert_eq!((&ana["data"]["$username"], &ana["data"]["$chat_user_id"]), (&json!("ana"), &json!("US.1")));
    assert_eq!(ana["tags"], json!(["vip", "❤\u{fe0f}"]));
    for (body, param) in [
        (json!({ "external_id": "sp1" }), "external_id"),
        (json!({ "external_id": "sp1\u{2060} " }), "external_id"),
        (json!({ "data": { "$name": "B", "$username": "an\u{200b}a" } }), "data.$username"),
        (json!({ "data": { "$chat_user_id": "US.1\u{fe0f}" } }), "data.$chat_user_id"),
    ] {
        let answer = crm.app.post("/contacts", &crm.key, body.clone()).await;
        assert_eq!(answer.expect_error(409, "duplicate_value").as_deref(), Some(param), "{body}");
    }
    for key in ["external:sp1", "external: sp1", "external:sp\u{200b}1", "external:sp1\u{a0}"] {
        assert_eq!(crm.found(key).await["id"], ana["id"], "{key:?}");
    }
    let same = crm.app.post("/contacts/upsert", &crm.key, body).await.expect(200);
    assert_eq!(same["status"], "unchanged");
    let path = format!("/contacts/{}", ana["id"]);
    let patch = json!({ "external_id": "\u{200b}sp2" });
    assert_eq!(crm.app.patch(&path, &crm.key, patch).await.expect(200)["external_id"], "sp2");
    for blank in ["\u{a0}", "\u{200b}", " \u{feff} "] {
        crm.refused(json!({ "$name": blank }), "data").await;
        let patch = json!({ "external_id": blank });
        crm.app.patch(&path, &crm.key, patch).await.expect_error(400, "validation_error");
    }
}

#[testkit::both]
async fn a_number_is_read_whatever_was_copied_with_it(kind: Kind) {
    let crm = Crm::open(kind).await;
    let ana = crm.create(json!({ "$phone": "\u{202a}+34\u{a0}612\u{200b}345\u{fe0f}678\u{202c}" })).await;
    assert_eq!(ana["data"]["$phone"], "+34612345678");
    for key in [
        "phone:+34612345678",
        "phone:\u{202a}+34 612 345 678\u{fe0f}",
        "phone:34612345678",
        "phone:tel:+34-612-345-678",
    ] {
        assert_eq!(crm.found(key).await["id"], ana["id"], "{key:?}");
    }
    // A number outside the numbering plan is accepted in international form, if its country has numbers of this
    // length.
    let own = crm.create(json!({ "$phone": "+1 555 012 3456" })).await;
    assert_eq!((&own["data"]["$phone"], &own["data"]["$country"]), (&json!("+15550123456"), &Value::Null));
    for number in ["+1 555 012 345", "+1 555 012 34567", "+999 123 456 789", "555 012 3456"] {
        crm.refused(json!({ "$phone": number }), "data.$phone").await;
    }
    for (old, new) in [("+229 97 44 55 66", "+2290197445566"), ("+225 07 44 55 66", "+2250707445566")] {
        let contact = crm.create(json!({ "$phone": old })).await;
        assert_eq!(contact["data"]["$phone"], new);
        let again = crm.app.post("/contacts", &crm.key, json!({ "data": { "$phone": new } })).await;
        again.expect_error(409, "duplicate_value");
        assert_eq!(crm.found(&format!("phone:{old}")).await["id"], contact["id"]);
    }
}

#[testkit::both]
async fn an_extension_is_never_cut_off(kind: Kind) {
    let crm = Crm::open(kind).await;
    for more in
        [" ext. 12", " x12", ",,12", ";12", "#12", " ramal 12", " extensión 12", " int. 12", " / 555-2369"]
    {
        let message = crm.refused(json!({ "$phone": format!("+1 212 555 2368{more}") }), "data.$phone").await;
        testkit::assert_absent(&message, "+12125552368");
    }
    let message = crm.refused(json!({ "$phone": "tel:+1-212-555-2368;ext=9" }), "data.$phone").await;
    assert!(message.contains("without an extension"), "{message}");
    let upsert = json!({ "data": { "$phone": "+1 212 555 2368 ext. 13", "$name": "B" } });
    crm.app.post("/contacts/upsert", &crm.key, upsert).await.expect_error(400, "validation_error");
    let body = json!({ "phone": "+1 212 555 2368 x12" });
    let answer = crm.app.post("/contacts/normalize-phone", &crm.key, body).await.expect(200);
    assert_eq!((&answer["valid"], &answer["phone"]), (&json!(false), &Value::Null));
    let file =
        "name,phone\nDesk 1,+1 212 555 2368 ext. 12\nDesk 2,+1 212 555 2368 x13\nAll,+1 212 555 2368\n";
    let import = crm.import(json!({ "content": file })).await;
    assert_eq!(
        (&import["counts"]["created"], &import["counts"]["failed"]),
        (&json!(1), &json!(2)),
        "{import}"
    );
    assert_eq!(import["errors"][0]["column"], "phone");
}

#[testkit::both]
async fn a_country_follows_the_number_that_it_was_derived_from(kind: Kind) {
    let crm = Crm::open(kind).await;
    let italian = crm.create(json!({ "$phone": "+39 02 1234 5678" })).await;
    assert_eq!(italian["data"]["$country"], "IT");
    let contact = crm.create(json!({ "$name": "Ana", "$phone": "+34612345678" })).await;
    let patch = async |data: Value| {
        crm.app
            .patch(&format!("/contacts/{}", contact["id"]), &crm.key, json!({ "data": data }))
            .await
            .expect(200)["data"]
            .clone()
    };
    assert_eq!(patch(json!({ "$phone": "+5511987654321" })).await["$country"], "BR");
    assert_eq!(patch(json!({ "$phone": null })).await["$country"], Value::Null);
    assert_eq!(patch(json!({ "$phone": "+2290197445566" })).await["$country"], "BJ");
    assert_eq!(patch(json!({ "$company": "Acme" })).await["$country"], "BJ");
    // The number alone does not determine the country in North America.
    assert_eq!(patch(json!({ "$phone": "+15550123456" })).await["$country"], Value::Null);
    // A country that was set is not derived again.
    assert_eq!(patch(json!({ "$country": "PT" })).await["$country"], "PT");
    assert_eq!(patch(json!({ "$phone": "+34612345678" })).await["$country"], "PT");
    assert_eq!(patch(json!({ "$phone": "+5511987654321", "$country": "AR" })).await["$country"], "AR");
    let data = patch(json!({ "$country": null })).await;
    assert_eq!(data["$country"], "BR");
    let keys: Vec<&String> = data.as_object().unwrap().keys().collect();
    assert!(
        keys.iter().position(|key| *key == "$country") < keys.iter().position(|key| *key == "$company"),
        "{data}"
    );
}

#[testkit::both]
async fn people_who_share_a_number_stay_two(kind: Kind) {
    let crm = Crm::open(kind).await;
    let file = "external_id,name,phone,email\n\
        fam1,Ana,+34632345678,\nfam2,Bob,+34632345678,\nfam3,Cid,,fam@example.com\nfam4,Dee,,fam@example.com\n";
    let import = crm.import(json!({ "content": file, "dry_run": true })).await;
    assert_eq!(
        (&import["counts"]["created"], &import["counts"]["failed"]),
        (&json!(2), &json!(2)),
        "{import}"
    );
    let import = crm.import(json!({ "content": file })).await;
    assert_eq!(
        (&import["counts"]["created"], &import["counts"]["failed"]),
        (&json!(2), &json!(2)),
        "{import}"
    );
    let ana = crm.found("external:fam1").await;
    assert_eq!(ana["name"], "Ana");
    let error = &import["errors"][0];
    assert_eq!(
        (&error["row"], &error["column"], &error["code"]),
        (&json!(2), &json!("external_id"), &json!("duplicate_value"))
    );
    assert!(error["message"].as_str().unwrap().contains(&format!("Its id is {}.", ana["id"])), "{error}");
    let again = crm.import(json!({ "content": file })).await;
    assert_eq!(
        (&again["counts"]["unchanged"], &again["counts"]["failed"]),
        (&json!(2), &json!(2)),
        "{again}"
    );
    let bob = json!({ "external_id": "fam2", "data": { "$name": "Bob", "$phone": "+34632345678" } });
    for on_match in ["update", "skip"] {
        let mut body = bob.clone();
        body["on_match"] = on_match.into();
        let answer = crm.app.post("/contacts/upsert", &crm.key, body).await;
        assert_eq!(answer.expect_error(409, "duplicate_value").as_deref(), Some("external_id"));
        assert_eq!(answer.body["error"]["details"]["existing_id"], ana["id"]);
    }
    let rows = json!({ "mode": "partial", "rows": [bob, { "external_id": "fam1", "data": { "$company": "Acme" } }] });
    let report = crm.app.post("/contacts/bulk-upsert", &crm.key, rows).await.expect(200);
    assert_eq!(report["results"][0]["error"]["code"], "duplicate_value", "{report}");
    assert_eq!(report["results"][1]["status"], "updated", "{report}");
    assert_eq!(crm.found("external:fam1").await["name"], "Ana");
    // A contact without an external id gets the new one.
    let li = crm.create(json!({ "$phone": "+34642345678" })).await;
    let body = json!({ "external_id": "li", "data": { "$phone": "+34642345678" } });
    let taken = crm.app.post("/contacts/upsert", &crm.key, body).await.expect(200);
    assert_eq!(
        (&taken["status"], &taken["contact"]["id"], &taken["contact"]["external_id"]),
        (&json!("updated"), &li["id"], &json!("li"))
    );
    // If rows are matched by number, the external id is an ordinary value.
    let import = crm
        .import(json!({ "content": "external_id,phone\nli2,+34642345678\n", "match_on": ["$phone"] }))
        .await;
    assert_eq!(import["counts"]["updated"], 1, "{import}");
    assert_eq!(crm.found("external:li2").await["id"], li["id"]);
}

#[testkit::both]
async fn a_contact_comes_back_from_the_trash(kind: Kind) {
    let crm = Crm::open(kind).await;
    let body =
        json!({ "external_id": "a1", "tags": ["vip"], "data": { "$name": "Ana", "$phone": "+34612345678" } });
    let ana = crm.app.post("/contacts", &crm.key, body).await.expect(201);
    let path = format!("/contacts/{}", ana["id"]);
    crm.app.post(&format!("{path}/notes"), &crm.key, json!({ "body": "Likes tea." })).await.expect(201);
    let restore = async || crm.app.patch(&path, &crm.key, json!({ "trashed": false })).await;
    assert_eq!(restore().await.expect(200)["version"], ana["version"]);
    let refused = crm.app.patch(&path, &crm.key, json!({ "trashed": true })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("trashed"));
    crm.app.delete(&path, &crm.key).await.expect(200);
    crm.app.patch(&path, &crm.key, json!({ "data": { "$name": "B" } })).await.expect_error(404, "not_found");
    let trash = crm.app.get("/contacts?trashed=true", &crm.key).await.expect(200);
    assert_eq!(trash[0]["id"], ana["id"]);
    let stale = json!({ "trashed": false, "version": 1 });
    crm.app.patch(&path, &crm.key, stale).await.expect_error(409, "version_conflict");
    let patch = json!({ "trashed": false, "version": 2, "data": { "$company": "Acme" } });
    let restored = crm.app.patch(&path, &crm.key, patch).await.expect(200);
    assert_eq!(
        (&restored["external_id"], &restored["tags"], &restored["data"]["$company"]),
        (&json!("a1"), &json!(["vip"]), &json!("Acme"))
    );
    assert_eq!(restored["trashed_at"], Value::Null);
    assert_eq!(crm.found("phone:+34612345678").await["id"], ana["id"]);
    let notes = crm.app.get(&format!("{path}/notes"), &crm.key).await.expect(200);
    assert_eq!(notes[0]["body"], "Likes tea.");
    // Another contact has the number meanwhile.
    crm.app.delete(&path, &crm.key).await.expect(200);
    let other = crm.create(json!({ "$phone": "+34612345678" })).await;
    let taken = restore().await;
    taken.expect_error(409, "duplicate_value");
    assert_eq!(taken.body["error"]["details"]["existing_id"], other["id"]);
    crm.app.delete(&format!("{path}?erase=true"), &crm.key).await.expect(200);
    restore().await.expect_error(404, "not_found");
}
