//! The whole flow by HTTP.

use super::bed::{BASE, Bed, REDIRECT, form, parameter};
use chrono::TimeDelta;
use serde_json::json;
use testkit::{Kind, both};

#[both]
async fn a_public_client_gets_tokens_and_refreshes_them(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT]).await;
    let query = Bed::query(&client, &[]);
    let page = bed.open(&query).await;
    for words in ["Desk", "Nobody has verified", "app.example.com", "Read your contacts", "Workspace 0"] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    let code = bed.code(&query).await;
    let answer = bed.exchange(&client, REDIRECT, &code).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.headers["cache-control"], "no-store");
    let tokens = answer.body;
    assert_eq!((&tokens["token_type"], &tokens["expires_in"]), (&json!("Bearer"), &json!(3600)));
    assert_eq!(tokens["scope"], "contacts:read mcp:use");
    assert_eq!(bed.contacts(&tokens["access_token"]).await, 200);

    let refresh = tokens["refresh_token"].as_str().unwrap();
    let fields = [("grant_type", "refresh_token"), ("client_id", &client), ("refresh_token", refresh)];
    let refreshed = bed.program("/token", &fields).await;
    assert_eq!(refreshed.status, 200, "{}", refreshed.text);
    assert_ne!(refreshed.body["refresh_token"], tokens["refresh_token"]);
    assert_eq!(bed.contacts(&refreshed.body["access_token"]).await, 200);
    let again = bed.program("/oauth/token", &fields).await;
    assert_eq!(again.text, refreshed.text, "a lost answer is sent again");

    let token = refreshed.body["refresh_token"].as_str().unwrap();
    let revoked = bed.program("/oauth/revoke", &[("client_id", &client), ("token", token)]).await;
    assert_eq!(revoked.status, 200, "{}", revoked.text);
    bed.app.data.clock.advance(TimeDelta::seconds(11));
    assert_eq!(bed.contacts(&refreshed.body["access_token"]).await, 401);
}

#[both]
async fn a_registered_app_authenticates_in_both_ways(kind: Kind) {
    let bed = Bed::new(kind).await;
    let (client, secret) = bed.app_with_secret().await;
    let query = Bed::query(&client, &[("resource", Some("https://svc.example/api/v1/mcp"))]);
    let page = bed.open(&query).await;
    assert!(page.text.contains("has registered this app here"), "{}", page.text);
    let code = bed.code(&query).await;
    let fields = form(&[
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", super::bed::VERIFIER),
    ]);
    let basic = super::token::basic(&client, &secret);
    let ask = bed.app.ask_beside("POST", "/oauth/token").header("authorization", &basic);
    let answer = ask.bytes("application/x-www-form-urlencoded", fields.as_bytes()).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(bed.contacts(&answer.body["access_token"]).await, 401, "the token is for MCP only");
    let refresh = answer.body["refresh_token"].as_str().unwrap();
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh),
        ("client_id", &client),
        ("client_secret", &secret),
    ];
    let refreshed = bed.program("/oauth/token", &fields).await;
    assert_eq!(refreshed.status, 200, "{}", refreshed.text);
    let token = refreshed.body["access_token"].as_str().unwrap();
    let fields = [("token", token), ("client_id", &client), ("client_secret", &secret)];
    let seen = bed.program("/oauth/introspect", &fields).await.body;
    assert_eq!((&seen["active"], &seen["aud"]), (&json!(true), &json!("https://svc.example/api/v1/mcp")));
    assert_eq!((&seen["client_id"], &seen["iss"]), (&json!(client), &json!(BASE)));
    let other = bed.public_client(&[REDIRECT]).await;
    let fields = [("token", token), ("client_id", &other)];
    assert_eq!(bed.program("/oauth/introspect", &fields).await.body, json!({ "active": false }));
    bed.program("/oauth/revoke", &fields).await;
    let fields = [("token", token), ("client_id", &client), ("client_secret", &secret)];
    assert_eq!(
        bed.program("/oauth/introspect", &fields).await.body["active"],
        true,
        "not another's to revoke"
    );
}

#[both]
async fn the_address_in_the_code_is_that_of_the_request(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&["http://localhost/callback"]).await;
    let asked = "http://localhost:55454/callback";
    let query = Bed::query(&client, &[("redirect_uri", Some(asked)), ("state", Some(""))]);
    let answer = bed.decide(&query, "allow").await;
    let location = &answer.headers["location"];
    assert!(location.starts_with("http://localhost:55454/callback?code=svc_ac_"), "{location}");
    assert_eq!(parameter(location, "state").as_deref(), Some(""));
    assert_eq!(parameter(location, "iss").as_deref(), Some(BASE));
    let code = parameter(location, "code").unwrap();
    let wrong = bed.exchange(&client, "http://localhost:1/callback", &code).await;
    super::bed::expect_error(&wrong, 400, "invalid_grant");
    let code = bed.code(&query).await;
    assert_eq!(bed.exchange(&client, asked, &code).await.status, 200);
    let again = bed.exchange(&client, asked, &code).await;
    super::bed::expect_error(&again, 400, "invalid_grant");
}
