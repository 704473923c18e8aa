//! The demo key: everybody may read a fictional workspace with it, and nobody changes anything.

use auth::keys::{DEMO_RATE_LIMIT_RPM, DEMO_SECRET, offer_demo};
use chrono::Duration;
use model::{Env, Scope, WorkspaceId};
use serde_json::json;
use testkit::{Key, Kind, TestApp};

async fn offer(app: &TestApp, workspace: WorkspaceId, is_offered: bool) -> Key {
    app.db().write(move |tx| offer_demo(tx, is_offered, |_| Ok(workspace))).await.unwrap();
    // The service asks again after ten seconds which keys there are.
    app.data.clock.advance(Duration::seconds(61));
    Key { secret: DEMO_SECRET.to_owned(), id: "key_00000000000000000000000000".parse().unwrap(), workspace }
}

#[testkit::both]
async fn visitors_read_and_change_nothing(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let owner = app.key(workspace, Env::Live, &["*"]).await;
    let made = app.post("/contacts", &owner, json!({ "data": { "$name": "Ana" } })).await.expect(201);
    let visitor = offer(&app, workspace, true).await;
    let listed = app.get("/contacts", &visitor).await.expect(200);
    assert_eq!(listed[0]["id"], made["id"]);
    let me = app.get("/me", &visitor).await.expect(200);
    assert_eq!((&me["api_key"]["env"], &me["livemode"]), (&json!("test"), &json!(false)));
    let refused = app.post("/contacts", &visitor, json!({ "data": { "$name": "Ben" } })).await;
    assert_eq!(refused.expect_error(403, "missing_scope").as_deref(), Some("contacts:write"));
    let path = format!("/contacts/{}", made["id"]);
    app.delete(&path, &visitor).await.expect_error(403, "missing_scope");
    app.get("/dashboard/keys", &visitor).await.expect_error(401, "session_required");
}

/// What the demo key has are read scopes, so none of their operations may change anything.
#[test]
fn read_scopes_change_nothing() {
    let registry = server::registry().unwrap();
    for operation in registry.operations() {
        let meta = operation.meta();
        let reads = meta.scope.is_some_and(|scope: Scope| scope.as_str().ends_with(":read"));
        assert!(!(reads && meta.is_idempotent_by_key()), "{}", meta.id);
    }
}

#[testkit::both]
async fn the_demo_key_works_only_where_it_is_offered(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let visitor = offer(&app, workspace, false).await;
    app.get("/contacts", &visitor).await.expect_error(401, "invalid_api_key");
    offer(&app, workspace, true).await;
    app.get("/contacts", &visitor).await.expect(200);
    offer(&app, workspace, false).await;
    app.get("/contacts", &visitor).await.expect_error(401, "api_key_revoked");
    offer(&app, workspace, true).await;
    app.get("/contacts", &visitor).await.expect(200);
}

#[testkit::both]
async fn visitors_have_a_window_by_address(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let visitor = offer(&app, workspace, true).await;
    for _ in 0..DEMO_RATE_LIMIT_RPM {
        app.get("/me", &visitor).await.expect(200);
    }
    app.get("/me", &visitor).await.expect_error(429, "rate_limited");
    // The keys of the workspace are not concerned.
    let key = app.key(workspace, Env::Live, &["runs:read"]).await;
    app.get("/me", &key).await.expect(200);
    app.data.clock.advance(Duration::seconds(61));
    app.get("/me", &visitor).await.expect(200);
}

#[testkit::both]
async fn replicas_that_start_at_once_offer_one_key(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let start = || app.db().write(move |tx| offer_demo(tx, true, |_| Ok(workspace)));
    let (one, other) = tokio::join!(start(), start());
    one.unwrap();
    other.unwrap();
}
