//! The endpoints for programs: what is refused, with which status and body.

use super::bed::{Bed, REDIRECT, VERIFIER, expect_error, form};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use testkit::{Answer, Kind, both};

pub(crate) fn basic(id: &str, secret: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")))
}

const FORM: &str = "application/x-www-form-urlencoded";

async fn send(bed: &Bed, headers: &[(&str, &str)], content_type: &str, body: &str) -> Answer {
    let ask = bed.app.ask_beside("POST", "/oauth/token");
    let ask = headers.iter().fold(ask, |ask, (name, value)| ask.header(name, value));
    ask.bytes(content_type, body.as_bytes()).send().await
}

#[both]
async fn malformed_requests(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT]).await;
    let (app, secret) = bed.app_with_secret().await;
    let header = basic(&app, &secret);
    let with = |more: &[(&str, &str)]| {
        form(&[&[("grant_type", "refresh_token"), ("client_id", &client)], more].concat())
    };
    let code = [("grant_type", "authorization_code"), ("client_id", client.as_str()), ("code", "x")];
    for (headers, content_type, body) in [
        (vec![], "application/json", "{}".to_owned()),
        (vec![], "text/plain", with(&[("refresh_token", "x")])),
        (vec![("content-type", FORM)], FORM, with(&[("refresh_token", "x")])),
        (vec![], FORM, with(&[])),
        (vec![], FORM, form(&[("client_id", &client)])),
        (vec![], FORM, with(&[("refresh_token", "x"), ("refresh_token", "x")])),
        (vec![], FORM, with(&[("refresh_token", "x"), ("y", "1"), ("y", "2")])),
        (vec![], FORM, form(&code)),
        (vec![], FORM, form(&[&code[..], &[("redirect_uri", REDIRECT)]].concat())),
        (vec![], FORM, form(&[&code[..], &[("code_verifier", VERIFIER)]].concat())),
        (vec![("authorization", header.as_str())], FORM, form(&[("client_secret", &secret)])),
        (vec![("authorization", &header), ("authorization", &header)], FORM, String::new()),
        (vec![("authorization", &header)], FORM, with(&[("refresh_token", "x")])),
        (vec![], FORM, with(&[("client_assertion", "a.b.c")])),
    ] {
        let answer = send(&bed, &headers, content_type, &body).await;
        expect_error(&answer, 400, "invalid_request");
    }
    for (grant_type, error) in [
        ("client_credentials", "unsupported_grant_type"),
        ("password", "unsupported_grant_type"),
        ("urn:ietf:params:oauth:grant-type:jwt-bearer", "unsupported_grant_type"),
    ] {
        let answer =
            send(&bed, &[], FORM, &form(&[("grant_type", grant_type), ("client_id", &client)])).await;
        expect_error(&answer, 400, error);
    }
    for fields in [
        vec![("refresh_token", "x")],
        vec![("refresh_token", "svc_rt_00000000000000000000000000000000000000")],
        vec![("refresh_token", "svc_live_00000000000000000000000000000000000000")],
    ] {
        expect_error(&send(&bed, &[], FORM, &with(&fields)).await, 400, "invalid_grant");
    }
    let wrong = with(&[("refresh_token", "x"), ("resource", "https://other.example")]);
    expect_error(&send(&bed, &[], FORM, &wrong).await, 400, "invalid_target");
}

#[both]
async fn clients_that_do_not_prove_who_they_are(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT]).await;
    let (app, secret) = bed.app_with_secret().await;
    let refresh = |more: &[(&str, &str)]| {
        form(&[&[("grant_type", "refresh_token"), ("refresh_token", "x")], more].concat())
    };
    let forged = format!("{client}A");
    for fields in [
        vec![],
        vec![("client_id", "x")],
        vec![("client_id", "app_01m7w4n5e0k3p8r2v6x9b1d4f7")],
        vec![("client_id", forged.as_str())],
        vec![("client_id", "https://app.example.com/client.json")],
        vec![("client_id", app.as_str())],
        vec![("client_id", &app), ("client_secret", "svc_cs_x")],
        vec![("client_id", &client), ("client_secret", "svc_cs_x")],
    ] {
        let answer = send(&bed, &[], FORM, &refresh(&fields)).await;
        expect_error(&answer, 401, "invalid_client");
        assert!(!answer.headers.contains_key("www-authenticate"), "{fields:?}");
    }
    for header in [basic(&app, "svc_cs_x"), basic("x", &secret), "Basic x".to_owned(), "Bearer x".to_owned()]
    {
        let answer = send(&bed, &[("authorization", &header)], FORM, &refresh(&[])).await;
        expect_error(&answer, 401, "invalid_client");
        assert!(answer.headers["www-authenticate"].starts_with("Basic realm="), "{header}");
    }
    for endpoint in ["/oauth/revoke", "/oauth/introspect"] {
        let answer = bed.program(endpoint, &[("token", "x"), ("client_id", "x")]).await;
        expect_error(&answer, 401, "invalid_client");
        expect_error(&bed.program(endpoint, &[("client_id", &client)]).await, 400, "invalid_request");
        let unknown = bed.program(endpoint, &[("client_id", &client), ("token", "x")]).await;
        assert_eq!(unknown.status, 200, "{endpoint}: {}", unknown.text);
    }
}

#[both]
async fn a_code_is_bound_to_everything_that_was_asked(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT]).await;
    let other = bed.public_client(&[REDIRECT, "https://app.example.com/other"]).await;
    let query = Bed::query(&client, &[("resource", Some("https://svc.example/api/v1/mcp"))]);
    let wrong_verifier = VERIFIER.replace('a', "b");
    for (name, value, error) in [
        ("client_id", other.as_str(), "invalid_grant"),
        ("redirect_uri", "https://app.example.com/callback/", "invalid_grant"),
        ("code_verifier", &wrong_verifier, "invalid_grant"),
        ("code_verifier", "short", "invalid_grant"),
        ("resource", "https://other.example", "invalid_target"),
    ] {
        let code = bed.code(&query).await;
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("client_id", client.as_str()),
            ("code", &code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
        ];
        fields.retain(|(other, _)| *other != name);
        fields.push((name, value));
        expect_error(&bed.program("/oauth/token", &fields).await, 400, error);
    }
    let code = bed.code(&query).await;
    bed.app.data.clock.advance(chrono::TimeDelta::seconds(60));
    expect_error(&bed.exchange(&client, REDIRECT, &code).await, 400, "invalid_grant");
}

#[both]
async fn scopes_can_be_fewer_and_never_more(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT]).await;
    let code = bed.code(&Bed::query(&client, &[])).await;
    let tokens = bed.exchange(&client, REDIRECT, &code).await.body;
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let base = [("grant_type", "refresh_token"), ("client_id", client.as_str()), ("refresh_token", refresh)];
    for scope in ["contacts:write", "contacts:read contacts:write", "no:such"] {
        let answer = bed.program("/oauth/token", &[&base[..], &[("scope", scope)]].concat()).await;
        expect_error(&answer, 400, "invalid_scope");
    }
    let fewer = bed.program("/oauth/token", &[&base[..], &[("scope", "mcp:use")]].concat()).await;
    assert_eq!((fewer.status, fewer.body["scope"].as_str()), (200, Some("mcp:use")));
    assert_eq!(bed.contacts(&fewer.body["access_token"]).await, 403);
}
