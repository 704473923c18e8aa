//! Merging contacts, and finding possible duplicates.

mod graphs;
mod racing;

use crate::Crm;
use futures::future::join_all;
use serde_json::{Value, json};
use testkit::Kind;

async fn merge(crm: &Crm, target: &Value, body: Value) -> testkit::Answer {
    crm.app.post(&format!("/contacts/{target}/merge"), &crm.key, body).await
}

#[testkit::both]
async fn of_two_contacts_one_remains(kind: Kind) {
    let crm = Crm::open(kind).await;
    let create = async |data: Value, tags: Value, external_id: &str| {
        let body = json!({ "data": data, "tags": tags, "external_id": external_id });
        crm.app.post("/contacts", &crm.key, body).await.expect(201)
    };
    let ana = create(
        json!({ "$name": "Ana Souza", "$phone": "+5511987654321", "$company": "Souza" }),
        json!(["vip"]),
        "shop-1",
    )
    .await;
    let other = create(
        json!({ "$name": "Ana S.", "$phone": "+34612345678", "$email": "ana@example.com", "$company": "Filhos" }),
        json!(["vip", "newsletter"]), "shop-2",
    ).await;
    for contact in [&ana, &other] {
        let notes = format!("/contacts/{}/notes", contact["id"]);
        crm.app.post(&notes, &crm.key, json!({ "body": contact["name"] })).await.expect(201);
    }
    let path = format!("/contacts/{}/opt-out", other["id"]);
    crm.app.post(&path, &crm.key, json!({ "source": "message", "proof": "STOP" })).await.expect(200);
    let segment = json!({ "name": "Friends", "contact_ids": [other["id"]] });
    let segment = crm.app.post("/contacts/segments", &crm.key, segment).await.expect(201);

    let body = json!({ "source_id": other["id"], "fields": { "$company": "source" } });
    let merged = merge(&crm, &ana["id"], body.clone()).await.expect(200);
    assert_eq!(merged["id"], ana["id"]);
    assert_eq!(merged["data"]["$name"], "Ana Souza");
    assert_eq!(merged["data"]["$company"], "Filhos");
    assert_eq!(merged["data"]["$email"], "ana@example.com");
    assert_eq!(merged["external_id"], "shop-1");
    assert_eq!(merged["tags"], json!(["vip", "newsletter"]));
    assert_eq!(merged["opted_out"], true);
    assert_eq!(merged["consents"][0]["proof"], "STOP");
    assert_eq!(merged["merged_ids"], json!([other["id"]]));
    let identities = json!([
        { "kind": "phone", "value": "+5511987654321", "primary": true },
        { "kind": "phone", "value": "+34612345678", "primary": false },
        { "kind": "email", "value": "ana@example.com", "primary": true },
    ]);
    assert_eq!(merged["identities"], identities);

    let other_id = other["id"].to_string();
    for name in
        [&*other_id, "phone:+34612345678", "email:ana@example.com", "external:shop-2", "external:shop-1"]
    {
        let found = crm.app.get(&format!("/contacts/{name}"), &crm.key).await.expect(200);
        assert_eq!(found, merged, "{name}");
    }
    let notes = crm.app.get(&format!("/contacts/{other_id}/notes"), &crm.key).await.expect(200);
    assert_eq!(notes.as_array().unwrap().len(), 2);
    assert_eq!(crm.names(&format!("segment_id={}", segment["id"])).await, ["Ana Souza"]);
    assert_eq!(crm.names("trashed=true").await, ["Ana S."]);
    let taken = json!({ "data": { "$phone": "+34 612 345 678" } });
    let answer = crm.app.post("/contacts", &crm.key, taken.clone()).await;
    assert_eq!(answer.expect_error(409, "duplicate_value").as_deref(), Some("data.$phone"));
    assert_eq!(answer.body["error"]["details"]["existing_id"], ana["id"]);
    let known = crm.app.post("/contacts/upsert", &crm.key, taken).await.expect(200);
    assert_eq!(known["contact"]["id"], ana["id"]);
    let activity = crm.app.get(&format!("/contacts/{}/activity", ana["id"]), &crm.key).await.expect(200);
    let ids: Vec<&Value> = activity.as_array().unwrap().iter().map(|entry| &entry["contact_id"]).collect();
    assert!(ids.contains(&&ana["id"]) && ids.contains(&&other["id"]), "{activity}");
    assert!(!activity.to_string().contains("$match_keys"), "{activity}");

    crm.app.deliver().await;
    let events = crm.app.get("/events?type=contact.merged", &crm.key).await.expect(200);
    assert_eq!(events[0]["data"]["contact_id"], ana["id"]);
    assert_eq!(events[0]["data"]["merged_id"], other["id"]);
    merge(&crm, &ana["id"], body).await.expect_error(409, "invalid_state");
    crm.app.delete(&format!("/contacts/{other_id}"), &crm.key).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn what_cannot_be_merged_stays_as_it_is(kind: Kind) {
    let crm = Crm::open(kind).await;
    let ana = crm.create(json!({ "$name": "Ana" })).await;
    let ben = crm.create(json!({ "$name": "Ben" })).await;
    for (body, status, code, param) in [
        (json!({ "source_id": ana["id"] }), 409, "invalid_state", Some("source_id")),
        (json!({ "source_id": 999_999 }), 404, "not_found", Some("source_id")),
        (json!({}), 400, "validation_error", Some("source_id")),
        (json!({ "source_id": ben["id"], "prefer": "oldest" }), 400, "validation_error", Some("prefer")),
        (
            json!({ "source_id": ben["id"], "fields": { "$x": "source" } }),
            400,
            "validation_error",
            Some("fields.$x"),
        ),
        (
            json!({ "source_id": ben["id"], "fields": { "$match_keys": "source" } }),
            400,
            "validation_error",
            Some("fields.$match_keys"),
        ),
        (json!({ "source_id": ben["id"], "version": 9 }), 409, "version_conflict", Some("version")),
    ] {
        let answer = merge(&crm, &ana["id"], body.clone()).await;
        let found = answer.expect_error(status, code);
        assert!(status == 409 || found.as_deref() == param, "{body}: {found:?}");
    }
    merge(&crm, &json!(999_999), json!({ "source_id": ben["id"] })).await.expect_error(404, "not_found");
    assert_eq!(
        (crm.get(&ana["id"]).await["version"].clone(), crm.get(&ben["id"]).await["version"].clone()),
        (json!(1), json!(1))
    );
}

#[testkit::both]
async fn chains_and_crossing_merges_end_in_one_contact(kind: Kind) {
    let crm = Crm::open(kind).await;
    let mut ids = Vec::new();
    for number in 0..6 {
        let contact = crm
            .create(json!({ "$name": format!("Ana {number}"), "$phone": format!("+3461234567{number}") }))
            .await;
        let notes = format!("/contacts/{}/notes", contact["id"]);
        crm.app.post(&notes, &crm.key, json!({ "body": "x" })).await.expect(201);
        ids.push(contact["id"].clone());
    }
    // Merge each contact into the next, then crosswise at the same time.
    merge(&crm, &ids[1], json!({ "source_id": ids[0] })).await.expect(200);
    merge(&crm, &ids[2], json!({ "source_id": ids[1], "prefer": "source" })).await.expect(200);
    let crossing = [(2, 3), (3, 2), (4, 5), (5, 4), (3, 4), (4, 3)];
    let crossing =
        crossing.map(|(target, source)| merge(&crm, &ids[target], json!({ "source_id": ids[source] })));
    for answer in join_all(crossing).await {
        assert!([200, 404, 409].contains(&answer.status), "{:?}", answer.body);
    }
    let live = crm.names("sort=id").await;
    let mut notes = 0;
    for name in &live {
        let found = crm
            .app
            .get(&format!("/contacts?q=%22{}%22", name.replace(' ', "%20")), &crm.key)
            .await
            .expect(200);
        let path = format!("/contacts/{}/notes", found[0]["id"]);
        notes += crm.app.get(&path, &crm.key).await.expect(200).as_array().unwrap().len();
    }
    assert_eq!(notes, 6, "{live:?}");
    for (number, id) in ids.iter().enumerate() {
        let by_id = crm.get(id).await;
        let by_phone =
            crm.app.get(&format!("/contacts/phone:+3461234567{number}"), &crm.key).await.expect(200);
        assert_eq!(by_id, by_phone);
        assert!(by_id["trashed_at"].is_null());
    }
}

#[testkit::both]
async fn items_and_links_follow_a_merged_contact(kind: Kind) {
    let crm = Crm::open(kind).await;
    let ana = crm.create(json!({ "$name": "Ana" })).await;
    let other = crm.create(json!({ "$name": "Ana B" })).await;
    let fields = json!({ "name": "Orders", "fields": [
        { "field_key": "title", "label": "Title", "type": "text" },
        { "field_key": "buyers", "label": "Buyers", "type": "contact" },
    ] });
    let collection = crm.app.post("/collections", &crm.key, fields).await.expect(201);
    let items = format!("/collections/{}/items", collection["id"]);
    let mut created = Vec::new();
    for buyers in [json!([other["id"]]), json!([ana["id"], other["id"]]), json!([ana["id"]])] {
        let body = json!({ "data": { "title": "x", "buyers": buyers } });
        created.push(crm.app.post(&items, &crm.key, body).await.expect(201));
    }
    let links = format!("{items}/{}/links", created[0]["id"]);
    let link = json!({ "to": { "type": "contact", "id": other["id"] } });
    crm.app.post(&links, &crm.key, link).await.expect(201);
    merge(&crm, &ana["id"], json!({ "source_id": other["id"] })).await.expect(200);
    while crm.app.service.jobs.run_due().await.unwrap() > 0 {}
    for item in &created {
        let item = crm.app.get(&format!("{items}/{}", item["id"]), &crm.key).await.expect(200);
        assert_eq!(item["data"]["buyers"], json!([ana["id"]]));
    }
    let shown = crm.app.get(&links, &crm.key).await.expect(200);
    assert_eq!(shown[0]["to"]["id"], ana["id"], "{shown}");
    assert_eq!(shown[0]["linked"]["title"], "Ana", "{shown}");
}

#[testkit::both]
async fn duplicates_from_an_earlier_version_are_found(kind: Kind) {
    let crm = Crm::open(kind).await;
    let ana = crm.create(json!({ "$name": "Ana Souza" })).await;
    let other = crm.create(json!({ "$name": "SOUZA, Ana" })).await;
    // Contacts of version 0.14 have their match keys among their values.
    let as_before =
        r#"UPDATE items SET data = replace(data, '{"$name"', '{"$match_keys":["n:ana souza"],"$name"')"#;
    crm.app.sql(as_before).await;
    crm.app.sql("DELETE FROM item_search").await;
    let path = format!("/contacts/{}/duplicates", ana["id"]);
    assert_eq!(crm.app.get(&path, &crm.key).await.expect(200), json!([]));
    let migration = match kind {
        Kind::Sqlite => include_str!("../../../../../../migrations/sqlite/0033_match_keys/up.sql"),
        Kind::Postgres => include_str!("../../../../../../migrations/postgres/0033_match_keys/up.sql"),
    };
    for statement in migration.split(";\n").filter(|statement| !statement.trim().is_empty()) {
        crm.app.sql(statement).await;
    }
    crm.app.service.jobs.run_due().await.unwrap();
    let found = crm.app.get(&path, &crm.key).await.expect(200);
    assert_eq!((&found[0]["id"], found.as_array().unwrap().len()), (&other["id"], 1));
    let contact = crm.get(&ana["id"]).await;
    assert_eq!((&contact["data"]["$name"], &contact["version"]), (&json!("Ana Souza"), &json!(1)));
    assert_eq!(contact["data"].get("$match_keys"), None);
    crm.app
        .sql("DELETE FROM item_search WHERE EXISTS (SELECT 1 FROM items WHERE data LIKE '%match_keys%')")
        .await;
    assert_eq!(crm.app.get(&path, &crm.key).await.expect(200), found, "nothing of it is left");
}

#[testkit::both]
async fn duplicates_are_found_with_reasons(kind: Kind) {
    let crm = Crm::open(kind).await;
    let ana = crm
        .create(json!({ "$name": "Ana Souza", "$phone": "+5511912345678", "$email": "ana.souza@gmail.com" }))
        .await;
    let phone = crm.create(json!({ "$name": "Aninha", "$phone": "+351912345678" })).await;
    let mail = crm.create(json!({ "$name": "A. Souza", "$email": "anasouza+news@gmail.com" })).await;
    let name = crm.create(json!({ "$name": "SOUZA, Ana" })).await;
    crm.create(json!({ "$name": "Bruno Lima", "$phone": "+5511911112222" })).await;
    let path = format!("/contacts/{}/duplicates", ana["id"]);
    let found = crm.app.get(&path, &crm.key).await.expect(200);
    let found: Vec<(&Value, &Value)> =
        found.as_array().unwrap().iter().map(|one| (&one["id"], &one["reasons"])).collect();
    let (variant, mailbox, same) =
        (json!(["same_phone_variant"]), json!(["same_email_variant", "similar_name"]), json!(["same_name"]));
    assert_eq!(found, [(&phone["id"], &variant), (&mail["id"], &mailbox), (&name["id"], &same)]);
    let first = crm.app.get(&format!("{path}?paginate=true&limit=1"), &crm.key).await;
    let cursor = first.body["next_cursor"].as_str().unwrap();
    let page = crm.app.get(&format!("{path}?paginate=true&limit=1&starting_after={cursor}"), &crm.key).await;
    assert_eq!(page.expect(200)[0]["id"], mail["id"]);
    assert_eq!(page.expect(200)[0]["contact"]["name"], "A. Souza");
    merge(&crm, &ana["id"], json!({ "source_id": mail["id"] })).await.expect(200);
    let patch = json!({ "data": { "$name": "Carla" } });
    crm.app.patch(&format!("/contacts/{}", name["id"]), &crm.key, patch).await.expect(200);
    let left = crm.app.get(&path, &crm.key).await.expect(200);
    assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
    // Match keys are internal: no query can name them.
    let answer = crm.app.get("/contacts?sort=$match_keys", &crm.key).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("sort"));
    assert_eq!(crm.names("q=12345678").await, ["Aninha", "Ana Souza"], "both numbers end so");
}
