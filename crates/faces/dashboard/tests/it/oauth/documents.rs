//! Clients with a metadata document, on a scripted server outside.

use super::bed::{Bed, expect_error, parameter};
use chrono::TimeDelta;
use serde_json::{Value, json};
use testkit::{Answering, Kind, Receiver, both};

fn document(id: &str) -> Value {
    json!({
        "client_id": id, "client_name": "Assistant", "redirect_uris": ["http://localhost/callback"],
        "token_endpoint_auth_method": "none", "grant_types": ["authorization_code", "refresh_token"],
    })
}

#[both]
async fn a_client_with_a_document_walks_through_the_flow(kind: Kind) {
    let bed = Bed::new(kind).await;
    let outside = Receiver::start().await;
    let id = outside.url("/oauth/client.json");
    let body = document(&id);
    outside.answer(move |_| Answering::json(200, &body));
    let redirect = "http://localhost:41234/callback";
    let query = Bed::query(&id, &[("redirect_uri", Some(redirect))]);
    let stranger = bed.open_as("x=y", &query).await;
    assert!(stranger.headers["location"].starts_with("/sign-in?next="), "{}", stranger.text);
    assert_eq!(outside.count(), 0, "only people who are signed in make the service fetch");
    let (one, two) = tokio::join!(bed.open(&query), bed.open(&query));
    let host = outside.address.to_string();
    for page in [one, two] {
        assert!(page.text.contains(&host) && page.text.contains("This was verified"), "{}", page.text);
        assert!(page.text.contains("Nobody can verify which program"), "{}", page.text);
    }
    assert_eq!(outside.count(), 1, "one fetch at a time");
    let code = bed.code(&query).await;
    let tokens = bed.exchange(&id, redirect, &code).await;
    assert_eq!(tokens.status, 200, "{}", tokens.text);
    assert_eq!(bed.contacts(&tokens.body["access_token"]).await, 200);
    assert_eq!(outside.count(), 1);
    assert_eq!(outside.delivered()[0].headers["accept"], "application/json");

    // Five minutes later the document is fetched again. Its server is down, which ends nothing.
    outside.answer_status(503);
    bed.app.data.clock.advance(TimeDelta::seconds(300));
    let refresh = tokens.body["refresh_token"].as_str().unwrap();
    let fields = [("grant_type", "refresh_token"), ("client_id", id.as_str()), ("refresh_token", refresh)];
    expect_error(&bed.program("/oauth/token", &fields).await, 503, "temporarily_unavailable");
    assert_eq!(outside.count(), 2);
    let body = document(&id);
    outside.answer(move |_| Answering::json(200, &body));
    bed.app.data.clock.advance(TimeDelta::seconds(60));
    assert_eq!(bed.program("/oauth/token", &fields).await.status, 200);
}

#[both]
async fn documents_that_are_not_acceptable_are_a_page(kind: Kind) {
    let bed = Bed::new(kind).await;
    let outside = Receiver::start().await;
    let headers = |kind: &str| vec![("content-type".to_owned(), kind.to_owned())];
    let id = |name: &str| outside.url(&format!("/{name}.json"));
    let good = document(&id("good")).to_string();
    let padded = format!("{good}{}", " ".repeat(5 * 1024));
    for (name, answering, words) in [
        ("missing", Answering::status(404), "status 404"),
        ("created", Answering::Body(201, headers("application/json"), good.clone()), "status 201"),
        ("moved", Answering::with(302, "location", &id("good")), "status 302"),
        ("html", Answering::Body(200, headers("text/html"), good.clone()), "Content-Type"),
        ("large", Answering::Body(200, headers("application/json"), padded), "larger than accepted"),
        ("other", Answering::Body(200, headers("application/json"), good.clone()), "byte for byte"),
        ("broken", Answering::Body(200, headers("application/json"), "{".to_owned()), "JSON object"),
        ("hangs-up", Answering::HangUp, "cannot be fetched"),
    ] {
        outside.forget();
        outside.answer(move |_| answering.clone());
        for _ in 0..2 {
            let page = bed
                .open(&Bed::query(&id(name), &[("redirect_uri", Some("http://localhost/callback"))]))
                .await;
            assert_eq!(page.status, 400, "{name}: {}", page.text);
            assert!(page.text.contains(words), "{name}: {}", page.text);
            assert!(!page.headers.contains_key("location"));
        }
        assert!(outside.count() <= 1, "{name}: a failure is cached");
    }
    for id in [
        "http://169.254.169.254/latest/meta-data",
        "https://10.0.0.1/client.json",
        "https://localhost:1/../client.json",
        "https://user@app.example.com/client.json",
        "https://app.example.com",
        "http://app.example.com/client.json",
    ] {
        let page = bed.open(&Bed::query(id, &[])).await;
        assert_eq!(page.status, 400, "{id}");
        assert!(page.text.contains("cannot be verified"), "{id}: {}", page.text);
    }
    // A redirect address that the document does not name.
    let (own, body) = (id("good"), document(&id("good")));
    outside.answer(move |_| Answering::json(200, &body));
    let page = bed
        .open(&Bed::query(&own, &[("redirect_uri", Some("http://localhost.evil.example:1/callback"))]))
        .await;
    assert_eq!(page.status, 400);
    assert!(page.text.contains("not safe"), "{}", page.text);
    let denied =
        bed.decide(&Bed::query(&own, &[("redirect_uri", Some("http://localhost:7/callback"))]), "deny").await;
    assert_eq!(parameter(&denied.headers["location"], "error").as_deref(), Some("access_denied"));
}

#[both]
async fn a_slow_server_is_given_up(kind: Kind) {
    let bed = Bed::new(kind).await;
    let outside = Receiver::start().await;
    outside.answer(|_| Answering::Silent);
    let page = bed.open(&Bed::query(&outside.url("/client.json"), &[])).await;
    assert_eq!(page.status, 400, "{}", page.text);
    assert!(page.text.contains("cannot be fetched"), "{}", page.text);
}
