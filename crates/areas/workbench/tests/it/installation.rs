//! The workspace and the installation.

use model::{Env, MemberRole};
use operation::{BoxFuture, Services};
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::{Kind, TestApp};
use workbench::{HealthState, InstallationCheck, InstallationChecks};

/// Checks of which one fails.
struct Scripted;

impl InstallationChecks for Scripted {
    fn run(&self) -> BoxFuture<Vec<InstallationCheck>> {
        let check =
            |name, status, message: &str| InstallationCheck { name, status, message: message.to_owned() };
        Box::pin(async move {
            vec![
                check("files", HealthState::Ok, "A file was written."),
                check("redis", HealthState::Fail, "It does not answer."),
            ]
        })
    }
}

#[testkit::both]
async fn operators_see_what_the_checks_of_the_installation_find(kind: Kind) {
    let checks: Option<Arc<dyn InstallationChecks>> = Some(Arc::new(Scripted));
    let app = TestApp::with_services(kind, Services::default().with(checks)).await;
    let workspace = app.bare_workspace("unlimited", 0).await;
    let owner = app.member(workspace, MemberRole::Owner).await;
    let token = app.token(&owner, Env::Live);
    let path = "/dashboard/installation/checks";
    app.get(path, &token).await.expect_error(403, "missing_scope");
    app.make_operator(&owner).await;
    let found = app.get(path, &token).await.expect(200);
    assert_eq!(found["failed"], 1, "{found}");
    let failed = json!({ "name": "redis", "status": "fail", "message": "It does not answer." });
    assert_eq!(found["checks"][1], failed);
}

#[testkit::both]
async fn operators_manage_workspaces_and_others_do_not(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("unlimited", 0).await;
    let owner = app.member(workspace, MemberRole::Owner).await;
    let token = app.token(&owner, Env::Live);
    let refused = app.get("/dashboard/workspaces", &token).await;
    assert_eq!(refused.expect_error(403, "missing_scope").as_deref(), Some("installation:manage"));
    app.make_operator(&owner).await;
    let new = json!({ "name": "Panadería Sol", "plan": "starter", "owner_email": "sol@example.com" });
    let made = app.post("/dashboard/workspaces", &token, new).await.expect(201);
    assert_eq!((&made["slug"], &made["plan"]), (&json!("panaderia-sol"), &json!("starter")), "{made}");
    assert!(made["invitation_url"].as_str().unwrap().starts_with("https://svc.example/invite/"));
    let path = format!("/dashboard/workspaces/{}", made["id"]);
    let blocked =
        app.post(&format!("{path}/block"), &token, json!({ "reason": "Unpaid." })).await.expect(200);
    assert_eq!(blocked["blocked_reason"], "Unpaid.");
    let open = app.post(&format!("{path}/unblock"), &token, json!({})).await.expect(200);
    assert_eq!(open["blocked_reason"], Value::Null);
    let energy = json!({ "amount": 500, "kind": "promo" });
    app.post(&format!("{path}/energy"), &token, energy).await.expect(201);
    let plan = json!({ "plan": "starter", "status": "past_due" });
    let refused = app.post(&format!("{path}/plan"), &token, plan).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("until"));
    app.post("/dashboard/workspaces/999999/block", &token, json!({ "reason": "x" }))
        .await
        .expect_error(404, "not_found");
    let listed = app.get("/dashboard/workspaces?paginate=true&limit=100", &token).await.expect(200);
    assert!(listed.as_array().unwrap().iter().any(|one| one["id"] == made["id"]));
    let accounts = app.get("/dashboard/accounts", &token).await.expect(200);
    assert_eq!(accounts[0]["is_operator"], true);
    let overview = app.get("/dashboard/installation", &token).await.expect(200);
    assert!(overview["jobs_due"].is_number(), "{overview}");
    let product = if kind == Kind::Sqlite { "SQLite 3." } else { "PostgreSQL " };
    assert!(overview["database"].as_str().unwrap().starts_with(product), "{overview}");
    assert!(overview["database_bytes"].as_i64().unwrap() > 100_000, "{overview}");
}

#[testkit::both]
async fn a_workspace_is_renamed_and_its_first_steps_follow_from_facts(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("unlimited", 0).await;
    let owner = app.member(workspace, MemberRole::Owner).await;
    let token = app.token(&owner, Env::Live);
    let done = async |id: &str| -> bool {
        let steps = app.get("/dashboard/first-steps", &token).await.expect(200);
        let step = steps["steps"].as_array().unwrap().iter().find(|step| step["id"] == id).unwrap();
        step["done"].as_bool().unwrap()
    };
    assert!(!done("create_key").await);
    let key = app.key(workspace, Env::Live, &["runs:read"]).await;
    assert!(done("create_key").await);
    // What the dashboard asks for does not count.
    assert!(!done("first_request").await);
    app.get("/me", &key).await.expect(200);
    testkit::until("the request is counted", async || done("first_request").await.then_some(())).await;
    let hidden = app.patch("/dashboard/first-steps", &token, json!({ "hidden": true })).await.expect(200);
    assert_eq!(hidden["hidden"], true);
    let renamed = app.patch("/dashboard/workspace", &token, json!({ "name": "Luna" })).await.expect(200);
    assert_eq!(renamed["name"], "Luna");
    let viewer = app.member(workspace, MemberRole::Viewer).await;
    let viewer = app.token(&viewer, Env::Live);
    assert_eq!(app.get("/dashboard/workspace", &viewer).await.expect(200)["name"], "Luna");
    app.patch("/dashboard/workspace", &viewer, json!({ "name": "Mine" }))
        .await
        .expect_error(403, "missing_scope");
}
