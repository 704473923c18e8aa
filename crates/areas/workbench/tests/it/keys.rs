//! API keys.

use model::{Env, MemberRole};
use serde_json::{Value, json};
use testkit::{Key, Kind, TestApp};

async fn admin(app: &TestApp) -> Key {
    let workspace = app.workspace().await;
    let member = app.member(workspace, MemberRole::Admin).await;
    app.token(&member, Env::Live)
}

fn key_of(created: &Value, token: &Key) -> Key {
    Key {
        secret: created["secret"].as_str().unwrap().to_owned(),
        id: created["id"].as_str().unwrap().parse().unwrap(),
        workspace: token.workspace,
    }
}

#[testkit::both]
async fn a_key_is_created_changed_and_revoked(kind: Kind) {
    let app = TestApp::new(kind).await;
    let token = admin(&app).await;
    let new = json!({
        "name": "Shop", "env": "live", "scopes": ["contacts:read", "runs:read"], "budget_cents": 500, "budget_cutoff": true,
    });
    let created = app.post("/dashboard/keys", &token, new).await.expect(201);
    assert_eq!((&created["status"], &created["object"]), (&json!("active"), &json!("api_key")));
    let key = key_of(&created, &token);
    app.get("/contacts", &key).await.expect(200);
    app.get("/agents", &key).await.expect_error(403, "missing_scope");
    let path = format!("/dashboard/keys/{}", key.id);
    let one = app.get(&path, &token).await;
    testkit::assert_absent(&one.text, &key.secret);
    assert_eq!(one.expect(200)["budget"], json!({ "cents": 500, "cutoff": true, "spent_cents": 0 }));
    app.data.clock.advance(chrono::Duration::seconds(1));
    let patch = json!({ "name": "Shop 2", "budget_cents": null, "rate_limit_rpm": 1 });
    let changed = app.patch(&path, &token, patch).await.expect(200);
    assert_eq!((&changed["name"], &changed["budget"]), (&json!("Shop 2"), &Value::Null));
    app.data.clock.advance(chrono::Duration::seconds(61));
    app.get("/contacts", &key).await.expect(200);
    app.get("/contacts", &key).await.expect_error(429, "rate_limited");
    app.post(&format!("{path}/revoke"), &token, json!({})).await.expect(200);
    app.data.clock.advance(chrono::Duration::seconds(61));
    app.get("/contacts", &key).await.expect_error(401, "api_key_revoked");
    app.patch(&path, &token, json!({ "name": "Shop 3" })).await.expect_error(409, "invalid_state");
    let audit = app.get("/dashboard/audit", &token).await.expect(200);
    let actions: Vec<&str> =
        audit.as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions[..3], ["key.revoked", "key.changed", "key.created"], "{audit}");
    assert_eq!(audit[0]["address"], "127.0.0.1", "{audit}");
}

#[testkit::both]
async fn a_rotated_key_overlaps_with_the_old_one_and_shares_its_limits(kind: Kind) {
    let app = TestApp::new(kind).await;
    let token = admin(&app).await;
    let new = json!({ "name": "Shop", "env": "live", "scopes": ["contacts:read"], "rate_limit_rpm": 2 });
    let old = key_of(&app.post("/dashboard/keys", &token, new).await.expect(201), &token);
    let path = format!("/dashboard/keys/{}/rotate", old.id);
    let rotated = app.post(&path, &token, json!({ "overlap_seconds": 120 })).await.expect(201);
    let fresh = Key {
        secret: rotated["secret"].as_str().unwrap().to_owned(),
        id: rotated["key"]["id"].as_str().unwrap().parse().unwrap(),
        workspace: token.workspace,
    };
    assert_eq!(rotated["key"]["lineage_id"], rotated["previous"]["id"]);
    app.get("/contacts", &old).await.expect(200);
    app.get("/contacts", &fresh).await.expect(200);
    app.get("/contacts", &fresh).await.expect_error(429, "rate_limited");
    app.data.clock.advance(chrono::Duration::seconds(121));
    app.get("/contacts", &old).await.expect_error(401, "api_key_expired");
    app.get("/contacts", &fresh).await.expect(200);
    app.post(&path, &token, json!({})).await.expect_error(409, "invalid_state");
    let path = format!("/dashboard/keys/{}/rotate", fresh.id);
    let again = app.post(&path, &token, json!({ "overlap_seconds": 0 })).await.expect(201);
    assert_eq!(again["previous"]["status"], "revoked");
}

#[testkit::both]
async fn keys_of_others_and_of_members_are_not_found(kind: Kind) {
    let app = TestApp::new(kind).await;
    let token = admin(&app).await;
    let stranger = app.bare_key().await;
    for id in [stranger.id.to_string(), token.id.to_string(), "key_x".to_owned(), "5".to_owned()] {
        let path = format!("/dashboard/keys/{id}");
        app.get(&path, &token).await.expect_error(404, "not_found");
        app.patch(&path, &token, json!({ "name": "Mine" })).await.expect_error(404, "not_found");
        app.post(&format!("{path}/rotate"), &token, json!({})).await.expect_error(404, "not_found");
        app.post(&format!("{path}/revoke"), &token, json!({})).await.expect_error(404, "not_found");
    }
    app.get("/me", &stranger).await.expect(200);
}

#[testkit::both]
async fn wrong_keys_are_refused_by_the_field(kind: Kind) {
    let app = TestApp::new(kind).await;
    let token = admin(&app).await;
    for (field, value, param) in [
        ("scopes", json!(["contacts:read", "nothing:read"]), "scopes[1]"),
        ("scopes", json!(["rag:read"]), "scopes[0]"),
        ("scopes", json!(["partner:leads:read"]), "scopes[0]"),
        ("scopes", json!(["runs:read", "runs:read"]), "scopes[1]"),
        ("scopes", json!([]), "scopes"),
        ("expires_at", json!("2020-01-01T00:00:00Z"), "expires_at"),
        ("budget_cents", json!(-1), "budget_cents"),
    ] {
        let mut new = json!({ "name": "Shop", "env": "test", "scopes": ["runs:read"] });
        new[field] = value;
        let refused = app.post("/dashboard/keys", &token, new).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param));
    }
}

#[testkit::both]
async fn the_catalogue_explains_every_scope(kind: Kind) {
    let app = TestApp::new(kind).await;
    let token = admin(&app).await;
    let catalogue = app.get("/dashboard/key-scopes", &token).await.expect(200);
    let scopes = catalogue["scopes"].as_array().unwrap();
    assert_eq!(scopes.len(), model::Scope::of_workspaces().count());
    assert!(scopes.iter().all(|scope| scope["sentence"].as_str().unwrap().ends_with('.')));
    let of = |name: &str| scopes.iter().find(|scope| scope["scope"] == name).unwrap();
    assert_eq!(of("runs:execute")["spends_energy"], true);
    assert_eq!(of("channels:send")["has_effects_outside"], true);
    assert!(of("contacts:read")["operations"].as_i64().unwrap() > 5);
    assert_eq!(catalogue["presets"].as_array().unwrap().len(), 3);
}

#[testkit::both]
async fn a_blocked_workspace_can_be_read_and_its_keys_revoked(kind: Kind) {
    let app = TestApp::new(kind).await;
    let token = admin(&app).await;
    let key = app.key(token.workspace, Env::Live, &["runs:read"]).await;
    app.sql(format!("UPDATE workspaces SET blocked_reason = 'Unpaid.' WHERE id = {}", token.workspace)).await;
    app.service.pipeline.directory.forget();
    app.get("/contacts", &token).await.expect(200);
    assert_eq!(app.get("/dashboard/me", &token).await.expect(200)["blocked_reason"], "Unpaid.");
    let new = json!({ "name": "Shop", "env": "live", "scopes": ["runs:read"] });
    app.post("/dashboard/keys", &token, new).await.expect_error(403, "workspace_blocked");
    app.post("/contacts", &token, json!({ "data": { "$name": "Ana" } }))
        .await
        .expect_error(403, "workspace_blocked");
    app.post(&format!("/dashboard/keys/{}/revoke", key.id), &token, json!({})).await.expect(200);
    app.get("/me", &key).await.expect_error(401, "api_key_revoked");
}
