//! Clients: registration without a row, apps with rotated secrets, and what ends with them.

use super::bed::{Bed, REDIRECT, expect_error};
use chrono::TimeDelta;
use model::{AppId, Cause};
use oauth::clients::apps;
use serde_json::{Value, json};
use testkit::{Kind, TestApp, both};

#[both]
async fn registration_answers_as_the_standard_says(kind: Kind) {
    let bed = Bed::new(kind).await;
    let answer = bed.register(json!({ "client_name": "Desk", "redirect_uris": [REDIRECT], "x": 1 })).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    assert_eq!(answer.headers["cache-control"], "no-store");
    let Value::Object(mut body) = answer.body else { panic!("{}", answer.text) };
    let (id, secret) = (body.remove("client_id").unwrap(), body.remove("client_secret").unwrap());
    assert!(id.as_str().unwrap().starts_with("reg_") && secret.as_str().unwrap().starts_with("svc_cs_"));
    let expected = json!({
        "client_secret_expires_at": 0, "client_name": "Desk", "redirect_uris": [REDIRECT],
        "token_endpoint_auth_method": "client_secret_basic", "response_types": ["code"],
        "grant_types": ["authorization_code", "refresh_token"],
    });
    assert_eq!(Value::Object(body), expected);
    let public = json!({ "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none" });
    let alias = bed.app.ask_beside("POST", "/register").json(&public).send().await;
    assert_eq!((alias.status, alias.body["client_secret"].clone()), (201, Value::Null));
    for (metadata, error) in [
        (json!({}), "invalid_redirect_uri"),
        (json!({ "redirect_uris": ["http://app.example.com/cb"] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": ["http://localhost.evil.example/cb"] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": [REDIRECT, "https://Mixed.example/cb"] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": 7 }), "invalid_client_metadata"),
        (json!({ "redirect_uris": [REDIRECT], "grant_types": ["password"] }), "invalid_client_metadata"),
        (json!([]), "invalid_client_metadata"),
    ] {
        expect_error(&bed.register(metadata).await, 400, error);
    }
    let ask = bed.app.ask_beside("POST", "/oauth/register").bytes("text/plain", b"{}");
    expect_error(&ask.send().await, 400, "invalid_client_metadata");
    let wrong = bed.app.ask_beside("GET", "/oauth/register").send().await;
    assert_eq!((wrong.status, wrong.headers["allow"].as_str()), (405, "POST, OPTIONS"));
}

#[both]
async fn registration_can_be_off(kind: Kind) {
    let bed = Bed::of(TestApp::without_registration(kind).await).await;
    let answer = bed.register(json!({ "redirect_uris": [REDIRECT] })).await;
    expect_error(&answer, 403, "access_denied");
    let metadata = bed.app.ask_beside("GET", "/.well-known/oauth-authorization-server").send().await;
    assert!(metadata.body.get("registration_endpoint").is_none());
    let (client, _) = bed.app_with_secret().await;
    assert_eq!(bed.open(&Bed::query(&client, &[])).await.status, 200, "apps of workspaces are not affected");
}

#[both]
async fn a_rotated_secret_overlaps_and_a_revoked_app_is_gone(kind: Kind) {
    let bed = Bed::new(kind).await;
    let (client, old) = bed.app_with_secret().await;
    let code = bed.code(&Bed::query(&client, &[])).await;
    let fields = [
        ("grant_type", "authorization_code"),
        ("client_id", client.as_str()),
        ("client_secret", &old),
        ("code", &code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", super::bed::VERIFIER),
    ];
    let tokens = bed.program("/oauth/token", &fields).await.body;
    assert_eq!(bed.contacts(&tokens["access_token"]).await, 200, "{tokens}");
    let (id, workspace) = (AppId::parse(&client).unwrap(), bed.workspace);
    let rotated = id.clone();
    let made = bed.app.db().write(move |tx| apps::rotate(tx, workspace, &rotated, 3600));
    let (_, new) = made.await.unwrap();
    let status = async |secret: &str| {
        let fields = [("token", "x"), ("client_id", client.as_str()), ("client_secret", secret)];
        bed.program("/oauth/introspect", &fields).await.status
    };
    assert_eq!((status(&old).await, status(&new).await), (200, 200));
    bed.app.data.clock.advance(TimeDelta::seconds(3600));
    assert_eq!((status(&old).await, status(&new).await), (401, 200));
    let revoked = bed.app.db().write(move |tx| apps::revoke(tx, workspace, &id, &Cause::system("test")));
    assert_eq!(revoked.await.unwrap().status, "revoked");
    assert_eq!(status(&new).await, 401);
    bed.app.data.clock.advance(TimeDelta::seconds(11));
    assert_eq!(bed.contacts(&tokens["access_token"]).await, 401);
}
