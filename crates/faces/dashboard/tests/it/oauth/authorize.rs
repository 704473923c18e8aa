//! Requests to authorize: what is refused, and how.

use super::bed::{BASE, Bed, REDIRECT, parameter};
use testkit::{Kind, both};

#[both]
async fn a_bad_client_or_redirect_is_a_page_and_never_a_redirect(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT, "http://localhost/cb"]).await;
    let forged = format!("{client}x");
    let twice = format!("{}&redirect_uri=https%3A%2F%2Fevil.example", Bed::query(&client, &[]));
    let other = format!("{}&client_id=x", Bed::query(&client, &[]));
    let mut queries = vec![
        (String::new(), "client_id is missing"),
        (twice, "redirect_uri twice"),
        (other, "client_id twice"),
        (Bed::query(&client, &[("client_id", None)]), "client_id is missing"),
        (Bed::query(&client, &[("redirect_uri", None)]), "redirect_uri is missing"),
    ];
    for client in [forged.as_str(), "app_01m7w4n5e0k3p8r2v6x9b1d4f7", "reg_e30.AAAA", "x"] {
        queries.push((Bed::query(client, &[]), "Unknown app"));
    }
    for redirect in [
        "https://evil.example/callback",
        "https://app.example.com/callback/",
        "https://app.example.com/callback?x=1",
        "https://app.example.com/callback#x",
        "https://app.example.com:8443/callback",
        "https://APP.example.com/callback",
        "https://user@app.example.com/callback",
        "https://app.example.com@evil.example/callback",
        "https://аpp.example.com/callback",
        "http://app.example.com/callback",
        "http://localhost.evil.example:1/cb",
        "http://localhost:1@evil.example/cb",
        "http://localhost:1/other",
        "http://127.0.0.1:1/cb",
        "javascript:alert(1)",
        "//evil.example",
    ] {
        queries.push((Bed::query(&client, &[("redirect_uri", Some(redirect))]), "not safe"));
    }
    for (query, words) in queries {
        let answer = bed.open(&query).await;
        assert_eq!(answer.status, 400, "{query}: {}", answer.text);
        assert!(answer.text.contains(words), "{query}: {}", answer.text);
        assert!(!answer.headers.contains_key("location"), "{query}");
    }
}

#[both]
async fn other_mistakes_are_told_to_the_client(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT]).await;
    let query = |changes: &[(&str, Option<&str>)]| Bed::query(&client, changes);
    let repeated = |more: &str| format!("{}&{more}", query(&[]));
    for (query, error) in [
        (query(&[("response_type", None)]), "invalid_request"),
        (query(&[("response_type", Some("token"))]), "unsupported_response_type"),
        (query(&[("response_type", Some("code id_token"))]), "unsupported_response_type"),
        (query(&[("response_mode", Some("fragment"))]), "invalid_request"),
        (query(&[("code_challenge", None)]), "invalid_request"),
        (query(&[("code_challenge", Some(""))]), "invalid_request"),
        (query(&[("code_challenge", Some("short"))]), "invalid_request"),
        (query(&[("code_challenge_method", None)]), "invalid_request"),
        (query(&[("code_challenge_method", Some("plain"))]), "invalid_request"),
        (query(&[("code_challenge_method", Some("s256"))]), "invalid_request"),
        (query(&[("scope", Some("everything"))]), "invalid_scope"),
        (query(&[("scope", Some("contacts:read rag:read"))]), "invalid_scope"),
        (query(&[("scope", Some("partner:leads:read"))]), "invalid_scope"),
        (query(&[("scope", Some("contacts:read,mcp:use"))]), "invalid_scope"),
        (query(&[("scope", Some(" "))]), "invalid_scope"),
        (query(&[("resource", Some("https://other.example"))]), "invalid_target"),
        (query(&[("resource", Some("https://svc.example/api/v1/mcp#x"))]), "invalid_target"),
        (query(&[("resource", Some("https://svc.example/api/v1/contacts"))]), "invalid_target"),
        (query(&[("request", Some("a.b.c"))]), "request_not_supported"),
        (query(&[("request_uri", Some("https://app.example.com"))]), "request_uri_not_supported"),
        (repeated("scope=mcp%3Ause"), "invalid_request"),
        (repeated("state=other"), "invalid_request"),
        (repeated("code_challenge_method=S256"), "invalid_request"),
        (repeated("x=1&x=2"), "invalid_request"),
        (repeated("resource=https%3A%2F%2Fsvc.example&resource=https%3A%2F%2Fsvc.example"), "invalid_target"),
    ] {
        let answer = bed.open(&query).await;
        assert_eq!(answer.status, 303, "{query}: {}", answer.text);
        let location = &answer.headers["location"];
        assert!(location.starts_with(&format!("{REDIRECT}?error=")), "{location}");
        assert_eq!(parameter(location, "error").as_deref(), Some(error), "{query}: {location}");
        assert_eq!(parameter(location, "state").as_deref(), Some("a state"));
        assert_eq!(parameter(location, "iss").as_deref(), Some(BASE));
        assert_eq!(parameter(location, "code"), None);
    }
}

#[both]
async fn state_comes_back_byte_for_byte(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT]).await;
    let base = Bed::query(&client, &[("state", None)]);
    // The client of the tests sends no address longer than 2,048 bytes.
    let long = "s".repeat(1000);
    for (sent, back) in [
        ("state=".to_owned(), "&state=&iss=".to_owned()),
        (format!("state={long}"), format!("&state={long}&iss=")),
        ("state=a%2Bb+c%20d%25%26%3D%23".to_owned(), "&state=a%2Bb%20c%20d%25%26%3D%23&iss=".to_owned()),
        ("state=%FF%00%0d%0a".to_owned(), "&state=%FF%00%0D%0A&iss=".to_owned()),
        ("state=%C3%BC%E2%80%AE".to_owned(), "&state=%C3%BC%E2%80%AE&iss=".to_owned()),
    ] {
        let query = format!("{base}&{sent}");
        for decision in ["deny", "allow"] {
            let location = bed.decide(&query, decision).await.headers["location"].clone();
            assert!(location.contains(&back), "{decision}: {location}");
        }
        let wrong = bed.open(&format!("{query}&response_mode=fragment")).await.headers["location"].clone();
        assert!(wrong.contains(&back), "{wrong}");
    }
    let location = bed.decide(&base, "deny").await.headers["location"].clone();
    assert_eq!(parameter(&location, "error").as_deref(), Some("access_denied"));
    assert_eq!((parameter(&location, "state"), parameter(&location, "code")), (None, None));
}

#[both]
async fn each_spelling_of_the_resource_is_accepted(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT]).await;
    for (resource, opens_rest) in [
        ("https://svc.example", true),
        ("https://svc.example/", true),
        ("HTTPS://SVC.example/api/v1", true),
        ("https://svc.example/api/v1/", true),
        ("https://svc.example/api/v1/mcp", false),
        ("https://svc.example/api/v1/mcp/?toolsets=tasks", false),
    ] {
        let code = bed.code(&Bed::query(&client, &[("resource", Some(resource))])).await;
        let tokens = bed.exchange(&client, REDIRECT, &code).await.body;
        let status = bed.contacts(&tokens["access_token"]).await;
        assert_eq!(status == 200, opens_rest, "{resource}: {status}");
    }
}

#[both]
async fn a_request_without_scopes_asks_for_the_everyday_ones(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT]).await;
    let code = bed.code(&Bed::query(&client, &[("scope", None)])).await;
    let tokens = bed.exchange(&client, REDIRECT, &code).await.body;
    let everyday = oauth::everyday().to_string().replace(',', " ");
    assert_eq!(tokens["scope"].as_str(), Some(everyday.as_str()));
}
