//! Views: saving, changing, locking and copying them, and the effects of deleted fields.

use super::{field, make};
use crate::{events, full, number};
use serde_json::{Value, json};
use testkit::{Key, Kind, TestApp};

async fn shop(app: &TestApp, key: &Key) -> String {
    let body = json!({ "name": "Shop", "fields": [
        { "label": "Name", "type": "text" },
        { "label": "Price", "type": "number" },
        { "label": "Status", "type": "select", "options": { "choices": [{ "label": "New" }, { "label": "Sold" }] } },
        { "label": "Notes", "type": "json" },
    ] });
    make(app, key, body).await
}

#[testkit::both]
async fn a_view_is_saved_and_changed(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let path = shop(&app, &key).await;
    let body = json!({
        "name": "Cheap", "type": "board", "filter_tree": { "and": [{ "field": "price", "op": "lt", "value": 10 }] },
        "sort": ["-price", "name"], "visible_fields": ["name", "price"], "group_by": ["status"], "search": "shoe", "is_default": true,
    });
    let made = app.post(&format!("{path}/views"), &key, body.clone()).await.expect(201);
    for (name, value) in body.as_object().unwrap() {
        assert_eq!(&made[name], value, "{name}");
    }
    assert_eq!(
        (&made["object"], &made["valid"], &made["invalid_reasons"]),
        (&json!("view"), &json!(true), &json!([]))
    );
    let address = format!("{path}/views/{}", made["id"]);
    assert_eq!(app.get(&address, &key).await.expect(200), made);
    let plain = app.post(&format!("{path}/views"), &key, json!({ "name": "All" })).await.expect(201);
    assert_eq!(
        (&plain["type"], &plain["filter_tree"], &plain["sort"], &plain["position"]),
        (&json!("grid"), &json!(null), &json!([]), &json!(1))
    );
    app.post(&format!("{path}/views"), &key, json!({ "name": "all " }))
        .await
        .expect_error(409, "duplicate_value");
    // A collection has at most one default view.
    let other = format!("{path}/views/{}", plain["id"]);
    app.patch(&other, &key, json!({ "is_default": true })).await.expect(200);
    assert_eq!(app.get(&address, &key).await.expect(200)["is_default"], false);
    let changed = app.patch(&address, &key, json!({ "filter_tree": null, "sort": ["name"], "visible_fields": null, "search": null, "group_by": [] })).await.expect(200);
    assert_eq!(
        (&changed["filter_tree"], &changed["sort"], &changed["visible_fields"], &changed["version"]),
        (&json!(null), &json!(["name"]), &json!(null), &json!(2))
    );
    let (kind, emitted) = events(&app).await.pop().unwrap();
    assert_eq!((kind.as_str(), &emitted["changed"]["sort"]["new"]), ("view.updated", &json!(["name"])));
    assert_eq!(app.patch(&address, &key, json!({ "sort": ["name"] })).await.expect(200)["version"], 2);
    let late = app.patch(&address, &key, json!({ "name": "X", "version": 1 })).await;
    assert_eq!(late.expect_error(409, "version_conflict").as_deref(), Some("version"));
    let details = &late.body["error"]["details"];
    assert_eq!((&details["current_version"], &details["current"]["version"]), (&json!(2), &json!(2)));
    let list = app.get(&format!("{path}/views"), &key).await.expect(200);
    assert_eq!(
        list.as_array().unwrap().iter().map(|view| view["name"].clone()).collect::<Vec<Value>>(),
        ["Cheap", "All"]
    );
    let page = app.get(&format!("{path}/views?paginate=true&limit=1"), &key).await;
    let cursor = page.body["next_cursor"].as_str().unwrap();
    let rest =
        app.get(&format!("{path}/views?paginate=true&starting_after={cursor}"), &key).await.expect(200);
    assert_eq!(rest[0]["name"], "All");
    let copy = app.post(&format!("{other}/duplicate"), &key, json!({})).await.expect(201);
    assert_eq!((&copy["name"], &copy["is_default"]), (&json!("All (copy)"), &json!(false)));
    let again = app.post(&format!("{other}/duplicate"), &key, json!({})).await.expect(201);
    assert_eq!(again["name"], "All (copy 2)");
    app.delete(&other, &key).await.expect(200);
    app.get(&other, &key).await.expect_error(404, "not_found");
    let stranger = full(&app).await;
    for (method, address) in [
        ("GET", address.clone()),
        ("PATCH", address.clone()),
        ("DELETE", address.clone()),
        ("POST", format!("{address}/duplicate")),
        ("GET", format!("{path}/views")),
    ] {
        app.ask(method, &address).key(&stranger).json(&json!({})).send().await.expect_error(404, "not_found");
    }
}

#[testkit::both]
async fn what_is_wrong_with_a_view_is_named(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let path = shop(&app, &key).await;
    for (body, param) in [
        (json!({}), "name"),
        (json!({ "name": "V", "type": "pie" }), "type"),
        (json!({ "name": "V", "sort": ["prize"] }), "sort[0]"),
        (json!({ "name": "V", "sort": ["notes"] }), "sort[0]"),
        (
            json!({ "name": "V", "filter_tree": { "field": "price", "op": "like", "value": "1" } }),
            "filter_tree.value",
        ),
        (
            json!({ "name": "V", "filter_tree": { "and": [{ "field": "nope", "op": "eq", "value": 1 }] } }),
            "filter_tree.and[0].field",
        ),
        (json!({ "name": "V", "visible_fields": ["name", "nope"] }), "visible_fields[1]"),
        (json!({ "name": "V", "group_by": ["notes"] }), "group_by[0]"),
        (json!({ "name": "V", "materialized_sort": true }), "materialized_sort"),
    ] {
        let refused = app.post(&format!("{path}/views"), &key, body.clone()).await;
        let found = refused.expect_error(400, "validation_error");
        assert!(
            found.as_deref().is_some_and(|found| found.starts_with(param.trim_end_matches(".value"))),
            "{body}: {found:?}"
        );
    }
}

#[testkit::both]
async fn a_locked_view_can_only_be_unlocked(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let path = shop(&app, &key).await;
    let made =
        app.post(&format!("{path}/views"), &key, json!({ "name": "V", "locked": true })).await.expect(201);
    let address = format!("{path}/views/{}", made["id"]);
    app.patch(&address, &key, json!({ "name": "W" })).await.expect_error(409, "invalid_state");
    app.delete(&address, &key).await.expect_error(409, "invalid_state");
    let copy = app.post(&format!("{address}/duplicate"), &key, json!({ "name": "Copy" })).await.expect(201);
    assert_eq!(copy["locked"], false);
    let open = app.patch(&address, &key, json!({ "locked": false, "name": "W" })).await.expect(200);
    assert_eq!((&open["locked"], &open["name"]), (&json!(false), &json!("W")));
    app.delete(&address, &key).await.expect(200);
}

#[testkit::both]
async fn a_view_of_a_field_that_is_gone_is_not_valid(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let path = shop(&app, &key).await;
    let tree = json!({ "field": "price", "op": "lt", "value": 10 });
    let made = app
        .post(
            &format!("{path}/views"),
            &key,
            json!({ "name": "V", "filter_tree": tree, "visible_fields": ["status"] }),
        )
        .await
        .expect(201);
    let price = format!("{path}/fields/{}", field(&app, &key, &path, "price").await["id"]);
    let refused = app.delete(&price, &key).await;
    refused.expect_error(409, "field_in_use");
    assert_eq!(refused.body["error"]["details"]["used_by"][0]["id"], made["id"]);
    app.delete(&format!("{price}?force=true"), &key).await.expect(200);
    let address = format!("{path}/views/{}", made["id"]);
    let broken = app.get(&address, &key).await.expect(200);
    assert_eq!((&broken["valid"], broken["invalid_reasons"].as_array().unwrap().len()), (&json!(false), 1));
    // A new field with the old key is a different field.
    app.post(&format!("{path}/fields"), &key, json!({ "field_key": "price", "type": "number" }))
        .await
        .expect(201);
    assert_eq!(app.get(&address, &key).await.expect(200)["valid"], false);
    let mended = app.patch(&address, &key, json!({ "filter_tree": tree })).await.expect(200);
    assert_eq!(mended["valid"], true);
}

#[testkit::both]
async fn a_view_may_have_an_index_for_its_order(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let path = shop(&app, &key).await;
    let body = json!({ "name": "V", "sort": ["-price", "name"], "materialized_sort": true });
    let made = app.post(&format!("{path}/views"), &key, body).await.expect(201);
    let kept = "SELECT COUNT(*) AS n FROM collection_indexes WHERE origin = 'view' AND status <> 'dropping'";
    assert_eq!(number(&app, kept).await, 1);
    let address = format!("{path}/views/{}", made["id"]);
    let copy = app.post(&format!("{address}/duplicate"), &key, json!({})).await.expect(201);
    assert_eq!(number(&app, kept).await, 1);
    app.delete(&address, &key).await.expect(200);
    assert_eq!(number(&app, kept).await, 1);
    app.patch(&format!("{path}/views/{}", copy["id"]), &key, json!({ "materialized_sort": false }))
        .await
        .expect(200);
    assert_eq!(number(&app, kept).await, 0);
}
