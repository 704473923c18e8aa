//! Subscribing: fields, rules, states, scopes.

use crate::{contact, deliveries, is_signed, key};
use model::Env;
use serde_json::{Value, json};
use testkit::{Kind, Receiver, TestApp};

#[testkit::both]
async fn an_endpoint_lives_from_subscription_to_deletion(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let made = app.subscribe(&key, "https://example.com/hook", json!({
        "description": "Ours", "headers": { "Authorization": "Bearer abc" }, "ordering": "strict",
        "rate_limit_per_second": 5, "filter": { "data.contact_id": { "$gt": 3 } }, "metadata": { "a": "b" },
    }))
    .await;
    assert!(made["secret"].as_str().unwrap().starts_with("whsec_"));
    assert_eq!(made["headers"], json!(["Authorization"]), "values are not shown");
    let path = format!("/webhook-endpoints/{}", made["id"].as_str().unwrap());
    let read = app.get(&path, &key).await.expect(200);
    assert_eq!(read.get("secret"), None, "the secret is shown once");
    for field in ["url", "enabled_events", "description", "ordering", "filter", "metadata", "version"] {
        assert_eq!(read[field], made[field], "{field}");
    }
    assert_eq!(
        (&read["status"], &read["payload"], &read["version"]),
        (&json!("enabled"), &json!("full"), &json!(1))
    );

    let patch = json!({ "description": null, "enabled_events": ["run.completed"], "expected_version": 1 });
    let changed = app.patch(&path, &key, patch.clone()).await.expect(200);
    assert_eq!((&changed["description"], &changed["version"]), (&Value::Null, &json!(2)));
    let stale = app.patch(&path, &key, patch).await;
    assert_eq!(stale.expect_error(409, "version_conflict").as_deref(), Some("expected_version"));
    assert_eq!(stale.body["error"]["details"], json!({ "current_version": 2 }));
    let stale = app.patch(&path, &key, json!({ "version": 1 })).await;
    assert_eq!(stale.expect_error(409, "version_conflict").as_deref(), Some("version"));
    let matching = async |version: &str| {
        let patch = app
            .ask("PATCH", &path)
            .key(&key)
            .header("if-match", version)
            .json(&json!({ "description": "d" }));
        patch.send().await
    };
    let stale = matching("\"1\"").await;
    assert_eq!(stale.expect_error(409, "version_conflict").as_deref(), Some("If-Match"));
    let fresh = matching("\"2\"").await;
    assert_eq!((&fresh.expect(200)["version"], fresh.headers["etag"].as_str()), (&json!(3), "\"3\""));
    assert_eq!(app.get(&path, &key).await.headers["etag"], "\"3\"");

    let off = app.post(&format!("{path}/disable"), &key, json!({})).await.expect(200);
    assert_eq!((&off["status"], &off["disabled_reason"]), (&json!("disabled"), &json!("manual")));
    let on = app.patch(&path, &key, json!({ "status": "enabled" })).await.expect(200);
    assert_eq!((&on["status"], &on["disabled_reason"]), (&json!("enabled"), &Value::Null));

    let list = app.get("/webhook-endpoints", &key).await.expect(200);
    assert_eq!(list.as_array().unwrap().len(), 1);
    app.delete(&path, &key).await.expect(200);
    app.get(&path, &key).await.expect_error(404, "not_found");
    assert_eq!(app.get("/webhook-endpoints", &key).await.expect(200), json!([]));
}

#[testkit::both]
async fn what_cannot_be_subscribed_is_refused(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let good = json!({ "url": "https://example.com/hook", "enabled_events": ["contact.created"] });
    let with = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body
    };
    for (body, param) in [
        (with("url", json!("http://example.com/hook")), "url"),
        (with("url", json!("https://example.com:8444/")), "url"),
        (with("url", json!("https://user:pass@example.com/")), "url"),
        (with("url", json!("https://10.0.0.1/")), "url"),
        (with("url", json!("https://169.254.169.254/latest")), "url"),
        (with("url", json!("https://[::1]/")), "url"),
        (with("url", json!("https://0x7f.1/")), "url"),
        (with("url", json!("ftp://example.com/")), "url"),
        (with("enabled_events", json!(["contact.created", "contact.exploded"])), "enabled_events[1]"),
        (with("enabled_events", json!(["contact.created", "contact.created"])), "enabled_events[1]"),
        (with("enabled_events", json!([])), "enabled_events"),
        (with("headers", json!({ "Host": "a" })), "headers.Host"),
        (with("headers", json!({ "X-Svc-Signature": "a" })), "headers.X-Svc-Signature"),
        (with("headers", json!({ "A": "b\r\nC: d" })), "headers.A"),
        (with("filter", json!({ "data.a": { "$like": 1 } })), "filter.data.a"),
        (with("rate_limit_per_second", json!(101)), "rate_limit_per_second"),
        (with("ordering", json!("sorted")), "ordering"),
        (with("colour", json!("red")), "colour"),
    ] {
        let answer = app.post("/webhook-endpoints", &key, body.clone()).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
    for _ in 0..20 {
        app.post("/webhook-endpoints", &key, good.clone()).await.expect(201);
    }
    app.post("/webhook-endpoints", &key, good).await.expect_error(409, "limit_reached");
}

#[testkit::both]
async fn scopes_stand_behind_events(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("scale", 0).await;
    let receiver = Receiver::start().await;
    let weak = app.key(workspace, Env::Live, &["webhooks:manage", "runs:read"]).await;
    let body = |events: Value| json!({ "url": receiver.url("/"), "enabled_events": events });
    let refused = app.post("/webhook-endpoints", &weak, body(json!(["contact.created"]))).await;
    assert_eq!(refused.expect_error(403, "missing_scope").as_deref(), Some("conversations:read"));
    app.post("/webhook-endpoints", &weak, body(json!(["run.completed"]))).await.expect(201);
    let everything = app.post("/webhook-endpoints", &weak, body(json!(["*"]))).await.expect(201);
    app.emit(workspace, contact(1, "a")).await;
    app.deliver().await;
    assert_eq!(receiver.count(), 0, "a pattern stands for what its key may see");
    assert!(deliveries(&app, &weak, &everything).await.is_empty());
}

#[testkit::both]
async fn an_endpoint_ends_with_its_key(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let other = app.key(key.workspace, Env::Live, &["*"]).await;
    let receiver = Receiver::start().await;
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    app.emit(key.workspace, contact(1, "a")).await;
    receiver.answer_status(500);
    app.deliver().await;
    let revoked = key.id.clone();
    app.db().write(move |tx| auth::keys::revoke(tx, &revoked).map(drop)).await.unwrap();
    app.service.pipeline.directory.forget();
    receiver.answer_status(200);
    app.data.clock.advance(chrono::Duration::seconds(10));
    app.deliver().await;
    assert_eq!(receiver.count(), 1, "nothing is sent without the key");
    let path = format!("/webhook-endpoints/{}", endpoint["id"].as_str().unwrap());
    let read = app.get(&path, &other).await.expect(200);
    assert_eq!((&read["status"], &read["disabled_reason"]), (&json!("disabled"), &json!("scope_lost")));
    app.service.jobs.run_due().await.unwrap();
    assert_eq!(deliveries(&app, &other, &endpoint).await[0]["status"], "skipped");
    let reported = app.get("/events?type=webhook_endpoint.disabled", &other).await.expect(200);
    assert_eq!(reported[0]["data"]["reason"], "scope_lost");
    app.post(&format!("{path}/enable"), &other, json!({})).await.expect(200);
    app.emit(key.workspace, contact(1, "b")).await;
    app.deliver().await;
    assert_eq!(receiver.count(), 2, "the key that enabled it stands behind it now");
}

#[testkit::both]
async fn secrets_rotate_with_overlap(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    let path = format!("/webhook-endpoints/{}", endpoint["id"].as_str().unwrap());
    let old = endpoint["secret"].as_str().unwrap().to_owned();
    let rotation = format!("{path}/rotate-secret");
    app.post(&rotation, &key, json!({ "secret": "whsec_short" })).await.expect_error(400, "validation_error");
    let rotated = app.post(&rotation, &key, json!({ "overlap_seconds": 60 })).await.expect(200);
    let new = rotated["secret"].as_str().unwrap().to_owned();
    app.post(&rotation, &key, json!({})).await.expect_error(409, "rotation_in_progress");
    let signed = async || {
        receiver.forget();
        app.emit(key.workspace, contact(1, "a")).await;
        app.deliver().await;
        let delivered = receiver.delivered().remove(0);
        (is_signed(&delivered, &old), is_signed(&delivered, &new))
    };
    assert_eq!(signed().await, (true, true), "both sign while they overlap");
    app.data.clock.advance(chrono::Duration::seconds(61));
    assert_eq!(signed().await, (false, true));
}

#[testkit::both]
async fn ed25519_shows_its_public_half(kind: Kind) {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({ "signature_scheme": "ed25519" })).await;
    assert_eq!(endpoint["secret"], Value::Null);
    app.emit(key.workspace, contact(1, "a")).await;
    app.deliver().await;
    let delivered = receiver.delivered().remove(0);
    let public =
        STANDARD.decode(endpoint["public_key"].as_str().unwrap().strip_prefix("whpk_").unwrap()).unwrap();
    let signature =
        STANDARD.decode(delivered.headers["webhook-signature"].strip_prefix("v1a,").unwrap()).unwrap();
    let mut signed =
        format!("{}.{}.", delivered.headers["webhook-id"], delivered.headers["webhook-timestamp"])
            .into_bytes();
    signed.extend_from_slice(&delivered.body);
    ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, public)
        .verify(&signed, &signature)
        .unwrap();
}

#[testkit::both]
async fn a_test_is_one_attempt_with_all_details(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({ "status": "disabled" })).await;
    let path = format!("/webhook-endpoints/{}/test", endpoint["id"].as_str().unwrap());
    let tested = app.post(&path, &key, json!({ "type": "contact.message.received" })).await.expect(201);
    assert_eq!((&tested["trigger"], &tested["status"]), (&json!("test"), &json!("succeeded")));
    assert_eq!(tested["response"]["status_code"], 200);
    assert_eq!(tested["attempts"][0]["n"], 1);
    let sent = receiver.delivered().remove(0);
    assert_eq!(tested["request"]["body"].as_str().unwrap().as_bytes(), sent.body, "as it was sent");
    assert_eq!(
        (&sent.json()["livemode"], &sent.json()["type"]),
        (&json!(false), &json!("contact.message.received"))
    );
    assert!(is_signed(&sent, endpoint["secret"].as_str().unwrap()));
    receiver.answer_status(500);
    let failed = app.post(&path, &key, json!({ "sample": { "contact_id": 9 } })).await.expect(201);
    assert_eq!((&failed["status"], &failed["attempts"][0]["status_code"]), (&json!("failed"), &json!(500)));
    assert_eq!(receiver.delivered()[1].json()["data"], json!({ "contact_id": 9 }));
    app.data.clock.advance(chrono::Duration::days(1));
    assert_eq!(app.deliver().await, 0, "a test is not tried again");
    for _ in 0..10 {
        app.post(&path, &key, json!({})).await.expect(201);
    }
    app.post(&path, &key, json!({})).await.expect_error(429, "rate_limited");
    app.post(&path, &key, json!({ "type": "no.such" })).await.expect_error(400, "validation_error");
}
