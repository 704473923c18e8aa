//! The log of requests.

use chrono::Duration;
use model::{Env, MemberRole};
use serde_json::{Value, json};
use testkit::{Key, Kind, TestApp, until};

async fn admin(app: &TestApp) -> Key {
    let workspace = app.workspace().await;
    let member = app.member(workspace, MemberRole::Admin).await;
    app.token(&member, Env::Live)
}

/// Waits until the log has the request of an answer, and returns what the search with `query` finds.
async fn found(app: &TestApp, token: &Key, query: &str, last: &str) -> Value {
    let listed = async || {
        let found = app.get(&format!("/dashboard/requests?{query}"), token).await.expect(200);
        let has_last = found["requests"].as_array().unwrap().iter().any(|one| one["id"] == last);
        has_last.then_some(found)
    };
    until("the request log is written", listed).await
}

#[testkit::both]
async fn a_refused_request_tells_why(kind: Kind) {
    let app = TestApp::new(kind).await;
    let token = admin(&app).await;
    let key = app.key(token.workspace, Env::Live, &["contacts:read", "runs:read"]).await;
    app.get("/contacts", &key).await.expect(200);
    app.data.clock.advance(Duration::milliseconds(5));
    let refused = app.post("/contacts", &key, json!({ "data": { "$name": "Ana" } })).await;
    refused.expect_error(403, "missing_scope");
    let id = refused.headers["x-request-id"].clone();
    let found = found(&app, &token, "code=missing_scope", &id).await;
    let one = &found["requests"][0];
    assert_eq!((&one["gate"], &one["param"]), (&json!("scope"), &json!("contacts:write")), "{one}");
    assert_eq!(one["message"], refused.body["error"]["message"]);
    assert_eq!((&one["key_id"], &one["source"]), (&json!(key.id), &json!("key")));
    let why = app.get(&format!("/dashboard/requests/{id}"), &token).await.expect(200);
    assert_eq!(why["facts"]["has"], json!(["contacts:read"]), "{why}");
    assert_eq!((&why["facts"]["needs"], &why["mend"]), (&json!("contacts:write"), &json!("create_key")));
    let checks = why["checks"].as_array().unwrap();
    let at = checks.iter().position(|check| check["gate"] == "scope").unwrap();
    assert!(checks[..at].iter().all(|check| check["state"] == "passed"), "{why}");
    assert_eq!(checks[at]["state"], "refused");
    assert!(checks[at + 1..].iter().all(|check| check["state"] == "not_reached"), "{why}");
}

#[testkit::both]
async fn requests_are_found_by_key_member_and_class(kind: Kind) {
    let app = TestApp::new(kind).await;
    let token = admin(&app).await;
    let one = app.key(token.workspace, Env::Live, &["runs:read"]).await;
    let other = app.key(token.workspace, Env::Test, &["runs:read"]).await;
    let member = app.member(token.workspace, MemberRole::Viewer).await;
    for key in [&one, &other, &app.token(&member, Env::Live), &one] {
        app.data.clock.advance(Duration::milliseconds(5));
        app.get("/me", key).await.expect(200);
    }
    app.data.clock.advance(Duration::milliseconds(5));
    let missing = app.get("/runs/run_01m7w4n5e0k3p8r2v6x9b1d4f7", &one).await;
    missing.expect_error(404, "not_found");
    let last = missing.headers["x-request-id"].clone();
    let of_key = found(&app, &token, &format!("key_id={}", one.id), &last).await;
    let statuses: Vec<i64> =
        of_key["requests"].as_array().unwrap().iter().map(|one| one["status"].as_i64().unwrap()).collect();
    assert_eq!(statuses, [404, 200, 200]);
    assert_eq!((&of_key["is_complete"], &of_key["next_before"]), (&json!(true), &Value::Null));
    let search = async |query: String| -> Vec<Value> {
        let found = app.get(&format!("/dashboard/requests?{query}"), &token).await.expect(200);
        found["requests"].as_array().unwrap().clone()
    };
    let of_member = search(format!("member_id={}", member.id())).await;
    assert_eq!((of_member.len(), &of_member[0]["source"]), (1, &json!("dashboard")));
    assert_eq!(search(format!("key_id={}&status_class=refused", one.id)).await.len(), 1);
    assert_eq!(search(format!("key_id={}&status_class=success&operation=getMe", one.id)).await.len(), 2);
    assert_eq!(search(format!("key_id={}&status_class=failed", one.id)).await.len(), 0);
    assert_eq!(search(format!("gate=operation&key_id={}", one.id)).await.len(), 1);
    let of_keys = search("source=key&operation=getMe".to_owned()).await;
    assert!(of_keys.len() >= 3 && of_keys.iter().all(|one| one["source"] == "key"));
    assert_eq!(search(format!("source=program&key_id={}", one.id)).await.len(), 3);
    assert_eq!(search("source=app".to_owned()).await, Vec::<Value>::new());
    let of_people = search("source=dashboard".to_owned()).await;
    assert!(!of_people.is_empty() && of_people.iter().all(|one| one["source"] == "dashboard"));
    // Page by page.
    let first =
        app.get(&format!("/dashboard/requests?key_id={}&page_size=2", one.id), &token).await.expect(200);
    let next = first["next_before"].as_str().unwrap();
    assert_eq!((first["requests"].as_array().unwrap().len(), &first["is_complete"]), (2, &json!(false)));
    assert_eq!(search(format!("key_id={}&before={next}", one.id)).await.len(), 1);
    // Another workspace has none of it.
    let stranger = app.bare_workspace("unlimited", 0).await;
    let stranger = app.member(stranger, MemberRole::Owner).await;
    let stranger = app.token(&stranger, Env::Live);
    app.get(&format!("/dashboard/requests/{last}"), &stranger).await.expect_error(404, "not_found");
    let found = app.get(&format!("/dashboard/requests?key_id={}", one.id), &stranger).await.expect(200);
    assert_eq!(found["requests"], json!([]));
}

#[testkit::both]
async fn a_request_shows_its_events(kind: Kind) {
    let app = TestApp::new(kind).await;
    let token = admin(&app).await;
    let key = app.key(token.workspace, Env::Live, &["contacts:write"]).await;
    app.post("/contacts", &key, json!({ "data": { "$name": "Luis" } })).await.expect(201);
    app.data.clock.advance(Duration::milliseconds(5));
    let created = app.post("/contacts", &key, json!({ "data": { "$name": "Ana" } })).await;
    let contact = created.expect(201)["id"].clone();
    let id = created.headers["x-request-id"].clone();
    found(&app, &token, &format!("key_id={}", key.id), &id).await;
    app.deliver().await;
    let why = app.get(&format!("/dashboard/requests/{id}"), &token).await.expect(200);
    let events = why["events"].as_array().unwrap();
    assert_eq!(events.len(), 1, "{why}");
    assert_eq!((&events[0]["type"], &events[0]["data"]["contact_id"]), (&json!("contact.created"), &contact));
}

#[testkit::both]
async fn hours_and_failures_are_summed_up(kind: Kind) {
    let app = TestApp::new(kind).await;
    let token = admin(&app).await;
    let key = app.key(token.workspace, Env::Live, &["runs:read"]).await;
    // Rows are written in the order of the requests: this one is there as soon as the last one is.
    app.get("/dashboard/me", &token).await.expect(200);
    for _ in 0..3 {
        app.get("/me", &key).await.expect(200);
    }
    let mut last = String::new();
    for _ in 0..2 {
        app.data.clock.advance(Duration::milliseconds(5));
        let refused = app.get("/contacts", &key).await;
        refused.expect_error(403, "missing_scope");
        last = refused.headers["x-request-id"].clone();
    }
    found(&app, &token, &format!("key_id={}", key.id), &last).await;
    let hours = app.get(&format!("/dashboard/request-hours?key_id={}", key.id), &token).await.expect(200);
    let sums = |of: &Value| (of["requests"].clone(), of["refused"].clone(), of["failed"].clone());
    assert_eq!(sums(&hours), (json!(5), json!(2), json!(0)), "{hours}");
    assert!(hours["p95_ms"].as_i64() >= hours["p50_ms"].as_i64());
    let of_hours: i64 =
        hours["hours"].as_array().unwrap().iter().map(|hour| hour["requests"].as_i64().unwrap()).sum();
    assert_eq!(of_hours, 5);
    let requests = async |query: &str| -> i64 {
        let hours = app.get(&format!("/dashboard/request-hours?{query}"), &token).await.expect(200);
        hours["requests"].as_i64().unwrap()
    };
    let of_key = async |source: &str| requests(&format!("source={source}&key_id={}", key.id)).await;
    assert_eq!((of_key("program").await, of_key("key").await), (5, 5));
    assert_eq!((of_key("dashboard").await, requests("source=app").await), (0, 0));
    assert!(requests("").await > requests("source=program").await);
    let used = app.get(&format!("/dashboard/keys/{}", key.id), &token).await.expect(200);
    assert_eq!(used["last_used_at"], hours["to"]);
    let unused = app.key(token.workspace, Env::Live, &["runs:read"]).await;
    let unused = app.get(&format!("/dashboard/keys/{}", unused.id), &token).await.expect(200);
    assert_eq!(unused["last_used_at"], Value::Null);
    let named = app.get("/dashboard/requests?param=contacts:read", &token).await.expect(200);
    assert_eq!(named["requests"].as_array().unwrap().len(), 2);
    let of_people = app.get("/dashboard/request-failures?source=dashboard", &token).await.expect(200);
    assert_eq!(of_people["groups"], json!([]));
    let of_key = app.get(&format!("/dashboard/request-failures?key_id={}", key.id), &token).await.expect(200);
    assert_eq!(of_key["requests"], 2);
    let failures = app.get("/dashboard/request-failures", &token).await.expect(200);
    let group = &failures["groups"][0];
    assert_eq!((&group["operation"], &group["requests"]), (&json!("listContacts"), &json!(2)), "{failures}");
    assert_eq!((&group["param"], &group["last_request_id"]), (&json!("contacts:read"), &json!(last)));
    // Sums are deleted after 90 days.
    app.data.clock.advance(Duration::days(92));
    app.service.jobs.run_due().await.unwrap();
    let rows = app.db().read(|read| {
        use diesel::{QueryDsl, RunQueryDsl};
        let rows = operation::schema::request_hours::table.count();
        Ok(rows.get_result::<i64>(read.connection())?)
    });
    assert_eq!(rows.await.unwrap(), 0);
}

#[testkit::both]
async fn health_warns_before_a_budget_is_used_up(kind: Kind) {
    let app = TestApp::new(kind).await;
    let token = admin(&app).await;
    let key =
        app.key_with(token.workspace, Env::Live, &["runs:read"], |new| new.budget_cents = Some(0)).await;
    let health = app.get("/dashboard/health", &token).await.expect(200);
    let check = &health["checks"][0];
    assert_eq!((&check["subject"], &check["target"]), (&json!("budget"), &json!(key.id)), "{health}");
    assert_ne!(health["state"], "ok");
}
