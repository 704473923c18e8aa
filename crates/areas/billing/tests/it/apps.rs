//! OAuth apps as callers: `GET /me` with an access token, through the whole pipeline.

use crate::app::App;
use accounts::schema::accounts as people;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::Duration;
use diesel::prelude::*;
use model::{AccountId, Cause, Env, MemberId, Result, ScopeSet, WorkspaceId};
use oauth::{Authorization, CodeExchange, Resource, TokenReply};
use operation::Audience;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use store::Tx;
use testkit::Kind;

const CLIENT: &str = "https://assistant.example/client.json";
const REDIRECT: &str = "https://assistant.example/callback";

/// Tokens of an app that a member of the workspace has authorized.
fn authorized(tx: &mut Tx, workspace: WorkspaceId, scopes: &str, resource: Resource) -> Result<TokenReply> {
    let (now, account) = (tx.now(), AccountId::new(tx.now(), &*tx.random()));
    let email = format!("{account}@shop.example");
    diesel::insert_into(people::table)
        .values((
            (people::id.eq(&account), people::email.eq(&email), people::email_key.eq(&email)),
            (people::name.eq("Carla"), people::operator.eq(false)),
            (people::created_at.eq(now), people::updated_at.eq(now)),
        ))
        .execute(tx.connection())?;
    let verifier = "v".repeat(43);
    let new = Authorization {
        account,
        member: MemberId(7),
        workspace,
        env: Env::Live,
        client_id: CLIENT.into(),
        client_key: CLIENT.into(),
        client_name: "Assistant".into(),
        redirect_uri: REDIRECT.into(),
        challenge: URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())),
        resource,
        scopes: ScopeSet::parse_stored(scopes),
    };
    let code = oauth::authorize(tx, &new)?.reveal().to_owned();
    let (client_id, redirect_uri) = (CLIENT.to_owned(), REDIRECT.to_owned());
    oauth::exchange(tx, &CodeExchange { client_id, code, redirect_uri, verifier, resource: None })
}

/// An access token.
async fn token(app: &App, scopes: &'static str, resource: Resource) -> String {
    let workspace = app.bed.workspace;
    let reply = app.bed.write(move |tx| authorized(tx, workspace, scopes, resource)).await.unwrap();
    let TokenReply::Issued(body) = reply else { unreachable!("{reply:?}") };
    let body: Value = serde_json::from_str(&body).unwrap();
    body["access_token"].as_str().unwrap().to_owned()
}

#[testkit::both]
async fn me_names_the_app_and_its_key(kind: Kind) {
    let app = App::new(kind).await;
    let token = token(&app, "runs:read,billing:read", Resource::Service).await;
    let (status, body) = app.get_as(&token, Audience::Rest, "/me").await;
    assert_eq!(status, 200, "{body}");
    let me = &body["data"];
    assert_eq!(me["app"], json!({ "client_id": CLIENT, "name": "Assistant", "authorized_by": 7 }));
    assert!(me["api_key"]["id"].as_str().unwrap().starts_with("key_"));
    assert_eq!(me["api_key"]["scopes"], json!(["billing:read", "runs:read"]));
    assert_eq!((&me["livemode"], &me["api_key"]["env"]), (&json!(true), &json!("live")));
    // The key is one of the workspace, with the limits of its plan.
    let own = app.get("/me").await;
    assert_eq!(me["workspace"], own["workspace"]);
    assert_eq!(me["api_key"]["monthly_quota"], own["api_key"]["monthly_quota"]);
    assert_eq!(own["app"], Value::Null);
}

#[testkit::both]
async fn a_token_has_its_own_scopes(kind: Kind) {
    let app = App::new(kind).await;
    let token = token(&app, "billing:read", Resource::Service).await;
    let (status, body) = app.get_as(&token, Audience::Rest, "/me").await;
    assert_eq!((status, body["error"]["code"].as_str()), (403, Some("missing_scope")));
    assert_eq!(app.get_as(&token, Audience::Rest, "/billing/subscription").await.0, 200);
}

#[testkit::both]
async fn a_token_for_mcp_does_not_open_rest(kind: Kind) {
    let app = App::new(kind).await;
    let bound = token(&app, "runs:read", Resource::Mcp).await;
    let (status, body) = app.get_as(&bound, Audience::Rest, "/me").await;
    assert_eq!((status, body["error"]["code"].as_str()), (401, Some("invalid_api_key")));
    assert_eq!(app.get_as(&bound, Audience::Mcp, "/me").await.0, 200);
    let free = token(&app, "runs:read", Resource::Service).await;
    for audience in [Audience::Rest, Audience::Mcp] {
        assert_eq!(app.get_as(&free, audience, "/me").await.0, 200);
    }
}

#[testkit::both]
async fn no_other_text_is_a_token(kind: Kind) {
    let app = App::new(kind).await;
    let good = token(&app, "runs:read", Resource::Service).await;
    let mut wrong = good.clone();
    wrong.pop();
    for text in ["svc_at_", &wrong, &format!("{good}0"), &good.to_uppercase(), &good.replace("_at_", "_rt_")]
    {
        let (status, body) = app.get_as(text, Audience::Rest, "/me").await;
        assert_eq!((status, body["error"]["code"].as_str()), (401, Some("invalid_api_key")), "{text}");
    }
    app.bed.test.clock.advance(Duration::seconds(3600));
    assert_eq!(app.get_as(&good, Audience::Rest, "/me").await.0, 401, "it has expired");
}

#[testkit::both]
async fn whoever_guesses_is_refused_and_a_known_token_is_not(kind: Kind) {
    let app = App::new(kind).await;
    let known = token(&app, "runs:read", Resource::Service).await;
    assert_eq!(app.get_as(&known, Audience::Rest, "/me").await.0, 200);
    let fresh = token(&app, "runs:read", Resource::Service).await;
    let guess = "svc_at_00000000000000000000000000000000000000";
    for _ in 0..app.pipeline.limits.anonymous_rpm {
        assert_eq!(app.get_as(guess, Audience::Rest, "/me").await.0, 401);
    }
    assert_eq!(app.get_as(guess, Audience::Rest, "/me").await.0, 429);
    // A good token that was not seen yet waits as a guess does. One that was seen works.
    assert_eq!(app.get_as(&fresh, Audience::Rest, "/me").await.0, 429);
    assert_eq!(app.get_as(&known, Audience::Rest, "/me").await.0, 200);
}

#[testkit::both]
async fn tokens_of_a_grant_share_its_rate(kind: Kind) {
    let app = App::new(kind).await;
    let limit = app.get("/me").await["api_key"]["rate_limit_rpm"].as_i64().unwrap();
    let token = token(&app, "runs:read", Resource::Service).await;
    for _ in 0..limit {
        assert_eq!(app.get_as(&token, Audience::Rest, "/me").await.0, 200);
    }
    assert_eq!(app.get_as(&token, Audience::Rest, "/me").await.0, 429);
    // The key of the workspace has a window of its own.
    app.get("/me").await;
}

#[testkit::both]
async fn revoked_apps_are_refused_by_another_replica_within_ten_seconds(kind: Kind) {
    let app = App::new(kind).await;
    let token = token(&app, "runs:read", Resource::Service).await;
    let other = app.replica().await;
    assert_eq!(other.get_as(&token, Audience::Rest, "/me").await.0, 200);
    let reads = other.pipeline.db.stats().reads;
    for _ in 0..20 {
        assert_eq!(other.get_as(&token, Audience::Rest, "/me").await.0, 200);
    }
    assert_eq!(other.pipeline.db.stats().reads, reads, "a warm token needs no query");
    let workspace = app.bed.workspace;
    let revoked = app.bed.write(move |tx| {
        let grant = oauth::grants_of_workspace(tx, workspace)?.remove(0);
        oauth::revoke_grant(tx, workspace, &grant.key_id, &Cause::system("test"))
    });
    assert!(revoked.await.unwrap());
    app.bed.test.clock.advance(Duration::seconds(10));
    let (status, body) = other.get_as(&token, Audience::Rest, "/me").await;
    assert_eq!((status, body["error"]["code"].as_str()), (401, Some("api_key_revoked")));
}
