//! Telephone numbers in the national spelling of the business's country.

use crate::Crm;
use serde_json::{Value, json};
use testkit::Kind;

#[derive(diesel::QueryableByName)]
struct Number {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    n: i64,
}

/// Sets the country of the business.
pub(super) async fn settle(crm: &Crm, country: Value) {
    let patch: business::BusinessPatch = input::read_json(json!({ "country": country }), "", "body").unwrap();
    let workspace = crm.key.workspace;
    let set = crm.app.db().write(move |tx| business::set(tx, workspace, patch.clone())).await;
    set.unwrap();
}

#[testkit::both]
async fn numbers_are_those_of_the_country_of_the_business(kind: Kind) {
    let crm = Crm::open(kind).await;
    let body = json!({ "data": { "$phone": "690711316" } });
    let answer = crm.app.post("/contacts", &crm.key, body.clone()).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("data.$phone"));
    crm.create(json!({ "$name": "Ana" })).await;
    settle(&crm, json!("ES")).await;
    let contact = crm.app.post("/contacts", &crm.key, body).await.expect(201);
    assert_eq!(contact["data"]["$phone"], "+34690711316");
    for spelled in [
        "690 711 316",
        "690.711.316",
        "690/711/316",
        "690-71-13-16",
        "0034690711316",
        "0034 690 711 316",
        "+34 690711316",
        "+34 (0) 690 711 316",
        "(+34) 690 711 316",
    ] {
        let upsert = json!({ "data": { "$phone": spelled, "$company": "Bikes" } });
        let found = crm.app.post("/contacts/upsert", &crm.key, upsert).await;
        assert_eq!(found.expect(200)["contact"]["id"], contact["id"], "{spelled}");
        let asked = json!({ "phone": spelled });
        let said = crm.app.post("/contacts/normalize-phone", &crm.key, asked).await.expect(200);
        assert_eq!(said["phone"], "+34690711316", "{spelled}");
    }
    for reference in ["690711316", "0034690711316", "34690711316", "690%20711%20316"] {
        let found = crm.app.get(&format!("/contacts/phone:{reference}"), &crm.key).await.expect(200);
        assert_eq!(found["id"], contact["id"], "{reference}");
    }
    for query in [
        "q=690711316",
        "q=690%20711%20316",
        "q=0711316",
        "q=%2B34690711316",
        "q=0034690711316",
        "q=690711",
        "filter[$phone]=690711316",
        "filter[$phone]=690%20711%20316",
    ] {
        let found = crm.app.get(&format!("/contacts?{query}"), &crm.key).await.expect(200);
        let ids: Vec<&Value> = found.as_array().unwrap().iter().map(|one| &one["id"]).collect();
        assert_eq!(ids, [&contact["id"]], "{query}");
    }
    // The country of a request wins over the country of the business.
    let asked = json!({ "phone": "(11) 98765-4321", "country": "BR" });
    let said = crm.app.post("/contacts/normalize-phone", &crm.key, asked).await.expect(200);
    assert_eq!(said["phone"], "+5511987654321");
    settle(&crm, Value::Null).await;
    let answer = crm.app.post("/contacts", &crm.key, json!({ "data": { "$phone": "690711317" } })).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("data.$phone"));
}

#[testkit::both]
async fn exports_write_numbers_as_they_are(kind: Kind) {
    let crm = Crm::open(kind).await;
    settle(&crm, json!("ES")).await;
    crm.create(json!({ "$name": "=Ana", "$phone": "690711316", "$company": "+34 600 000 000", "$email": "-5@example.com" })).await;
    let text = crm.export("format=csv&fields=$name,$phone,$company,$email").await;
    assert!(text.ends_with(",'=Ana,+34690711316,+34 600 000 000,'-5@example.com\r\n"), "{text}");
    let import = crm.import(json!({ "content": text })).await;
    assert_eq!(
        (&import["status"], &import["counts"]["unchanged"]),
        (&json!("completed"), &json!(1)),
        "{import}"
    );
}

#[testkit::both]
async fn search_finds_numbers_that_were_there_before_the_upgrade(kind: Kind) {
    let crm = Crm::open(kind).await;
    let contact = crm.create(json!({ "$name": "Ana", "$phone": "+34690711316" })).await;
    let found = async || {
        let found = crm.app.get("/contacts?q=0711316", &crm.key).await.expect(200);
        found.as_array().unwrap().iter().map(|one| one["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(found().await, [contact["id"].clone()]);
    // With few contacts, search scans them and does not need the index of words.
    crm.app.sql("DELETE FROM item_search").await;
    let migration = match kind {
        Kind::Sqlite => include_str!("../../../../../migrations/sqlite/0047_telephone_words/up.sql"),
        Kind::Postgres => include_str!("../../../../../migrations/postgres/0047_telephone_words/up.sql"),
    };
    for statement in migration.split(";\n").filter(|statement| !statement.trim().is_empty()) {
        crm.app.sql(statement).await;
    }
    while crm.app.service.jobs.run_due().await.unwrap() > 0 {}
    assert_eq!(found().await, [contact["id"].clone()]);
    let words = crm.app.db().read(|read| {
        let counted = diesel::sql_query("SELECT COUNT(*) AS n FROM item_search");
        Ok(diesel::RunQueryDsl::get_result::<Number>(counted, read.connection())?)
    });
    assert_eq!(words.await.unwrap().n, 1);
}

#[testkit::both]
async fn the_country_changes_while_contacts_are_written(kind: Kind) {
    let crm = Crm::open(kind).await;
    let fields = json!({ "label": "Second number", "type": "phone" });
    crm.app.post("/variables/contact-fields", &crm.key, fields).await.expect(201);
    for country in ["ES", "PT", "ES"] {
        let create = async |number: i64| {
            let body = json!({ "data": { "$name": format!("Ana {number}") } });
            crm.app.post("/contacts", &crm.key, body).await.expect(201);
        };
        let writers = (0..8).map(create);
        tokio::join!(futures::future::join_all(writers), settle(&crm, json!(country)));
    }
    let data = json!({ "$name": "Bea", "second_number": "690711316" });
    assert_eq!(crm.create(data).await["data"]["second_number"], "+34690711316");
}
