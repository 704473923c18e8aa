//! Required fields reject blank texts in every kind of request.

use super::Shop;
use serde_json::{Value, json};
use testkit::{Answer, Kind};

const BLANK: [&str; 4] = ["", " ", "\t\r\n", "\u{a0}\u{2003}"];

/// Checks that a request was rejected because of a missing value.
#[track_caller]
fn is_refused(answer: &Answer, param: &str) {
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{}", answer.text);
    assert_eq!(answer.body["error"]["errors"][0]["code"], "required", "{}", answer.text);
}

#[testkit::both]
async fn blank_texts_are_no_values(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let item = shop.put_up(json!({ "name": "Ball", "sku": " " })).await;
    for blank in BLANK {
        let body = json!({ "data": { "name": blank } });
        is_refused(&app.post(&shop.at(""), key, body.clone()).await, "data.name");
        is_refused(&app.patch(&shop.of(&item, ""), key, body.clone()).await, "data.name");
        is_refused(&app.put(&shop.of(&item, ""), key, body.clone()).await, "data.name");
        is_refused(&app.post(&shop.of(&item, "/duplicate"), key, body.clone()).await, "data.name");
        is_refused(
            &app.patch(&shop.of(&item, "/fields/name"), key, json!({ "value": blank })).await,
            "value",
        );
        let typecast = json!({ "data": { "name": blank }, "typecast": true });
        is_refused(&app.post(&shop.at(""), key, typecast).await, "data.name");
        let rows = json!({ "rows": [body] });
        is_refused(&app.post(&shop.at("/bulk-create"), key, rows).await, "rows[0].data.name");
        let rows = json!({ "rows": [{ "id": item["id"], "data": { "name": blank } }] });
        is_refused(&app.post(&shop.at("/bulk-update"), key, rows).await, "rows[0].data.name");
        let rows = json!({ "rows": [{ "data": { "sku": "s", "name": blank } }], "match_on": ["sku"] });
        is_refused(&app.post(&shop.at("/bulk-upsert"), key, rows).await, "rows[0].data.name");
    }
    assert_eq!(shop.look(&item).await, item);
    // Other fields accept blank texts.
    app.patch(&shop.of(&item, ""), key, json!({ "data": { "sku": "" } })).await.expect(200);
    app.patch(&shop.of(&item, ""), key, json!({ "data": { "name": " Ball " } })).await.expect(200);
    assert_eq!(shop.look(&item).await["data"]["name"], " Ball ");
}

#[testkit::both]
async fn blank_cells_are_no_values(kind: Kind) {
    let shop = Shop::open(kind).await;
    let path = format!("/collections/{}", shop.collection);
    for content in [
        "name,sku\n\" \",a\nBall,b\n",
        "{\"name\":\" \",\"sku\":\"a\"}\n{\"name\":\"Ball\",\"sku\":\"b\"}\n{\"name\":\"\"}\n",
    ] {
        let new_import = json!({ "content": content, "dry_run": true });
        let import = shop.app.post(&format!("{path}/items/import"), &shop.key, new_import).await.expect(201);
        shop.app.service.jobs.run_due().await.unwrap();
        let done = shop
            .app
            .get(&format!("{path}/imports/{}", import["id"].as_str().unwrap()), &shop.key)
            .await
            .expect(200);
        assert_eq!(done["counts"]["created"], 1, "{done}");
        let errors = done["errors"].as_array().unwrap();
        assert!(!errors.is_empty() && errors.iter().all(|error| error["code"] == "required"), "{done}");
    }
}

#[testkit::both]
async fn a_field_becomes_required_once_no_text_is_blank(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let path = format!("/collections/{}", shop.collection);
    let note = json!({ "label": "Note", "type": "text" });
    let note = app.post(&format!("{path}/fields"), key, note).await.expect(201);
    let field = format!("{path}/fields/{}", note["id"]);
    let item = shop.put_up(json!({ "name": "Ball", "note": " " })).await;
    let refused = app.patch(&field, key, json!({ "required": true })).await;
    assert_eq!(refused.expect_error(409, "invalid_state").as_deref(), Some("required"));
    assert_eq!(refused.body["error"]["details"]["count"], 1);
    let blank = app.patch(&field, key, json!({ "required": true, "default": " " })).await;
    assert_eq!(blank.expect_error(400, "validation_error").as_deref(), Some("default"));
    app.patch(&field, key, json!({ "required": true, "default": "none" })).await.expect(200);
    assert_eq!(shop.look(&item).await["data"]["note"], "none");
    let new = json!({ "label": "More", "type": "email", "required": true, "default": "" });
    let refused = app.post(&format!("{path}/fields"), key, new).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("default"));
}

#[testkit::both]
async fn the_schema_of_items_says_so(kind: Kind) {
    let shop = Shop::open(kind).await;
    let path = format!("/collections/{}/schema", shop.collection);
    let schema = shop.app.get(&path, &shop.key).await.expect(200);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let fits = |name: Value| validator.is_valid(&json!({ "name": name, "sku": "" }));
    assert!(fits(json!("Ball")) && !fits(json!("")) && !fits(json!(" \n")));
}
