//! The guard: who gets in, in which order the checks answer, and what keys may and may not do.

use crate::operations::document::{Document, well_formed};
use auth::keys::{self, NewKey};
use chrono::Duration;
use model::{Env, Scope, SubscriptionStatus};
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, TestApp};

/// A request for a run with everything wrong that can be; the test mends one thing after the other.
struct Wrong {
    filler: String,
    key: Option<Key>,
    method: &'static str,
    path: &'static str,
    workspace: String,
    idempotency_key: &'static str,
    content_type: &'static str,
    body: Vec<u8>,
}

impl Wrong {
    async fn send(&self, app: &TestApp) -> Answer {
        let mut asking = app
            .ask(self.method, self.path)
            .header("x-filler", &self.filler)
            .header("x-svc-workspace", &self.workspace)
            .header("idempotency-key", self.idempotency_key)
            .bytes(self.content_type, &self.body);
        if let Some(key) = &self.key {
            asking = asking.key(key);
        }
        let answer = asking.send().await;
        well_formed(&answer, "a wrong request");
        answer
    }
}

#[testkit::both]
async fn the_first_check_that_fails_answers(kind: Kind) {
    let app = TestApp::new(kind).await;
    let other = app.workspace().await;
    let workspace = app.bare_workspace("scale", 0).await;
    let agents = app.key(workspace, Env::Live, &["agents:write"]).await;
    let agent = app.post("/agents", &agents, json!({ "name": "A", "status": "active" })).await.expect(201);
    let key = app
        .key_with(workspace, Env::Live, &["runs:read"], |new| {
            new.rate_limit_rpm = Some(1);
            new.monthly_quota = Some(0);
            new.budget_cents = Some(0);
        })
        .await;
    app.sql(format!("UPDATE workspaces SET blocked_reason = 'Unpaid.' WHERE id = {workspace}")).await;
    let mut wrong = Wrong {
        filler: "x".repeat(17 * 1024),
        key: None,
        method: "DELETE",
        path: "/nowhere",
        workspace: other.to_string(),
        idempotency_key: "",
        content_type: "text/plain",
        body: vec![b' '; (1 << 20) + 1],
    };
    let next_minute = || app.data.clock.advance(Duration::seconds(61));
    assert_eq!(wrong.send(&app).await.expect_error(400, "validation_error").as_deref(), Some("headers"));
    wrong.filler = String::new();
    wrong.send(&app).await.expect_error(401, "missing_api_key");
    wrong.key = Some(key.clone());
    wrong.send(&app).await.expect_error(404, "route_not_found");
    wrong.send(&app).await.expect_error(429, "rate_limited");
    next_minute();
    wrong.path = "/runs";
    wrong.send(&app).await.expect_error(405, "method_not_allowed");
    next_minute();
    wrong.method = "POST";
    wrong.send(&app).await.expect_error(413, "payload_too_large");
    next_minute();
    wrong.body.truncate(1 << 20);
    wrong.send(&app).await.expect_error(404, "workspace_not_found");
    next_minute();
    wrong.workspace = workspace.to_string();
    wrong.send(&app).await.expect_error(403, "workspace_blocked");
    next_minute();
    app.sql(format!("UPDATE workspaces SET blocked_reason = NULL WHERE id = {workspace}")).await;
    wrong.send(&app).await.expect_error(403, "missing_scope");
    next_minute();
    app.sql(format!("UPDATE api_keys SET scopes = 'runs:execute' WHERE id = '{}'", key.id)).await;
    let param = wrong.send(&app).await.expect_error(400, "validation_error");
    assert_eq!(param.as_deref(), Some("Idempotency-Key"));
    next_minute();
    wrong.idempotency_key = "once";
    wrong.send(&app).await.expect_error(429, "quota_exceeded");
    next_minute();
    app.sql(format!("UPDATE api_keys SET monthly_quota = NULL WHERE id = '{}'", key.id)).await;
    wrong.send(&app).await.expect_error(429, "budget_exceeded");
    next_minute();
    app.sql(format!("UPDATE api_keys SET budget_cents = NULL WHERE id = '{}'", key.id)).await;
    wrong.send(&app).await.expect_error(415, "unsupported_media_type");
    next_minute();
    wrong.content_type = "application/json";
    assert_eq!(wrong.send(&app).await.expect_error(400, "validation_error").as_deref(), Some("body"));
    next_minute();
    wrong.body = json!({ "input": "Hello", "agent_id": 999_999 }).to_string().into_bytes();
    assert_eq!(wrong.send(&app).await.expect_error(404, "not_found").as_deref(), Some("agent_id"));
    next_minute();
    wrong.body = json!({ "input": "Hello", "agent_id": agent["id"] }).to_string().into_bytes();
    wrong.idempotency_key = "twice";
    let depleted = wrong.send(&app).await;
    depleted.expect_error(402, "energy_depleted");
    assert!(depleted.body["error"].get("recharge_url").is_none(), "{}", depleted.text);
    assert!(app.model.prompts().is_empty(), "nothing was executed");
}

#[testkit::both]
async fn a_revoked_key_stops_within_ten_seconds(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    app.get("/me", &key).await.expect(200);
    let id = key.id.clone();
    app.db().write(move |tx| keys::revoke(tx, &id)).await.unwrap();
    app.data.clock.advance(Duration::seconds(10));
    app.get("/me", &key).await.expect_error(401, "api_key_revoked");
}

#[testkit::both]
async fn an_expired_key_stops_at_its_moment(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let ends = model::Timestamp::parse("2026-01-15T12:01:00Z");
    let key = app.key_with(workspace, Env::Live, &["runs:read"], move |new| new.expires_at = ends).await;
    app.data.clock.advance(Duration::milliseconds(59_999));
    app.get("/me", &key).await.expect(200);
    app.data.clock.advance(Duration::milliseconds(1));
    app.get("/me", &key).await.expect_error(401, "api_key_expired");
}

#[testkit::both]
async fn scopes_that_do_not_count(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let key = app.key(workspace, Env::Live, &["runs:read"]).await;
    // Stored by an older version, or by hand.
    let stored = "runs:read,rag:read,sites:read,partner:clients:read,workspaces:provision,no:such";
    app.sql(format!("UPDATE api_keys SET scopes = '{stored}' WHERE id = '{}'", key.id)).await;
    let me = app.get("/me", &key).await.expect(200);
    assert_eq!(me["api_key"]["scopes"], json!(["rag:read", "runs:read", "sites:read"]));
    for (scope, owner) in
        [(Scope::RagRead, workspace), (Scope::SitesRead, workspace), (Scope::PartnerClientsRead, workspace)]
    {
        let refused = app.db().write(move |tx| {
            let new = NewKey::of_workspace("New", owner, Env::Live, vec![Scope::RunsRead, scope]);
            keys::create(tx, new).map(drop)
        });
        assert_eq!(refused.await.unwrap_err().param_name(), Some("scopes[1]"), "{scope}");
    }
}

#[testkit::both]
async fn a_blocked_workspace_answers_nothing_else(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let key = app.key(workspace, Env::Live, &["*"]).await;
    let document = Document::fetch(&app, "openapi.public.json").await;
    let set = |plan: &'static str, status: SubscriptionStatus, until: Option<&'static str>| {
        let until = until.and_then(model::Timestamp::parse);
        app.db().write(move |tx| billing::plans::set_plan(tx, workspace, plan, status, until).map(drop))
    };
    let (past, next_year) = (Some("2026-01-01T00:00:00Z"), Some("2027-01-01T00:00:00Z"));
    for (status, until, blocked) in [
        (SubscriptionStatus::Active, None, false),
        (SubscriptionStatus::Trialing, next_year, false),
        (SubscriptionStatus::Trialing, past, true),
        (SubscriptionStatus::Sponsored, None, false),
        (SubscriptionStatus::PastDue, Some("2026-01-14T00:00:00Z"), false),
        (SubscriptionStatus::PastDue, past, true),
        (SubscriptionStatus::Canceled, next_year, false),
        (SubscriptionStatus::Canceled, past, true),
        (SubscriptionStatus::Inactive, next_year, true),
    ] {
        set("scale", status, until).await.unwrap();
        app.data.clock.advance(Duration::seconds(10));
        let me = app.get("/me", &key).await;
        assert_eq!(me.status, if blocked { 403 } else { 200 }, "{status:?} {until:?}: {}", me.text);
        if !blocked {
            continue;
        }
        for op in document.operations().iter().filter(|op| !op.partner_only) {
            let path = document.unknown_path(op, &workspace.to_string());
            app.data.clock.advance(Duration::seconds(1));
            let answer = app.ask(&op.method, &path).key(&key).send().await;
            answer.expect_error(403, "workspace_blocked");
            assert_eq!(answer.body["error"]["type"], "api_error");
        }
    }
    app.sql(format!(
        "UPDATE workspaces SET plan_id = NULL, subscription_status = 'active' WHERE id = {workspace}"
    ))
    .await;
    app.get("/me", &key).await.expect_error(403, "workspace_blocked");
    // A period that is over stops nobody: it is about to be renewed, unless it was the last.
    set("scale", SubscriptionStatus::Active, None).await.unwrap();
    app.data.clock.advance(Duration::days(40));
    app.get("/me", &key).await.expect(200);
    app.sql(format!("UPDATE workspaces SET cancel_at_period_end = TRUE WHERE id = {workspace}")).await;
    app.get("/me", &key).await.expect_error(403, "workspace_blocked");
    set("scale", SubscriptionStatus::Active, None).await.unwrap();
    app.sql(format!("UPDATE workspaces SET blocked_reason = 'Ceiling of contacts.' WHERE id = {workspace}"))
        .await;
    let answer = app.get("/billing/access", &key).await;
    answer.expect_error(403, "workspace_blocked");
    assert_eq!(answer.body["error"]["message"], "Ceiling of contacts.");
}

#[testkit::both]
async fn a_partner_key_operates_its_clients(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (first, second, foreign) = (app.workspace().await, app.workspace().await, app.workspace().await);
    let (partner, key) = app.partner_key(Env::Live, &["runs:read", "runs:execute"], &[first, second]).await;
    let me = |key: &Key, header: Option<String>| {
        let mut asking = app.ask("GET", "/me").key(key);
        if let Some(header) = &header {
            asking = asking.header("x-svc-workspace", header);
        }
        asking.send()
    };
    let operated = |answer: &Answer| answer.expect(200)["workspace"]["id"].clone();

    let answer = me(&key, None).await;
    assert_eq!(answer.expect_error(400, "workspace_required").as_deref(), Some("X-Svc-Workspace"));
    let answer = me(&key, Some(second.to_string())).await;
    assert_eq!(operated(&answer), second.0);
    assert_eq!(answer.body["data"]["partner"], json!({ "id": partner }));
    assert_eq!(answer.body["data"]["api_key"]["owner_type"], "partner");
    let slug = app.get("/me", &app.key(second, Env::Live, &["runs:read"]).await).await.expect(200);
    let slug = slug["workspace"]["slug"].as_str().unwrap().to_owned();
    assert_eq!(operated(&me(&key, Some(slug)).await), second.0);
    me(&key, Some(foreign.to_string())).await.expect_error(404, "workspace_not_found");
    me(&key, Some("no-such-slug".to_owned())).await.expect_error(404, "workspace_not_found");

    let run = |workspace: model::WorkspaceId, header: Option<model::WorkspaceId>| {
        let mut asking = app.ask("POST", &format!("/workspaces/{workspace}/runs")).key(&key);
        if let Some(header) = header {
            asking = asking.header("x-svc-workspace", &header.to_string());
        }
        asking.json(&json!({ "input": "Hello" })).send()
    };
    assert_eq!(run(second, None).await.expect(200)["workspace_id"], second.0);
    assert_eq!(run(first, Some(first)).await.expect(200)["workspace_id"], first.0);
    let param = run(first, Some(second)).await.expect_error(400, "validation_error");
    assert_eq!(param.as_deref(), Some("X-Svc-Workspace"));
    run(foreign, None).await.expect_error(404, "workspace_not_found");

    // The key's own default, and the client's plan, not the partner's.
    app.sql(format!("UPDATE api_keys SET default_workspace_id = {first} WHERE id = '{}'", key.id)).await;
    assert_eq!(operated(&me(&key, None).await), first.0);
    assert_eq!(operated(&me(&key, Some(second.to_string())).await), second.0);
    app.sql(format!("UPDATE workspaces SET blocked_reason = 'Unpaid.' WHERE id = {first}")).await;
    me(&key, None).await.expect_error(403, "workspace_blocked");
    assert_eq!(operated(&me(&key, Some(second.to_string())).await), second.0);

    // The attribution ends: the client is as unknown as any other, also as the default.
    app.sql(format!("UPDATE workspaces SET partner_id = NULL WHERE id = {first}")).await;
    me(&key, None).await.expect_error(404, "workspace_not_found");
    app.sql(format!("UPDATE api_keys SET default_workspace_id = NULL WHERE id = '{}'", key.id)).await;
    assert_eq!(operated(&me(&key, None).await), second.0, "the only client left");
    app.sql(format!("UPDATE workspaces SET partner_id = NULL WHERE id = {second}")).await;
    me(&key, None).await.expect_error(400, "workspace_required");
}

#[testkit::both]
async fn the_secret_is_not_returned(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let me = app.get("/me", &key).await;
    let identity: Value = me.expect(200);
    assert_eq!(identity["object"], "identity");
    assert_eq!((&identity["livemode"], &identity["api_key"]["env"]), (&json!(true), &json!("live")));
    assert_eq!(identity["partner"], Value::Null);
    testkit::assert_absent(&me.text, &key.secret[key.secret.len() - 12..]);
    testkit::assert_absent(&me.text, &key.secret[9..][..12]);
}
