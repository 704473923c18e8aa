//! Inbound webhooks as a resource: creating, reading, changing, rotating, deleting, listing.

use model::Env;
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, TestApp};

/// A live key of a workspace without agents.
pub async fn bare(app: &TestApp) -> Key {
    let workspace = app.bare_workspace("scale", 0).await;
    app.key(workspace, Env::Live, &["*"]).await
}

/// A webhook made of `body`; its name is filled in.
pub async fn made(app: &TestApp, key: &Key, mut body: Value) -> Value {
    if body["name"].is_null() {
        body["name"] = "Shop".into();
    }
    app.post("/inbound-webhooks", key, body).await.expect(201)
}

/// The address of a resource.
pub fn at(webhook: &Value) -> String {
    format!("/inbound-webhooks/{}", webhook["id"].as_str().unwrap())
}

/// The path of a webhook's URL.
pub fn path(webhook: &Value) -> String {
    webhook["url"].as_str().unwrap().strip_prefix("https://svc.example").unwrap().to_owned()
}

/// Posts JSON to a webhook's URL.
pub async fn send(app: &TestApp, webhook: &Value, body: &Value) -> Answer {
    app.ask_beside("POST", &path(webhook)).json(body).send().await
}

/// Posts JSON a moment later, so that it is the newest of the log.
pub async fn next(app: &TestApp, webhook: &Value, body: &Value) -> Answer {
    app.data.clock.advance(chrono::Duration::milliseconds(1));
    send(app, webhook, body).await
}

/// The log of a webhook, newest first.
pub async fn log(app: &TestApp, key: &Key, webhook: &Value) -> Vec<Value> {
    let rows = app.get(&format!("{}/requests?limit=100", at(webhook)), key).await.expect(200);
    rows.as_array().unwrap().clone()
}

#[testkit::both]
async fn a_webhook_is_created_with_defaults_and_with_everything(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let plain = app.post("/inbound-webhooks", &key, json!({ "name": " Plain " })).await.expect(201);
    assert_eq!(
        (&plain["name"], &plain["status"], &plain["version"]),
        (&json!("Plain"), &json!("enabled"), &json!(1))
    );
    assert_eq!(plain["verification"]["type"], "none");
    assert_eq!(plain["rate_limit"], json!({ "per_minute": 60, "burst": 120 }));
    assert_eq!(plain["dedupe"]["by"], "none");
    assert!(plain["id"].as_str().unwrap().starts_with("wh_"));
    assert_eq!(path(&plain).len(), "/hooks/".len() + 43);
    let all = json!({
        "name": "Full", "description": "d", "status": "disabled", "allowed_ips": ["203.0.113.0/24", "2001:db8::1"],
        "dedupe": { "by": "header", "header": "x-id", "window_seconds": 60 },
        "mapping": {
            "event_type": "$.type", "conditions": [{ "from": "$.a", "op": "in", "value": [1, "2"] }],
            "vars": { "total": { "from": "$.order.total", "type": "number", "default": 0 } },
            "contact": { "match_on": "email", "create": true, "fields": { "email": "$.email" } },
        },
        "response": { "type": "static", "status": 204 }, "rate_limit": { "per_minute": 5 }, "capture": true,
        "metadata": { "a": "b" },
        "verification": { "type": "hmac", "header": "X-Sig", "secrets": ["the-old-secret", "the-new-secret"], "signed": "{timestamp}.{body}", "timestamp_header": "X-Time" },
    });
    let answer = app.post("/inbound-webhooks", &key, all.clone()).await;
    let full = answer.expect(201);
    for field in ["name", "description", "status", "allowed_ips", "capture", "metadata"] {
        assert_eq!(full[field], all[field], "{field}");
    }
    assert_eq!(full["dedupe"]["window_seconds"], 60);
    assert_eq!(full["mapping"]["vars"]["total"]["default"], 0);
    assert_eq!(full["rate_limit"], json!({ "per_minute": 5, "burst": 10 }));
    assert_eq!(full["verification"]["algorithm"], "sha256");
    assert_eq!(full["verification"]["tolerance_seconds"], 300);
    assert_eq!(full["verification"]["secrets"], 2);
    assert_eq!(app.get(&at(&full), &key).await.expect(200), full);
    let stored = app.db().read(|read| {
        use ::inbound::schema::inbound_webhooks as table;
        use diesel::prelude::*;
        let columns = (table::sealed_token, table::settings, table::sealed_secrets);
        Ok(table::table.select(columns).load::<(String, String, Option<String>)>(read.connection())?)
    });
    let stored = format!("{:?}", stored.await.unwrap());
    for token in [&path(&plain)["/hooks/".len()..], &path(&full)["/hooks/".len()..]] {
        testkit::assert_absent(&stored, token);
    }
    for secret in ["the-old-secret", "the-new-secret"] {
        testkit::assert_absent(&answer.text, secret);
        testkit::assert_absent(&stored, secret);
    }
}

#[testkit::both]
async fn bad_fields_are_named(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let webhook = made(&app, &key, json!({})).await;
    let verification = |fields: Value| json!({ "verification": fields });
    let mapping = |fields: Value| json!({ "mapping": fields });
    let hmac = |field: &str, value: Value| {
        let mut fields = json!({ "type": "hmac", "header": "x-sig", "secrets": ["s"] });
        fields[field] = value;
        verification(fields)
    };
    let many: serde_json::Map<String, Value> =
        (0..51).map(|n| (format!("v{n}"), json!({ "from": "$.a" }))).collect();
    for (body, param) in [
        (json!({ "name": " " }), "name"),
        (json!({ "name": "x".repeat(101) }), "name"),
        (json!({ "nmae": "x" }), "nmae"),
        (json!({ "status": "paused" }), "status"),
        (json!({ "allowed_ips": ["10.0.0.0/33"] }), "allowed_ips[0]"),
        (json!({ "allowed_ips": ["203.0.113.1", "x"] }), "allowed_ips[1]"),
        (json!({ "rate_limit": { "per_minute": 0 } }), "rate_limit.per_minute"),
        (json!({ "rate_limit": { "per_minute": 60, "burst": 0 } }), "rate_limit.burst"),
        (json!({ "response": { "type": "ack", "status": 200 } }), "response.status"),
        (json!({ "response": { "type": "static", "status": 302 } }), "response.status"),
        (json!({ "response": { "type": "static", "status": 204, "body": "x" } }), "response.body"),
        (json!({ "response": { "type": "static", "content_type": "text" } }), "response.content_type"),
        (json!({ "dedupe": { "by": "header" } }), "dedupe.header"),
        (json!({ "dedupe": { "by": "header", "header": "a b" } }), "dedupe.header"),
        (json!({ "dedupe": { "by": "json_path", "path": "a" } }), "dedupe.path"),
        (json!({ "dedupe": { "by": "json_path", "path": "header:x" } }), "dedupe.path"),
        (json!({ "dedupe": { "by": "body", "path": "$.a" } }), "dedupe.path"),
        (json!({ "dedupe": { "by": "body", "window_seconds": 59 } }), "dedupe.window_seconds"),
        (json!({ "dedupe": { "by": "body", "window_seconds": 604_801 } }), "dedupe.window_seconds"),
        (verification(json!({ "type": "magic" })), "verification.type"),
        (verification(json!({ "type": "bearer" })), "verification.secrets"),
        (verification(json!({ "type": "bearer", "secrets": [] })), "verification.secrets"),
        (verification(json!({ "type": "bearer", "secrets": ["a", "b", "c"] })), "verification.secrets"),
        (verification(json!({ "type": "bearer", "secrets": [""] })), "verification.secrets[0]"),
        (verification(json!({ "type": "none", "secrets": ["a"] })), "verification.secrets"),
        (verification(json!({ "type": "github", "secrets": ["a"], "header": "x" })), "verification.header"),
        (
            verification(json!({ "type": "github", "secrets": ["a"], "tolerance_seconds": 5 })),
            "verification.tolerance_seconds",
        ),
        (verification(json!({ "type": "basic", "secrets": ["a"] })), "verification.username"),
        (verification(json!({ "type": "discord" })), "verification.public_key"),
        (verification(json!({ "type": "discord", "public_key": "abcd" })), "verification.public_key"),
        (
            verification(json!({ "type": "standard_webhooks", "secrets": ["whsec_!"] })),
            "verification.secrets[0]",
        ),
        (hmac("header", json!("a b")), "verification.header"),
        (hmac("header", json!(null)), "verification.header"),
        (hmac("signed", json!("{timestamp}.{body}")), "verification.timestamp_header"),
        (hmac("signed", json!("{timestamp}")), "verification.signed"),
        (hmac("signed", json!("{body")), "verification.signed"),
        (hmac("signed", json!("{secret}{body}")), "verification.signed"),
        (hmac("timestamp_header", json!("x-time")), "verification.signed"),
        (hmac("tolerance_seconds", json!(60)), "verification.tolerance_seconds"),
        (hmac("algorithm", json!("md5")), "verification.algorithm"),
        (mapping(json!({ "vars": { "a": { "from": "a" } } })), "mapping.vars.a.from"),
        (mapping(json!({ "vars": { "a b": { "from": "$.a" } } })), "mapping.vars.a b"),
        (
            mapping(json!({ "vars": { "a": { "from": "$.a", "type": "number", "default": "x" } } })),
            "mapping.vars.a.default",
        ),
        (mapping(json!({ "vars": many })), "mapping.vars"),
        (mapping(json!({ "event_type": "$." })), "mapping.event_type"),
        (mapping(json!({ "conditions": [{ "from": "$.a", "op": "eq" }] })), "mapping.conditions[0].value"),
        (
            mapping(json!({ "conditions": [{ "from": "$.a", "op": "gt", "value": "1" }] })),
            "mapping.conditions[0].value",
        ),
        (
            mapping(json!({ "conditions": [{ "from": "$.a", "op": "in", "value": 1 }] })),
            "mapping.conditions[0].value",
        ),
        (
            mapping(json!({ "conditions": [{ "from": "$.a", "op": "exists", "value": 1 }] })),
            "mapping.conditions[0].value",
        ),
        (
            mapping(json!({ "contact": { "match_on": "email", "fields": { "phone": "$.a" } } })),
            "mapping.contact.fields",
        ),
        (
            mapping(json!({ "contact": { "match_on": "field", "fields": { "phone": "$.a" } } })),
            "mapping.contact.field",
        ),
        (
            mapping(json!({ "contact": { "match_on": "phone", "fields": { "phone": "x" } } })),
            "mapping.contact.fields.phone",
        ),
        (json!({ "metadata": { "a": 1 } }), "metadata.a"),
    ] {
        let mut new = body.clone();
        if new["name"].is_null() {
            new["name"] = "N".into();
        }
        let refused = app.post("/inbound-webhooks", &key, new).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
        let refused = app.patch(&at(&webhook), &key, body.clone()).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
    assert_eq!(app.get(&at(&webhook), &key).await.expect(200), webhook);
    let all = app.get("/inbound-webhooks", &key).await.expect(200);
    assert_eq!(all.as_array().unwrap().len(), 1);
}

#[testkit::both]
async fn a_webhook_is_changed(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let webhook =
        made(&app, &key, json!({ "verification": { "type": "bearer", "secrets": ["first"] } })).await;
    let authorized = async |secret: &str| {
        let asking =
            app.ask_beside("POST", &path(&webhook)).header("authorization", &format!("Bearer {secret}"));
        asking.json(&json!({})).send().await.status
    };
    assert_eq!(authorized("first").await, 202);
    // Secrets that are left out stay while the type does.
    let change = json!({ "verification": { "type": "bearer" }, "name": "Renamed", "expected_version": 1 });
    let changed = app.patch(&at(&webhook), &key, change.clone()).await.expect(200);
    assert_eq!((&changed["name"], &changed["version"]), (&json!("Renamed"), &json!(2)));
    assert_eq!(authorized("first").await, 202);
    let stale = app.patch(&at(&webhook), &key, change).await;
    assert_eq!(stale.expect_error(409, "version_conflict").as_deref(), Some("expected_version"));
    assert_eq!(stale.body["error"]["details"], json!({ "current_version": 2 }));
    let stale = app.patch(&at(&webhook), &key, json!({ "version": 1 })).await;
    assert_eq!(stale.expect_error(409, "version_conflict").as_deref(), Some("version"));
    let matching = async |version: &str| {
        let patch = app.ask("PATCH", &at(&webhook)).key(&key).header("if-match", version);
        patch.json(&json!({ "name": "Renamed" })).send().await
    };
    assert_eq!(matching("\"1\"").await.expect_error(409, "version_conflict").as_deref(), Some("If-Match"));
    let fresh = matching("\"2\"").await;
    assert_eq!((&fresh.expect(200)["version"], fresh.headers["etag"].as_str()), (&json!(2), "\"2\""));
    assert_eq!(app.get(&at(&webhook), &key).await.headers["etag"], "\"2\"");
    // What changes nothing makes no version.
    let same = app.patch(&at(&webhook), &key, json!({ "name": "Renamed" })).await.expect(200);
    assert_eq!(same, changed);
    // The change holds at once, both secrets count, and another type forgets them.
    let change = json!({ "verification": { "type": "bearer", "secrets": ["second", "first"] } });
    assert_eq!(app.patch(&at(&webhook), &key, change).await.expect(200)["verification"]["secrets"], 2);
    assert_eq!(
        (authorized("first").await, authorized("second").await, authorized("third").await),
        (202, 202, 400)
    );
    let refused = app.patch(&at(&webhook), &key, json!({ "verification": { "type": "github" } })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("verification.secrets"));
    for (status, expected) in [("disabled", 410), ("enabled", 202)] {
        app.patch(&at(&webhook), &key, json!({ "status": status })).await.expect(200);
        assert_eq!(authorized("second").await, expected);
    }
    app.patch(&at(&webhook), &key, json!({ "dedupe": { "by": "body" }, "mapping": { "event_type": "$.a" } }))
        .await
        .expect(200);
    let cleared =
        app.patch(&at(&webhook), &key, json!({ "dedupe": null, "mapping": null })).await.expect(200);
    assert_eq!((&cleared["dedupe"]["by"], &cleared["mapping"]), (&json!("none"), &Value::Null));
}

#[testkit::both]
async fn a_url_is_rotated(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let first = made(&app, &key, json!({})).await;
    let rotate = async |body: Value| app.post(&format!("{}/rotate-token", at(&first)), &key, body).await;
    let second = rotate(json!({ "overlap_seconds": 3600 })).await.expect(200);
    assert_ne!(first["url"], second["url"]);
    assert_eq!(second["previous_url_until"], "2026-01-15T13:00:00.000Z");
    assert_eq!(
        (send(&app, &first, &json!({})).await.status, send(&app, &second, &json!({})).await.status),
        (202, 202)
    );
    rotate(json!({ "overlap_seconds": 60 })).await.expect_error(409, "rotation_in_progress");
    app.data.clock.advance(chrono::Duration::seconds(3600));
    assert_eq!(
        (send(&app, &first, &json!({})).await.status, send(&app, &second, &json!({})).await.status),
        (404, 202)
    );
    let third = app.ask("POST", &format!("{}/rotate-token", at(&first))).key(&key).send().await.expect(200);
    assert_eq!(third["previous_url_until"], Value::Null);
    assert_eq!(
        (send(&app, &second, &json!({})).await.status, send(&app, &third, &json!({})).await.status),
        (404, 202)
    );
    assert_eq!(
        rotate(json!({ "overlap_seconds": 604_801 })).await.expect_error(400, "validation_error").as_deref(),
        Some("overlap_seconds")
    );
    // Without an overlap both end, even while one is going on.
    let fourth = rotate(json!({ "overlap_seconds": 60 })).await.expect(200);
    let fifth = rotate(json!({})).await.expect(200);
    for (webhook, status) in [(&third, 404), (&fourth, 404), (&fifth, 202)] {
        assert_eq!(send(&app, webhook, &json!({})).await.status, status);
    }
}

#[testkit::both]
async fn a_webhook_is_deleted_with_what_it_received(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let webhook = made(&app, &key, json!({ "dedupe": { "by": "body" } })).await;
    let other = made(&app, &key, json!({})).await;
    for number in 0..3 {
        assert_eq!(send(&app, &webhook, &json!(number)).await.status, 202);
    }
    assert_eq!(send(&app, &other, &json!({})).await.status, 202);
    let gone = app.delete(&at(&webhook), &key).await.expect(200);
    assert_eq!(gone, json!({ "id": webhook["id"], "object": "inbound_webhook", "deleted": true }));
    assert_eq!(send(&app, &webhook, &json!({})).await.status, 404);
    for (method, path) in
        [("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/requests"), ("POST", "/rotate-token")]
    {
        let answer =
            app.ask(method, &format!("{}{path}", at(&webhook))).key(&key).json(&json!({})).send().await;
        answer.expect_error(404, "not_found");
    }
    app.service.jobs.run_due().await.unwrap();
    assert_eq!(count(&app, "inbound_requests").await, 1);
    assert_eq!(count(&app, "inbound_keys").await, 0);
    assert_eq!(log(&app, &key, &other).await.len(), 1);
}

#[testkit::both]
async fn nobody_sees_the_webhooks_of_others(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, stranger) = (bare(&app).await, bare(&app).await);
    let webhook = made(&app, &key, json!({})).await;
    for (method, path) in
        [("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/requests"), ("POST", "/rotate-token")]
    {
        let answer =
            app.ask(method, &format!("{}{path}", at(&webhook))).key(&stranger).json(&json!({})).send().await;
        answer.expect_error(404, "not_found");
    }
    assert_eq!(app.get("/inbound-webhooks", &stranger).await.expect(200), json!([]));
    assert_eq!(app.get(&at(&webhook), &key).await.expect(200), webhook);
}

#[testkit::both]
async fn lists_come_in_pages_and_end_at_a_ceiling(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    for number in 0..100 {
        app.data.clock.advance(chrono::Duration::milliseconds(1));
        made(&app, &key, json!({ "name": format!("W{number}") })).await;
    }
    let over = app.post("/inbound-webhooks", &key, json!({ "name": "one more" })).await;
    over.expect_error(409, "limit_reached");
    let whole = app.get("/inbound-webhooks", &key).await.expect(200);
    let whole: Vec<&Value> = whole.as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert_eq!((whole.len(), whole[0]), (100, &json!("W99")));
    let mut seen = Vec::new();
    let mut path = "/inbound-webhooks?paginate=true&limit=40".to_owned();
    loop {
        let page = app.get(&path, &key).await;
        seen.extend(page.expect(200).as_array().unwrap().iter().map(|row| row["name"].clone()));
        let Some(next) = page.body["next_cursor"].as_str() else { break };
        path = format!("/inbound-webhooks?paginate=true&limit=40&starting_after={next}");
    }
    assert_eq!(seen.iter().collect::<Vec<_>>(), whole);
}

#[derive(diesel::QueryableByName)]
struct Number {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    n: i64,
}

/// The rows of a table.
pub async fn count(app: &TestApp, table: &str) -> i64 {
    use diesel::RunQueryDsl;
    let sql = format!("SELECT COUNT(*) AS n FROM {table}");
    let row = app.db().read(move |read| Ok(diesel::sql_query(&sql).get_result::<Number>(read.connection())?));
    row.await.unwrap().n
}
