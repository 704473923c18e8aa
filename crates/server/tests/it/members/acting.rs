//! What a member's requests leave: the member as actor, the member's key in logs, the ledger and limits.

use auth::keys::{self, KeyKind};
use model::{Env, MemberRole, WorkspaceId};
use serde_json::{Value, json};
use testkit::{Key, Kind, Member, TestApp};

async fn signed_in(app: &TestApp, workspace: WorkspaceId) -> (Member, Key, Value) {
    let member = app.member(workspace, MemberRole::Manager).await;
    let token = app.token(&member, Env::Live);
    let actor = json!({ "type": "user", "id": member.id() });
    (member, token, actor)
}

/// A collection with contacts in a field, and one without.
async fn collection(app: &TestApp, key: &Key) -> Value {
    let fields = json!([{ "label": "Name", "type": "text" }, { "label": "Customer", "type": "contact" }]);
    app.post("/collections", key, json!({ "name": "Orders", "fields": fields })).await.expect(201)["id"]
        .clone()
}

#[testkit::both]
async fn a_member_is_the_actor_of_what_the_member_does(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("unlimited", 0).await;
    let (_, token, actor) = signed_in(&app, workspace).await;
    let (_, other, _) = signed_in(&app, workspace).await;
    let orders = collection(&app, &token).await;
    let items = format!("/collections/{orders}/items");
    let item = app.post(&items, &token, json!({ "data": { "name": "A" } })).await.expect(201);
    assert_eq!(item["created_by"], actor, "{item}");
    let activity = app.get(&format!("{items}/{}/activity", item["id"]), &token).await.expect(200);
    assert_eq!(activity[0]["actor"], actor, "{activity}");
    let by_actor = format!("/collections/{orders}/activity?actor={}", actor["id"].as_str().unwrap());
    assert!(!app.get(&by_actor, &token).await.expect(200).as_array().unwrap().is_empty());
    // Comments are their author's, also among members.
    let comments = format!("{items}/{}/comments", item["id"]);
    let comment = app.post(&comments, &token, json!({ "body": "Mine." })).await.expect(201);
    assert_eq!(comment["author"], actor);
    let one = format!("{comments}/{}", comment["id"]);
    app.patch(&one, &other, json!({ "body": "Yours." })).await.expect_error(403, "not_author");
    app.patch(&one, &token, json!({ "body": "Still mine." })).await.expect(200);
    // The event names the member, and the request with the member's key.
    app.deliver().await;
    let events = app.get("/events?type=item.created", &token).await.expect(200);
    assert_eq!(events[0]["caused_by"]["actor"], actor, "{events}");
    assert_eq!(events[0]["request"]["key_id"], token.id.as_str());
}

#[testkit::both]
async fn a_member_filters_by_what_related_records_have(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("unlimited", 0).await;
    let (_, token, _) = signed_in(&app, workspace).await;
    let orders = collection(&app, &token).await;
    let ana = json!({ "data": { "$name": "Ana", "$email": "ana@example.com" } });
    let ana = app.post("/contacts", &token, ana).await.expect(201);
    let items = format!("/collections/{orders}/items");
    app.post(&items, &token, json!({ "data": { "name": "A", "customer": [ana["id"]] } })).await.expect(201);
    app.post(&items, &token, json!({ "data": { "name": "B" } })).await.expect(201);
    let found =
        app.get(&format!("{items}?filter[customer.$email]=ana@example.com"), &token).await.expect(200);
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
}

#[testkit::both]
async fn the_gates_limits_and_the_ledger_hold_for_a_members_key(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let (member, token, _) = signed_in(&app, workspace).await;
    // A resent request receives the first answer, also with another token of the same member.
    let once = |key: &Key| app.ask("POST", "/contacts").key(key).header("idempotency-key", "once");
    let body = json!({ "data": { "$name": "Ana" } });
    let first = once(&token).json(&body).send().await.expect(201);
    let second = once(&app.token(&member, Env::Live)).json(&body).send().await;
    assert_eq!(second.headers["idempotent-replayed"], "true");
    assert_eq!(second.expect(201), first);
    let (_, other, _) = signed_in(&app, workspace).await;
    let others = once(&other).json(&body).send().await;
    assert!(!others.headers.contains_key("idempotent-replayed"), "keys of others have memories of their own");
    // A run is paid by the member's key.
    app.model.usage(1_000, 500);
    let run = app.post("/runs", &token, json!({ "input": "Hello" })).await.expect(200);
    assert!(run["energy"]["amount"].as_i64().unwrap() > 0, "{run}");
    let admin = app.key(workspace, Env::Live, &["*"]).await;
    let usage = app.get("/billing/usage?group_by=key", &admin).await.expect(200);
    assert!(usage.to_string().contains(token.id.as_str()), "{usage}");
    // A test token is a test key.
    let test = app.token(&member, Env::Test);
    app.get("/me", &test).await.expect(200);
    let refused = app.post("/broadcasts", &test, json!({})).await;
    assert_eq!(refused.expect_error(403, "test_mode_restricted").as_deref(), Some("channels:send"));
    // A budget that is used up refuses the member's requests.
    app.sql(format!("UPDATE api_keys SET budget_cents = 0 WHERE id = '{}'", token.id)).await;
    app.get("/contacts", &token).await.expect_error(429, "budget_exceeded");
    let budgets = app.get("/billing/budgets", &admin).await.expect(200);
    assert_eq!(budgets[0]["key_id"], token.id.as_str());
    // The quota of the plan is for programs.
    app.sql(format!("UPDATE api_keys SET budget_cents = NULL, monthly_quota = 0 WHERE id = '{}'", token.id))
        .await;
    app.service.pipeline.directory.forget();
    app.get("/contacts", &token).await.expect(200);
    // Each request has a row with the member's key.
    let data = app.stop().await;
    let id = token.id.clone();
    let rows: i64 = data
        .db
        .read(move |read| {
            use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
            use operation::schema::request_logs as l;
            let rows = l::table.filter(l::key_id.eq(id.as_str())).count();
            Ok(rows.get_result(read.connection())?)
        })
        .await
        .unwrap();
    assert_eq!(rows, 5);
}

#[testkit::both]
async fn lists_of_keys_have_those_with_a_secret(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("unlimited", 0).await;
    let (member, ..) = signed_in(&app, workspace).await;
    let key = app.key(workspace, Env::Live, &["runs:read"]).await;
    let id = member.keys[0].clone();
    let read = app.db().read(move |read| Ok((keys::list(read, Some(workspace))?, keys::by_id(read, &id)?)));
    let (listed, own) = read.await.unwrap();
    let listed: Vec<&str> = listed.iter().map(|stored| stored.key.id.as_str()).collect();
    assert_eq!(listed, [key.id.as_str()]);
    assert_eq!(
        (own.kind, own.role, own.member),
        (KeyKind::Member, Some(MemberRole::Manager), Some(member.session.member))
    );
    assert_eq!(own.key.scopes, auth::roles::scopes(MemberRole::Manager));
}

#[testkit::both]
async fn a_member_has_600_requests_a_minute_whatever_the_plan_says(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    app.sql("UPDATE plans SET rate_limit_rpm = 2, monthly_quota = 3").await;
    let member = app.member(workspace, MemberRole::Manager).await;
    let (live, test) = (app.token(&member, Env::Live), app.token(&member, Env::Test));
    for (asked, key) in [&live, &test, &live, &test, &live].into_iter().enumerate() {
        let answer = app.get("/me", key).await;
        assert_eq!(answer.headers["x-ratelimit-limit"], "600");
        // Both environments share the window.
        assert_eq!(answer.headers["x-ratelimit-remaining"], (599 - asked).to_string());
        let me = answer.expect(200);
        assert_eq!(
            (&me["api_key"]["rate_limit_rpm"], &me["api_key"]["monthly_quota"]),
            (&json!(600), &Value::Null)
        );
    }
    for _ in 5..600 {
        app.get("/me", &live).await.expect(200);
    }
    app.get("/me", &test).await.expect_error(429, "rate_limited");
    let other = app.member(workspace, MemberRole::Manager).await;
    app.get("/me", &app.token(&other, Env::Live)).await.expect(200);
    let key = app.key(workspace, Env::Live, &["runs:read"]).await;
    app.get("/me", &key).await.expect(200);
    app.get("/me", &key).await.expect(200);
    app.get("/me", &key).await.expect_error(429, "rate_limited");
}
