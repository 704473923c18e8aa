//! Drafts and published versions.

use crate::{ECHO, body, create, with};
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

#[testkit::both]
async fn a_function_is_kept_as_it_was_written(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, stranger) = (app.bare_key().await, app.bare_key().await);
    let new = with(
        body("shipping_price", ECHO),
        json!({
            "description": "The price.", "input_schema": { "type": "object" }, "output_schema": { "type": "object" },
            "timeout_ms": 500, "memory_mb": 16, "scopes": ["items:read"], "idempotent": true, "agent_tool": true,
            "network": { "mode": "allowlist", "hosts": ["API.example.com"] }, "metadata": { "a": "b" },
        }),
    );
    let made = app.post("/functions", &key, new).await.expect(201);
    let shown = json!({
        "id": made["id"], "object": "function", "name": "shipping_price", "status": "draft",
        "description": "The price.", "input_schema": { "type": "object" }, "output_schema": { "type": "object" },
        "timeout_ms": 500, "memory_mb": 16, "network": { "mode": "allowlist", "hosts": ["api.example.com"] },
        "variables": [], "scopes": ["items:read"], "effect": "read", "idempotent": true, "agent_tool": true,
        "code": ECHO, "digest": made["digest"], "content_version": null, "published_version": null,
        "metadata": { "a": "b" }, "version": 1, "created_at": made["created_at"], "updated_at": made["created_at"],
    });
    assert_eq!(made, shown);
    let path = format!("/functions/{}", made["id"]);
    assert_eq!(app.get(&path, &key).await.expect(200), shown);
    let mut head = shown.clone();
    head.as_object_mut().unwrap().remove("code");
    assert_eq!(app.get("/functions", &key).await.expect(200), json!([head]));
    assert_eq!(app.get("/functions?status=active", &key).await.expect(200), json!([]));
    for answer in [
        app.get(&path, &stranger).await,
        app.patch(&path, &stranger, json!({ "code": ECHO })).await,
        app.post(&format!("{path}/publish"), &stranger, json!({})).await,
        app.post(&format!("{path}/invoke"), &stranger, json!({})).await,
        app.get(&format!("{path}/versions"), &stranger).await,
        app.get(&format!("{path}/invocations"), &stranger).await,
        app.delete(&path, &stranger).await,
    ] {
        answer.expect_error(404, "not_found");
    }
    app.post("/functions", &key, body("shipping_price", ECHO)).await.expect_error(409, "duplicate_value");
    let patch = json!({ "description": null, "output_schema": null, "timeout_ms": 200, "version": 1 });
    let changed = app.patch(&path, &key, patch.clone()).await.expect(200);
    assert_eq!((&changed["description"], &changed["version"]), (&Value::Null, &json!(2)));
    assert_eq!((&changed["output_schema"], &changed["timeout_ms"]), (&Value::Null, &json!(200)));
    app.patch(&path, &key, patch).await.expect_error(409, "version_conflict");
    let stale = json!({ "code": "export default () => 1", "version": 1 });
    app.patch(&path, &key, stale).await.expect_error(409, "version_conflict");
    app.patch(&path, &key, json!({ "status": "active" })).await.expect_error(409, "invalid_state");
    app.delete(&path, &key).await.expect(200);
    app.get(&path, &key).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn versions_are_frozen_and_restored(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let code = |number: i64| format!("export default () => {number}");
    let made = with(body("number", &code(1)), json!({ "status": "active" }));
    let made = app.post("/functions", &key, made).await.expect(201);
    assert_eq!((&made["status"], &made["published_version"]), (&json!("active"), &json!(1)));
    let path = format!("/functions/{}", made["id"]);
    let publish = format!("{path}/publish");
    // Nothing is published twice.
    let same = app.post(&publish, &key, json!({})).await.expect(200);
    assert_eq!((&same["published_version"], &same["version"]), (&json!(1), &json!(1)));
    app.patch(&path, &key, json!({ "code": code(2), "memory_mb": 64 })).await.expect(200);
    app.post(&publish, &key, json!({ "version": 1 })).await.expect_error(409, "version_conflict");
    let second = app.post(&publish, &key, json!({ "version": 2 })).await.expect(200);
    assert_eq!((&second["published_version"], &second["content_version"]), (&json!(2), &Value::Null));
    let first = app.get(&format!("{path}?version=1"), &key).await.expect(200);
    assert_eq!((&first["code"], &first["memory_mb"]), (&json!(code(1)), &json!(32)));
    assert_eq!((&first["content_version"], &first["version"]), (&json!(1), &second["version"]));
    app.get(&format!("{path}?version=3"), &key).await.expect_error(404, "not_found");
    let versions = app.get(&format!("{path}/versions"), &key).await.expect(200);
    let versions = versions.as_array().unwrap();
    assert_eq!(versions.len(), 2);
    assert_eq!((&versions[0]["version"], &versions[0]["memory_mb"]), (&json!(2), &json!(64)));
    assert_eq!((&versions[0]["size"], &versions[0]["env"]), (&json!(code(2).len()), &json!("live")));
    assert_eq!((&versions[1]["digest"], &versions[0]["code"]), (&first["digest"], &Value::Null));
    assert_eq!(versions[0]["published_by"], json!(key.id.as_str()));
    let restored = app.post(&format!("{path}/versions/1/restore"), &key, json!({})).await.expect(200);
    assert_eq!((&restored["code"], &restored["published_version"]), (&json!(code(1)), &json!(2)));
    app.post(&format!("{path}/versions/9/restore"), &key, json!({})).await.expect_error(404, "not_found");
    let off = app.patch(&path, &key, json!({ "status": "inactive" })).await.expect(200);
    assert_eq!(off["status"], json!("inactive"));
    // Publishing does not switch on.
    let third = app.post(&publish, &key, json!({})).await.expect(200);
    assert_eq!((&third["published_version"], &third["status"]), (&json!(3), &json!("inactive")));
    app.delete(&path, &key).await.expect(200);
}

#[testkit::both]
async fn code_and_settings_are_checked(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let secret = json!({ "key": "token", "type": "secret", "value": "s3cret-value" });
    app.post("/variables", &key, secret).await.expect(201);
    let big = format!("export default () => 1 //{}", "x".repeat(262_145 - 25));
    assert_eq!(big.len(), 262_145);
    let wide = format!("export default () => '{}'", "é".repeat(131_072));
    let broken = "export default async () => {\n  return 1 +;\n}";
    let refused = app.post("/functions", &key, body("a", broken)).await;
    assert_eq!(refused.body["error"]["details"]["line"], json!(2));
    assert!(refused.body["error"]["details"]["column"].as_i64().unwrap() > 0);
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("code"));
    for code in [
        "export const a = 1",
        "export default 1",
        "import fs from 'fs'; export default () => 1",
        "import 'data:text/javascript,1'; export default () => 1",
        "throw new Error('x'); export default () => 1",
        "await new Promise(() => {}); export default () => 1",
        "for (;;) {} export default () => 1",
        &big,
        &wide,
        "export default () => 1 \0",
        "",
    ] {
        let refused = app.post("/functions", &key, body("a", code)).await;
        let shown: String = code.chars().take(60).collect();
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("code"), "{shown}");
    }
    for (field, value, param) in [
        ("name", json!("Big"), "name"),
        ("name", json!("a".repeat(65)), "name"),
        ("input_schema", json!({ "type": "strin" }), "input_schema"),
        ("input_schema", json!({ "$ref": "https://example.com/s" }), "input_schema"),
        ("output_schema", json!({ "$ref": "file:///etc/passwd" }), "output_schema"),
        ("timeout_ms", json!(99), "timeout_ms"),
        ("memory_mb", json!(129), "memory_mb"),
        ("scopes", json!(["items:everything"]), "scopes[0]"),
        ("scopes", json!(["items:read", "items:read"]), "scopes[1]"),
        ("scopes", json!(["partner:leads:read"]), "scopes[0]"),
        ("variables", json!(["token"]), "variables[0]"),
        ("network", json!({ "mode": "none", "hosts": ["a.example"] }), "network.hosts"),
        ("network", json!({ "mode": "allowlist" }), "network.hosts"),
        ("network", json!({ "mode": "allowlist", "hosts": ["user@a.example"] }), "network.hosts[0]"),
        ("network", json!({ "mode": "allowlist", "hosts": ["a.example", "10.0.0.1"] }), "network.hosts[1]"),
        ("network", json!({ "mode": "allowlist", "hosts": ["[::1]"] }), "network.hosts[0]"),
        ("network", json!({ "mode": "allowlist", "hosts": ["*.co.uk"] }), "network.hosts[0]"),
    ] {
        let refused = app.post("/functions", &key, with(body("a", ECHO), json!({ field: value }))).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{value}");
    }
    let unknown = with(body("a", ECHO), json!({ "variables": ["nothing"] }));
    let refused = app.post("/functions", &key, unknown).await;
    assert_eq!(refused.expect_error(400, "unknown_variable").as_deref(), Some("variables[0]"));
    assert_eq!(app.get("/functions", &key).await.expect(200), json!([]));
    let hosts =
        json!({ "variables": ["token"], "network": { "mode": "allowlist", "hosts": ["*.example.com"] } });
    let path = create(&app, &key, with(body("a", ECHO), hosts)).await;
    let refused = app.patch(&path, &key, json!({ "code": "export default () => {" })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("code"));
    app.patch(&path, &key, json!({ "network": { "mode": "public" } }))
        .await
        .expect_error(400, "validation_error");
    let usages = app.get("/variables", &key).await.expect(200);
    assert_eq!(usages[0]["used_by_count"], json!(1));
    let usages = app.get(&format!("/variables/{}/usages", usages[0]["id"]), &key).await.expect(200);
    assert_eq!((&usages[0]["type"], &usages[0]["field"]), (&json!("function"), &json!("variables")));
}
