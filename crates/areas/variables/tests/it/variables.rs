//! Variables: values, secrets and references.

use crate::number;
use serde_json::{Value, json};
use testkit::{Key, Kind, TestApp};

async fn create(app: &TestApp, key: &Key, name: &str, kind: &str, value: Value) -> testkit::Answer {
    app.post("/variables", key, json!({ "key": name, "type": kind, "value": value })).await
}

#[testkit::both]
async fn a_variable_is_kept_as_it_was_set(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, stranger) = (app.bare_key().await, app.bare_key().await);
    let new = json!({
        "key": "shop.phone", "type": "string", "value": "+34911234567", "description": "Calls.", "group": " Shop ",
        "env": "live", "metadata": { "a": "b" },
    });
    let made = app.post("/variables", &key, new).await.expect(201);
    let shown = json!({
        "id": made["id"], "object": "variable", "key": "shop.phone", "type": "string", "value": "+34911234567",
        "has_value": true, "description": "Calls.", "group": "Shop", "env": "live", "used_by_count": 0,
        "metadata": { "a": "b" }, "version": 1, "last_set_at": made["created_at"], "created_at": made["created_at"],
        "updated_at": made["created_at"],
    });
    assert_eq!(made, shown);
    let path = format!("/variables/{}", made["id"]);
    assert_eq!(app.get(&path, &key).await.expect(200), shown);
    assert_eq!(app.get("/variables", &key).await.expect(200), json!([shown]));
    for answer in [
        app.get(&path, &stranger).await,
        app.get(&format!("{path}/usages"), &stranger).await,
        app.patch(&path, &stranger, json!({ "value": "x" })).await,
        app.delete(&path, &stranger).await,
    ] {
        answer.expect_error(404, "not_found");
    }
    app.data.clock.advance(chrono::Duration::seconds(5));
    let noted = app.patch(&path, &key, json!({ "description": null, "group": "Office" })).await.expect(200);
    assert_eq!(
        (&noted["description"], &noted["group"], &noted["version"]),
        (&Value::Null, &json!("Office"), &json!(2))
    );
    assert_eq!((&noted["value"], &noted["last_set_at"]), (&shown["value"], &shown["last_set_at"]));
    let set = app.patch(&path, &key, json!({ "value": "+34917654321", "version": 2 })).await.expect(200);
    assert_eq!((&set["value"], &set["last_set_at"]), (&json!("+34917654321"), &set["updated_at"]));
    app.patch(&path, &key, json!({ "value": "x", "version": 2 })).await.expect_error(409, "version_conflict");
    for fixed in [json!({ "key": "other" }), json!({ "type": "json" }), json!({ "env": "all" })] {
        app.patch(&path, &key, fixed).await.expect_error(400, "validation_error");
    }
    app.delete(&path, &key).await.expect(200);
    app.get(&path, &key).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn values_have_the_type_of_the_variable(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let values = [
        ("string", json!("")),
        ("string", json!("é\n\"{{vars.a}}\"")),
        ("number", json!(0.1)),
        ("number", json!(-3)),
        ("boolean", json!(false)),
        ("json", json!(null)),
        ("json", json!({ "b": [1, "x", null], "a": {} })),
        ("json", json!("text")),
        ("string", json!("x".repeat(65_536))),
    ];
    for (place, (kind, value)) in values.into_iter().enumerate() {
        let made = create(&app, &key, &format!("v{place}"), kind, value.clone()).await.expect(201);
        assert_eq!((&made["value"], &made["has_value"]), (&value, &json!(true)), "{kind}");
    }
    for (kind, value) in [
        ("string", json!(1)),
        ("string", json!(null)),
        ("string", json!("a\0")),
        ("string", json!("x".repeat(65_537))),
        ("number", json!("1")),
        ("boolean", json!("true")),
        ("boolean", json!(0)),
        ("secret", json!("")),
        ("secret", json!({ "a": 1 })),
        ("json", json!(["x".repeat(65_533)])),
    ] {
        let refused = create(&app, &key, "wrong", kind, value).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("value"), "{kind}");
    }
    let missing = app.post("/variables", &key, json!({ "key": "wrong", "type": "json" })).await;
    assert_eq!(missing.expect_error(400, "validation_error").as_deref(), Some("value"));
    for wrong in ["", "A", "1a", "a-b", "a b", &"a".repeat(64)] {
        let refused = create(&app, &key, wrong, "string", json!("x")).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("key"), "{wrong}");
    }
    // A number that would lose digits is rejected.
    let exact = br#"{ "key": "big", "type": "number", "value": 12345678901234567890123 }"#;
    let refused = app.ask("POST", "/variables").key(&key).bytes("application/json", exact).send().await;
    refused.expect_error(400, "validation_error");
}

#[testkit::both]
async fn secrets_are_sealed_and_never_shown(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let secret = "correct horse battery staple";
    let made = create(&app, &key, "api_key", "secret", json!(secret)).await;
    let path = format!("/variables/{}", made.expect(201)["id"]);
    let changed = app.patch(&path, &key, json!({ "value": format!("new {secret}") })).await;
    let refused = app.patch(&path, &key, json!({ "value": [secret] })).await;
    refused.expect_error(400, "validation_error");
    let taken = create(&app, &key, "api_key", "secret", json!(secret)).await;
    taken.expect_error(409, "duplicate_value");
    for answer in
        [made, changed, refused, taken, app.get(&path, &key).await, app.get("/variables", &key).await]
    {
        testkit::assert_absent(&answer.text, secret);
    }
    let shown = app.get(&path, &key).await.expect(200);
    assert_eq!(
        (&shown["value"], &shown["has_value"], &shown["version"]),
        (&Value::Null, &json!(true), &json!(2))
    );
    let plain =
        "SELECT count(*) AS n FROM variables WHERE value IS NOT NULL OR sealed_value LIKE '%battery staple%'";
    assert_eq!(number(&app, plain).await, 0);
    assert_eq!(number(&app, "SELECT count(*) AS n FROM variables WHERE sealed_value IS NOT NULL").await, 1);
}

#[testkit::both]
async fn a_key_is_taken_for_one_env(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let new = |env: &str| json!({ "key": "url", "type": "string", "value": env, "env": env });
    let first = app.post("/variables", &key, new("all")).await.expect(201);
    app.post("/variables", &key, new("test")).await.expect(201);
    let taken = app.post("/variables", &key, new("all")).await;
    assert_eq!(taken.expect_error(409, "duplicate_value").as_deref(), Some("key"));
    assert_eq!(taken.body["error"]["details"]["existing_id"], first["id"]);
    let page = app.get("/variables?paginate=true&limit=1", &key).await;
    page.expect(200);
    assert_eq!((&page.body["data"][0]["id"], &page.body["has_more"]), (&first["id"], &json!(true)));
    let cursor = page.body["next_cursor"].as_str().unwrap();
    let page = app.get(&format!("/variables?paginate=true&limit=1&starting_after={cursor}"), &key).await;
    assert_eq!((&page.body["data"][0]["env"], &page.body["has_more"]), (&json!("test"), &json!(false)));
}

#[testkit::both]
async fn a_workspace_has_300_variables(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    for place in 0..300 {
        create(&app, &key, &format!("v{place}"), "number", json!(place)).await.expect(201);
    }
    create(&app, &key, "more", "number", json!(1)).await.expect_error(409, "limit_reached");
    assert_eq!(app.get("/variables", &key).await.expect(200).as_array().unwrap().len(), 300);
}

#[testkit::both]
async fn what_agents_refer_to_is_in_use(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, stranger) = (app.bare_key().await, app.bare_key().await);
    let agent = json!({ "name": "Sales", "instructions": "Call {{vars.phone}} or {{ $vars.phone | trim }}. {{vars.gone}}" });
    let agent = app.post("/agents", &key, agent).await.expect(201)["id"].to_string();
    let foreign = json!({ "name": "Other", "instructions": "{{vars.phone}}" });
    app.post("/agents", &stranger, foreign).await.expect(201);
    app.post("/agents", &key, json!({ "name": "Third", "instructions": "vars.phone" })).await.expect(201);
    let made = create(&app, &key, "phone", "string", json!("1")).await.expect(201);
    assert_eq!(made["used_by_count"], 1);
    let path = format!("/variables/{}", made["id"]);
    let usage = json!({ "object": "variable_usage", "type": "agent", "id": agent, "name": "Sales", "field": "instructions" });
    assert_eq!(app.get(&format!("{path}/usages"), &key).await.expect(200), json!([usage]));
    let refused = app.delete(&path, &key).await;
    refused.expect_error(409, "variable_in_use");
    assert_eq!(refused.body["error"]["details"]["usages"], json!([usage]));
    app.delete(&format!("{path}?force=true"), &key).await.expect(200);
    let other = create(&app, &key, "phone.office", "string", json!("1")).await.expect(201);
    assert_eq!(other["used_by_count"], 0);
    app.delete(&format!("/variables/{}", other["id"]), &key).await.expect(200);
}
