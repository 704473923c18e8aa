//! `ctx.fetch`: rules, secrets, redirects, test mode.

use super::bed::{Bed, get, list};
use functions::network::{FetchSource, Fixture, Network, NetworkMode};
use model::{Chain, EventId, SeededRandom};
use ports::FunctionEffect;
use sandbox::{FetchRequest, Host};
use serde_json::json;
use std::collections::BTreeMap;
use testkit::{Kind, TestApp, assert_absent};

const SECRET: &str = "sk+live/Äb3\"x 9";

fn secrets() -> Vec<(String, String)> {
    vec![("token".to_owned(), SECRET.to_owned())]
}

#[testkit::both]
async fn a_secret_reaches_its_host_and_nobody_else(kind: Kind) {
    let bed = Bed::new(kind).await;
    let host = bed.host(|settings| settings.secrets = secrets()).await;
    let body = "
        const key = ctx.secrets.token;
        const answer = await ctx.fetch(`${ctx.input}/a?key=${key}&again=${encodeURIComponent(key)}`, {
          method: 'POST', body: JSON.stringify({ key }),
          headers: { 'content-type': 'application/json', 'x-key': 'k', authorization: 'Basic ' + btoa('me:' + key) },
        });
        return { key, status: answer.status, url: answer.url, seen: await answer.text(), cause: answer.headers.get('x-svc-cause') };";
    let url = bed.echo.at("api.example.com", "");
    let output = bed.run(&host, body, &json!(url)).await.unwrap();
    let seen = bed.echo.seen().remove(0);
    let encoded = "sk%2Blive%2F%C3%84b3%22x%209";
    assert!(seen.starts_with(&format!("POST /a?key={encoded}&again={encoded} HTTP/1.1")), "{seen}");
    assert!(seen.ends_with(&json!({ "key": SECRET }).to_string()), "{seen}");
    use base64::Engine as _;
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("me:{SECRET}"));
    assert!(seen.contains(&format!("authorization: Basic {basic}")), "{seen}");
    // The host repeats all of it. The program gets none of it.
    let text = output.to_string();
    for form in [SECRET, encoded, &basic, "sk+live/Äb3\""] {
        assert_absent(&text, form);
    }
    assert!(output["seen"].as_str().unwrap().contains("key=[secret]&again=[secret]"), "{text}");
    assert_eq!((&output["status"], &output["cause"]), (&json!(200), &json!(null)));
    let [fetch] = host.fetches().try_into().unwrap();
    assert_eq!(fetch.url, format!("{url}/a?key=[secret]&again=[secret]"));
    assert_eq!((fetch.status, fetch.error, fetch.source), (Some(200), None, FetchSource::Network));
    assert!(fetch.bytes_in > 0 && fetch.bytes_out > 0);
    // What the program shows of it itself.
    assert_eq!(host.mask(output["key"].as_str().unwrap()), "[secret]");
    assert_eq!(host.mask_json(&json!([SECRET, 5]).to_string()), r#"["[secret]",5]"#);
}

#[testkit::both]
async fn placeholders_are_of_one_call_and_of_functions_with_a_list(kind: Kind) {
    let bed = Bed::new(kind).await;
    let first = bed.host(|settings| settings.secrets = secrets()).await.secrets();
    let second = bed.host(|settings| settings.secrets = secrets()).await.secrets();
    assert_ne!(first[0].placeholder, second[0].placeholder);
    for mode in [NetworkMode::Public, NetworkMode::None] {
        let network = Network { mode, hosts: Vec::new() };
        let host = bed.host(|settings| (settings.secrets, settings.network) = (secrets(), network)).await;
        assert!(host.secrets().is_empty());
    }
    // The placeholder of another call is a text like any other.
    let host = bed.host(|settings| settings.secrets = secrets()).await;
    let url = bed.echo.at("api.example.com", &format!("/{}", first[0].placeholder));
    host.fetch(get(&url)).await.unwrap();
    assert!(bed.echo.seen()[0].contains(&first[0].placeholder));
}

#[testkit::both]
async fn redirects_are_checked_at_each_hop_and_lose_secrets(kind: Kind) {
    let bed = Bed::new(kind).await;
    let network = list(&["a.example.com", "b.example.com"]);
    let host = bed.host(|settings| (settings.secrets, settings.network) = (secrets(), network)).await;
    let placeholder = host.secrets()[0].placeholder.clone();
    let to = |status: u16, host: &str, path: &str| {
        bed.echo.at("a.example.com", &format!("/to/{status}/{}", bed.echo.at(host, path)))
    };
    let request = |url: String, method: &str, body: &str| FetchRequest {
        method: method.to_owned(),
        url,
        headers: vec![
            ("x-key-of-call".to_owned(), placeholder.clone()),
            ("accept".to_owned(), "a/b".to_owned()),
        ],
        body: body.as_bytes().to_vec(),
    };
    // To the same host with everything, to another without credentials.
    let answer = host.fetch(request(to(307, "a.example.com", "/same"), "POST", &placeholder)).await.unwrap();
    assert!(answer.url.ends_with("/same"));
    let seen = bed.echo.seen();
    assert!(seen[1].starts_with("POST /same") && seen[1].ends_with(SECRET), "{}", seen[1]);
    let answer = host.fetch(request(to(302, "b.example.com", "/other"), "POST", &placeholder)).await.unwrap();
    assert!(answer.url.ends_with("/other"));
    let seen = bed.echo.seen();
    assert!(seen[1].starts_with("GET /other") && seen[1].contains("accept: a/b"), "{}", seen[1]);
    assert_absent(&seen[1], "x-key-of-call");
    assert_absent(&seen[1], SECRET);
    // A body with a secret goes to no other host.
    let refused =
        host.fetch(request(to(307, "b.example.com", "/other"), "POST", &placeholder)).await.unwrap_err();
    assert_eq!(refused.name, "NetworkDenied");
    assert_eq!(bed.echo.seen().len(), 1);
    // A host that is not in the list, by name and by address.
    for other in ["c.example.com", "127.0.0.1", "example.com"] {
        let refused = host.fetch(request(to(302, other, "/x"), "GET", "")).await.unwrap_err();
        assert_eq!(refused.name, "NetworkDenied", "{other}");
        assert_eq!(bed.echo.seen().len(), 1, "{other}");
    }
    // Three redirects are followed, four are not.
    let path = |hops: usize| {
        let mut path = bed.echo.at("a.example.com", "/end");
        for _ in 0..hops {
            path = bed.echo.at("a.example.com", &format!("/to/302/{path}"));
        }
        path
    };
    assert!(host.fetch(get(&path(3))).await.is_ok());
    assert_eq!(host.fetch(get(&path(4))).await.unwrap_err().name, "NetworkError");
}

#[testkit::both]
async fn sizes_are_limited(kind: Kind) {
    let bed = Bed::new(kind).await;
    let host = bed.host(|_| {}).await;
    let fits = host.fetch(get(&bed.echo.at("api.example.com", "/size/5000000"))).await.unwrap();
    assert_eq!(fits.body.len(), 5_000_000);
    let error = host.fetch(get(&bed.echo.at("api.example.com", "/size/5300000"))).await.unwrap_err();
    assert_eq!(error.name, "LimitError");
    let body = "for (let n = 0; n < 10; n++) await ctx.fetch(ctx.input); await ctx.fetch(ctx.input)";
    let error = bed.run(&host, body, &json!(bed.echo.at("api.example.com", "/a"))).await.unwrap_err();
    assert_eq!(error, "LimitError: a call may fetch 10 times");
}

fn fixture(method: Option<&str>, url: &str, body: &str) -> Fixture {
    let headers = BTreeMap::from([("X-A".to_owned(), "1".to_owned())]);
    Fixture {
        method: method.map(str::to_owned),
        url: url.to_owned(),
        status: 201,
        headers,
        body: body.to_owned(),
    }
}

#[testkit::both]
async fn a_test_gets_fixtures_and_changes_nothing(kind: Kind) {
    let bed = Bed::new(kind).await;
    let host = bed.host(|settings| settings.livemode = false).await;
    let url = bed.echo.at("api.example.com", "/a");
    // Without fixtures reading is real and writing is simulated.
    host.fetch(get(&url)).await.unwrap();
    let post = || FetchRequest { method: "POST".to_owned(), ..get(&url) };
    let answer = host.fetch(post()).await.unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (200, br#"{"simulated":true}"#.as_slice()));
    assert_eq!(bed.echo.seen().len(), 1);
    // With fixtures nothing leaves the service.
    let fixtures =
        vec![fixture(Some("get"), "http://api.example.com:*/a", "one"), fixture(None, "*/b", "two")];
    let with = bed.host(|settings| (settings.livemode, settings.fixtures) = (false, fixtures.clone())).await;
    let body = "
        const first = await ctx.fetch(ctx.input), second = await ctx.fetch(ctx.input.replace(/a$/, 'b'), { method: 'PUT' });
        return [first.status, first.headers.get('x-a'), await first.text(), await second.text()];";
    assert_eq!(bed.run(&with, body, &json!(url)).await.unwrap(), json!([201, "1", "one", "two"]));
    assert_eq!(with.fetch(get(&bed.echo.at("api.example.com", "/c"))).await.unwrap_err().name, "NoFixture");
    assert_eq!(with.fetch(post()).await.unwrap().status, 200);
    // The rules hold in tests too.
    assert_eq!(with.fetch(get("https://other.example/b")).await.unwrap_err().name, "NetworkDenied");
    let sources: Vec<_> = with.fetches().into_iter().map(|fetch| fetch.source).collect();
    let [fixture, refused, simulated] = [FetchSource::Fixture, FetchSource::Refused, FetchSource::Simulated];
    assert_eq!(sources, [fixture, fixture, refused, simulated, refused]);
    // In live mode there are no fixtures.
    let live = bed.host(|settings| settings.fixtures = fixtures).await;
    live.fetch(get(&url)).await.unwrap();
    assert_eq!(bed.echo.seen().len(), 1);
}

#[testkit::both]
async fn a_function_that_reads_does_not_change(kind: Kind) {
    let bed = Bed::new(kind).await;
    let host = bed.host(|settings| settings.effect = FunctionEffect::Read).await;
    let url = bed.echo.at("api.example.com", "/a");
    for (method, is_allowed) in
        [("GET", true), ("HEAD", true), ("POST", true), ("PUT", false), ("PATCH", false), ("DELETE", false)]
    {
        let answer = host.fetch(FetchRequest { method: method.to_owned(), ..get(&url) }).await;
        assert_eq!(answer.is_ok(), is_allowed, "{method}");
    }
    assert_eq!(host.kv_set("a".to_owned(), json!(1)).await.unwrap_err().name, "ReadOnly");
    assert_eq!(host.kv_delete("a".to_owned()).await.unwrap_err().name, "ReadOnly");
}

#[testkit::both]
async fn calls_of_the_own_address_go_on_with_the_chain(kind: Kind) {
    let bed = Bed::around(TestApp::at_own_address(kind).await).await;
    let hook = bed.app.post("/inbound-webhooks", &bed.key, json!({ "name": "Own" })).await.expect(201);
    let path = hook["url"].as_str().unwrap().replace(&bed.app.origin, "");
    let root = EventId::new(bed.app.db().now(), &SeededRandom::new(5));
    let chain = Chain::starting(root.clone()).next();
    let mut caller = bed.caller(&[]).await;
    caller.chain = Some(chain);
    let network = Network { mode: NetworkMode::Public, hosts: Vec::new() };
    let host = bed.host(|settings| (settings.caller, settings.network) = (caller, network)).await;
    let post = |url: String| FetchRequest {
        method: "POST".to_owned(),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: b"{}".to_vec(),
        ..get(&url)
    };
    // Also through a redirect of another host.
    let redirect = bed.echo.at("other.example.com", &format!("/to/307/{}{path}", bed.app.origin));
    for url in [format!("{}{path}", bed.app.origin), redirect] {
        let answer = host.fetch(post(url)).await.unwrap();
        assert!(answer.status < 300, "{}", answer.status);
        bed.app.deliver().await;
        let events = bed.app.get("/events?type=webhook.received&limit=1", &bed.key).await.expect(200);
        assert_eq!(events[0]["caused_by"]["root_event_id"], root.as_str(), "{events}");
    }
    // The program cannot make the header itself.
    let headers = vec![("X-Svc-Cause".to_owned(), "a".to_owned())];
    let error = host.fetch(FetchRequest { headers, ..get(&bed.app.origin) }).await.unwrap_err();
    assert_eq!(error.name, "TypeError");
}
