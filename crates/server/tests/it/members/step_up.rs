//! Operations that reveal or change secrets need a sign-in younger than ten minutes.

use crate::operations::document::Document;
use chrono::Duration;
use model::{Env, MemberRole};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::{Kind, Member, TestApp};

async fn owner(app: &TestApp) -> Member {
    let workspace = app.bare_workspace("unlimited", 0).await;
    app.member(workspace, MemberRole::Owner).await
}

/// Operations whose every request needs it.
const ALWAYS: [&str; 4] =
    ["createInboundWebhook", "createWebhookEndpoint", "rotateInboundWebhookToken", "rotateWebhookSecret"];

/// Operations of which some requests need it.
const SECRETS: [&str; 5] =
    ["attachAgentTool", "createVariable", "updateInboundWebhook", "updateVariable", "updateWebhookEndpoint"];

#[testkit::both]
async fn the_contract_names_the_operations(kind: Kind) {
    let app = TestApp::new(kind).await;
    let document = Document::fetch(&app, "openapi.public.json").await;
    let flagged = |value: &str| -> BTreeSet<String> {
        let flag = |op: &crate::operations::document::Op| {
            document.0["paths"][&op.path][op.method.to_lowercase()]["x-svc-recent-sign-in"] == value
        };
        document.operations().into_iter().filter(flag).map(|op| op.id).collect()
    };
    assert_eq!(flagged("always"), ALWAYS.map(str::to_owned).into());
    assert_eq!(flagged("secrets"), SECRETS.map(str::to_owned).into());
}

#[testkit::both]
async fn an_old_sign_in_is_not_enough(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = owner(&app).await;
    let key = app.key(owner.workspace, Env::Live, &["*"]).await;
    let document = Document::fetch(&app, "openapi.public.json").await;
    app.data.clock.advance(Duration::milliseconds(599_999));
    let ask = async |op: &crate::operations::document::Op, key: &testkit::Key| {
        let path = document.unknown_path(op, &owner.workspace.to_string());
        app.ask(&op.method, &path).key(key).bytes("application/json", b"{").send().await
    };
    for op in document.operations().iter().filter(|op| ALWAYS.contains(&op.id.as_str())) {
        ask(op, &app.token(&owner, Env::Live)).await.expect_error(400, "validation_error");
    }
    app.data.clock.advance(Duration::milliseconds(1));
    let changes = || document.operations().into_iter().filter(|op| op.method != "GET");
    for op in changes() {
        let answer = ask(&op, &app.token(&owner, Env::Live)).await;
        if ALWAYS.contains(&op.id.as_str()) {
            answer.expect_error(403, "reauthentication_required");
        } else {
            assert_ne!(answer.body["error"]["code"], "reauthentication_required", "{}", op.id);
        }
    }
    // Keys have no sign-in, and whoever signs in again goes on.
    for key in [&key, &app.fresh_token(&owner, Env::Live).await] {
        for op in changes() {
            let answer = ask(&op, key).await;
            assert_ne!(answer.body["error"]["code"], "reauthentication_required", "{}", op.id);
        }
    }
    // The role is asked first, so that nobody signs in again for nothing.
    let viewer = app.member(owner.workspace, MemberRole::Viewer).await;
    app.data.clock.advance(Duration::seconds(600));
    let answer = app.post("/webhook-endpoints", &app.token(&viewer, Env::Live), json!({})).await;
    assert_eq!(answer.expect_error(403, "missing_scope").as_deref(), Some("webhooks:manage"));
}

/// An operation of which some requests need a recent sign-in: the method and path, a request that needs it, and one that
/// does not.
struct Case {
    method: &'static str,
    path: String,
    secret: Value,
    plain: Value,
}

#[testkit::both]
async fn requests_with_secrets_need_it_and_others_do_not(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = owner(&app).await;
    let key = app.key(owner.workspace, Env::Live, &["*"]).await;
    let made = async |path: &str, body: Value| app.post(path, &key, body).await.expect(201)["id"].clone();
    let text = |id: Value| id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    let agent = text(made("/agents", json!({ "name": "A" })).await);
    let secret = text(made("/variables", json!({ "key": "a", "type": "secret", "value": "s" })).await);
    let endpoint = json!({ "url": "https://example.com/", "enabled_events": ["contact.*"] });
    let endpoint = text(made("/webhook-endpoints", endpoint).await);
    let inbound = text(made("/inbound-webhooks", json!({ "name": "In" })).await);
    let http = json!({ "type": "http", "description": "d", "http": { "url": "https://example.com/" } });
    let cases = [
        Case {
            method: "PUT",
            path: format!("/agents/{agent}/tools/contacts"),
            secret: http,
            plain: json!({ "type": "contacts" }),
        },
        Case {
            method: "POST",
            path: "/variables".to_owned(),
            secret: json!({ "key": "b", "type": "secret", "value": "s" }),
            plain: json!({ "key": "b", "type": "string", "value": "s" }),
        },
        Case {
            method: "PATCH",
            path: format!("/variables/{secret}"),
            secret: json!({ "value": "t" }),
            plain: json!({ "description": "d" }),
        },
        Case {
            method: "PATCH",
            path: format!("/webhook-endpoints/{endpoint}"),
            secret: json!({ "headers": { "X-A": "b" } }),
            plain: json!({ "description": "d" }),
        },
        Case {
            method: "PATCH",
            path: format!("/webhook-endpoints/{endpoint}"),
            secret: json!({ "url": "https://example.com/other" }),
            plain: json!({ "enabled_events": ["contact.created"] }),
        },
        Case {
            method: "PATCH",
            path: format!("/inbound-webhooks/{inbound}"),
            secret: json!({ "verification": { "type": "shopify", "secrets": ["the secret that Shopify shows"] } }),
            plain: json!({ "name": "Out" }),
        },
    ];
    for Case { method, path, secret, plain } in cases {
        app.data.clock.advance(Duration::seconds(600));
        let old = app.token(&owner, Env::Live);
        let send =
            async |key: &testkit::Key, body: &Value| app.ask(method, &path).key(key).json(body).send().await;
        send(&old, &secret).await.expect_error(403, "reauthentication_required");
        let answer = send(&old, &plain).await;
        assert!(answer.status < 300, "{method} {path}: {}", answer.text);
        let answer = send(&app.fresh_token(&owner, Env::Live).await, &secret).await;
        // The same key of a variable is taken by the request before.
        assert!(answer.status < 300 || answer.body["error"]["code"] == "duplicate_value", "{}", answer.text);
    }
}
