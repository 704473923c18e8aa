//! Lists of contacts: filters, order, search and tags.

use crate::Crm;
use serde_json::{Value, json};
use testkit::Kind;

/// Opens a workspace with four contacts.
async fn with_people(kind: Kind) -> Crm {
    let crm = Crm::open(kind).await;
    for (data, tags) in [
        (
            json!({ "$name": "Ana Ash", "$stage": "new", "$company": "Acme", "$country": "BR" }),
            json!(["vip", "a"]),
        ),
        (
            json!({ "$name": "Ben Beech", "$stage": "won", "$birthday": "1990-02-03", "$country": "ES" }),
            json!(["a"]),
        ),
        (json!({ "$name": "Cem Cedar", "$stage": "won", "$company": "acme" }), json!([])),
        (json!({ "$name": "Dee Deodar" }), json!(["vip"])),
    ] {
        crm.app.post("/contacts", &crm.key, json!({ "data": data, "tags": tags })).await.expect(201);
    }
    crm
}

/// Encodes a value for a query string.
fn encoded(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[testkit::both]
async fn contacts_are_filtered_and_ordered(kind: Kind) {
    let crm = with_people(kind).await;
    for (query, names) in [
        ("", &["Dee Deodar", "Cem Cedar", "Ben Beech", "Ana Ash"][..]),
        ("sort=$name", &["Ana Ash", "Ben Beech", "Cem Cedar", "Dee Deodar"]),
        ("sort=-$stage,$name", &["Ben Beech", "Cem Cedar", "Ana Ash", "Dee Deodar"]),
        ("filter[$stage]=won&sort=$name", &["Ben Beech", "Cem Cedar"]),
        ("filter[$tags]=VIP&sort=$name", &["Ana Ash", "Dee Deodar"]),
        ("filter[$tags][in][]=vip&filter[$tags][in][]=a&sort=$name", &["Ana Ash", "Ben Beech", "Dee Deodar"]),
        ("filter[$name][ilike]=%25ED%25&sort=$name", &["Cem Cedar"]),
        ("filter[$status]=active&filter[$autopilot]=true&sort=$name&q=ash", &["Ana Ash"]),
        ("q=acme&sort=$name", &["Ana Ash", "Cem Cedar"]),
        ("filter[$status]=blocked", &[]),
        ("filter[status]=active&filter[stage]=won&sort=name", &["Ben Beech", "Cem Cedar"]),
        ("sort=-status,stage,-name", &["Ana Ash", "Cem Cedar", "Ben Beech", "Dee Deodar"]),
        ("filter[tags]=vip&sort=-name&q=name:ash", &["Ana Ash"]),
    ] {
        assert_eq!(crm.names(query).await, names, "{query}");
    }
    let tags = crm.app.get("/contacts/tags", &crm.key).await.expect(200);
    let counted: Vec<_> = tags
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| (tag["name"].as_str().unwrap(), tag["contact_count"].as_i64().unwrap()))
        .collect();
    assert_eq!(counted, [("a", 2), ("vip", 2)]);
}

#[testkit::both]
async fn filters_compare_exact_texts_and_ignore_what_is_malformed(kind: Kind) {
    let crm = with_people(kind).await;
    for (filters, names, ignored) in [
        (json!([{ "field": "$company", "value": "Acme" }]), &["Ana Ash"][..], 0),
        (json!([{ "field": "$company", "value": "a\u{0}b" }]), &[], 0),
        (
            json!([{ "field": "$company", "op": "neq", "value": "Acme" }]),
            &["Ben Beech", "Cem Cedar", "Dee Deodar"],
            0,
        ),
        (json!([{ "field": "$tags", "value": "vip" }]), &["Ana Ash", "Dee Deodar"], 0),
        (json!([{ "field": "$tags", "value": "VIP" }]), &[], 0),
        (json!([{ "field": "$tags", "op": "neq", "value": "vip" }]), &["Ben Beech", "Cem Cedar"], 0),
        (
            json!([{ "field": "$autopilot", "value": true }, { "field": "$stage", "value": "won" }]),
            &["Ben Beech", "Cem Cedar"],
            0,
        ),
        (json!([{ "field": "$birthday", "value": "1990-02-03" }]), &["Ben Beech"], 0),
        (json!([{ "field": "$birthday", "value": "1990-2-3" }]), &[], 0),
        (
            json!([{ "field": "version", "value": 1.0 }]),
            &["Ana Ash", "Ben Beech", "Cem Cedar", "Dee Deodar"],
            0,
        ),
        (
            json!([5, {}, { "field": "shoe", "value": "1" }, { "field": "$stage", "op": "gt", "value": "a" },
            { "field": "$stage", "value": {} }, { "field": "$stage", "value": "new" }]),
            &["Ana Ash"],
            5,
        ),
        (
            json!({ "field": "$stage", "value": "new" }),
            &["Ana Ash", "Ben Beech", "Cem Cedar", "Dee Deodar"],
            1,
        ),
        (json!("[{"), &["Ana Ash", "Ben Beech", "Cem Cedar", "Dee Deodar"], 1),
    ] {
        let query = format!("sort=$name&filters={}", encoded(&filters));
        assert_eq!(crm.names(&query).await, names, "{filters}");
        let answer = crm.app.get(&format!("/contacts?{query}"), &crm.key).await;
        assert_eq!(answer.body["warnings"].as_array().unwrap().len(), ignored, "{filters}");
        let header = answer.headers.get("x-svc-ignored-filters").map(String::as_str);
        assert_eq!(header, (ignored > 0).then_some(ignored.to_string()).as_deref());
        let strict = crm.app.get(&format!("/contacts?strict=true&{query}"), &crm.key).await;
        if ignored == 0 {
            strict.expect(200);
        } else {
            let param = strict.expect_error(400, "validation_error").unwrap();
            assert!(param.starts_with("filters"), "{param}");
        }
    }
}

#[testkit::both]
async fn what_a_contact_shows_is_a_name_wherever_a_field_is_named(kind: Kind) {
    let crm = Crm::open(kind).await;
    for (name, id, tags) in [
        ("Ana", json!("b"), json!(["vip"])),
        ("Ben", json!("a"), json!([])),
        ("Cem", json!(null), json!(["vip", "a"])),
    ] {
        let body = json!({ "data": { "$name": name }, "external_id": id, "tags": tags });
        crm.app.post("/contacts", &crm.key, body).await.expect(201);
    }
    for (query, names) in [
        ("sort=external_id", &["Ben", "Ana", "Cem"][..]),
        ("sort=-external_id", &["Ana", "Ben", "Cem"]),
        ("filter[external_id]=a", &["Ben"]),
        ("filter[external_id][in][]=a&filter[external_id][in][]=b&sort=name", &["Ana", "Ben"]),
        ("filter[external_key]=a", &["Ben"]),
        (r#"filter_tree={"field":"external_id","op":"eq","value":null}"#, &["Cem"]),
        (r#"filters=[{"field":"external_id","value":"b"}]"#, &["Ana"]),
        (
            r#"filters=[{"field":"external_id","op":"neq","value":"b"},{"field":"tags","value":"a"}]"#,
            &["Cem"],
        ),
    ] {
        let (param, value) = query.split_once('=').unwrap();
        let query = if value.starts_with(['{', '[']) {
            format!("{param}={}", encoded(&json!(value)))
        } else {
            query.to_owned()
        };
        assert_eq!(crm.names(&query).await, names, "{query}");
    }
    let tree = json!({ "and": [{ "field": "external_id", "op": "neq", "value": null }, { "field": "tags", "op": "eq", "value": "vip" }] });
    let segment = crm
        .app
        .post("/contacts/segments", &crm.key, json!({ "name": "Known", "filter_tree": tree }))
        .await
        .expect(201);
    let shown = json!({ "and": [{ "field": "external_id", "op": "neq", "value": null }, { "field": "$tags", "op": "eq", "value": "vip" }] });
    assert_eq!(segment["filter_tree"], shown);
    assert_eq!(crm.names(&format!("segment_id={}", segment["id"])).await, ["Ana"]);
    let unknown = crm.app.get("/contacts?sort=external_idd", &crm.key).await;
    assert_eq!(unknown.expect_error(400, "validation_error").as_deref(), Some("sort"));
    assert!(unknown.text.contains("`external_id`"), "{}", unknown.text);
    // A name without `$` means a field of the workspace before a system field. No field can be called `external_id`.
    let taken = crm
        .app
        .post("/variables/contact-fields", &crm.key, json!({ "field_key": "external_id", "type": "text" }))
        .await;
    assert_eq!(taken.expect_error(400, "validation_error").as_deref(), Some("field_key"));
    crm.app
        .post("/variables/contact-fields", &crm.key, json!({ "field_key": "status", "type": "text" }))
        .await
        .expect(201);
    crm.create(json!({ "$name": "Dee", "status": "gold" })).await;
    assert_eq!(crm.names("filter[status]=gold&filter[$status]=active").await, ["Dee"]);
}

#[testkit::both]
async fn tags_come_and_go(kind: Kind) {
    let crm = Crm::open(kind).await;
    let contact = crm.create(json!({ "$name": "Ana" })).await;
    let at = |tag: &str| format!("/contacts/{}/tags/{tag}", contact["id"]);
    crm.app.put(&at("Big%20spender"), &crm.key, json!({})).await.expect(200);
    let twice = crm.app.put(&at("BIG%20SPENDER"), &crm.key, json!({})).await.expect(200);
    assert_eq!((&twice["tags"], &twice["version"]), (&json!(["big spender"]), &json!(2)));
    let answer = crm.app.put(&at("a,b"), &crm.key, json!({})).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("tag"));
    crm.app.delete(&at("small"), &crm.key).await.expect_error(404, "not_found");
    let none = crm.app.delete(&at("big%20spender"), &crm.key).await.expect(200);
    assert_eq!(none["tags"], json!([]));
    assert_eq!(crm.app.get("/contacts/tags", &crm.key).await.expect(200), json!([]));
}
