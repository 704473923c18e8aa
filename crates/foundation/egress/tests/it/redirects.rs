//! Redirects: followed only on request, checked on every hop, without carrying secrets to another origin.

use std::sync::Arc;

use egress::{Error, Limits, Method, Request};

use crate::support::{Answer, Script, Server, Trap, ok, redirect};

fn following(max_redirects: u8) -> Limits {
    Limits { max_redirects, ..Limits::default() }
}

#[tokio::test]
async fn redirects_are_responses_unless_asked_for() {
    let server = Server::start(|_| redirect(302, "http://127.0.0.1:1/")).await;
    let response = server.connector().send(Request::get(server.url("/"))).await.unwrap();
    assert_eq!((response.status, server.seen().len()), (302, 1));
    assert_eq!(response.headers["location"], "http://127.0.0.1:1/");
}

#[tokio::test]
async fn no_redirect_reaches_what_is_forbidden() {
    let trap = Trap::everywhere();
    let server = Server::at("127.0.0.2", |seen| {
        let location = seen.header("x-location").unwrap().to_owned();
        redirect(302, &location)
    })
    .await;
    let script =
        Arc::new(Script::default().on("inner.example", "127.0.0.1").on("mixed.example", "8.8.8.8 ::1"));
    let connector = script.connector(&[&server.rule()]);
    for location in [
        "http://127.0.0.1:PORT/",
        "//127.0.0.1:PORT/",
        "http://localhost:PORT/",
        "http://0x7f.1:PORT/",
        "http://2130706433:PORT/",
        "http:\\\\127.0.0.1:PORT/",
        "http://[::1]:PORT/",
        "http://[::ffff:127.0.0.1]:PORT/",
        "http://127.0.0.2:PORT/",
        "http://inner.example:PORT/",
        "http://mixed.example:PORT/",
        "https://inner.example:PORT/",
        "http://u:p@inner.example:PORT/",
        "http://169.254.169.254/",
        "http://localhost.:PORT/",
        "file:///etc/passwd",
        "ftp://127.0.0.1:PORT/",
        "gopher://127.0.0.1:PORT/",
        "data:,x",
        "http://inner.example:22/",
    ] {
        let location = location.replace("PORT", &trap.port.to_string());
        let request = Request::get(server.url("/")).header("x-location", &location).limits(following(5));
        let error = connector.send(request).await.unwrap_err();
        assert!(error.is_refusal(), "{location}: {error}");
        assert_eq!(trap.captured(), 0, "{location}");
    }
    assert_eq!((script.lookups("inner.example"), script.lookups("mixed.example")), (2, 1));
}

#[tokio::test]
async fn the_number_of_redirects_is_bounded() {
    let server = Server::start(|seen| match seen.target.strip_prefix("/").unwrap().parse::<u32>() {
        Ok(0) => ok("end"),
        Ok(n) => redirect(302, &(n - 1).to_string()),
        Err(_) => redirect(302, "/loop"),
    })
    .await;
    let connector = server.connector();
    let get = |path: &str, max| Request::get(server.url(path)).limits(following(max));
    let response = connector.send(get("/3", 3)).await.unwrap();
    assert_eq!((&response.body[..], response.final_url.path()), (&b"end"[..], "/0"));
    assert_eq!(connector.send(get("/4", 3)).await.unwrap_err(), Error::TooManyRedirects);
    let before = server.seen().len();
    assert_eq!(connector.send(get("/loop", 10)).await.unwrap_err(), Error::TooManyRedirects);
    assert_eq!(server.seen().len() - before, 11);
}

#[tokio::test]
async fn methods_and_bodies_follow_the_status() {
    let server = Server::start(|seen| match seen.target.strip_prefix("/from/") {
        Some(status) => redirect(status.parse().unwrap(), "/to"),
        None => ok(""),
    })
    .await;
    let connector = server.connector();
    for (status, method, becomes) in [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (307, "POST", "POST"),
        (308, "POST", "POST"),
        (301, "PUT", "PUT"),
        (302, "DELETE", "DELETE"),
        (303, "PUT", "GET"),
        (307, "PATCH", "PATCH"),
        (303, "HEAD", "HEAD"),
        (301, "GET", "GET"),
        (303, "GET", "GET"),
        (308, "GET", "GET"),
    ] {
        let method = method.parse::<Method>().unwrap();
        let body = if method == Method::GET || method == Method::HEAD { "" } else { "body" };
        let request = Request::new(method.clone(), server.url(&format!("/from/{status}")))
            .body(body)
            .header("content-type", "text/plain")
            .header("authorization", "secret")
            .limits(following(1));
        let response = connector.send(request).await.unwrap();
        let seen = server.last();
        assert_eq!(
            (response.status, seen.target.as_str(), seen.method.as_str()),
            (200, "/to", becomes),
            "{status} {method}"
        );
        let kept = becomes == method.as_str();
        assert_eq!(seen.body, if kept { body.as_bytes() } else { b"" }, "{status} {method}");
        assert_eq!(seen.header("content-type").is_some(), kept, "{status} {method}");
        assert_eq!(seen.header("authorization"), Some("secret"), "the origin is the same");
    }
}

#[tokio::test]
async fn other_3xx_and_missing_locations_are_responses() {
    for head in [
        "300 Choices\r\nlocation: /x",
        "304 Same\r\nlocation: /x",
        "305 Proxy\r\nlocation: /x",
        "302 Nowhere",
    ] {
        let answer = format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\n\r\n");
        let server = Server::start(move |_| Answer::Bytes(answer.clone().into_bytes())).await;
        let request = Request::get(server.url("/")).limits(following(5));
        let response = server.connector().send(request).await.unwrap();
        assert_eq!(response.status / 100, 3);
        assert_eq!(server.seen().len(), 1, "{head}");
    }
    let server = Server::start(|_| redirect(302, "http://[")).await;
    let error =
        server.connector().send(Request::get(server.url("/")).limits(following(5))).await.unwrap_err();
    assert!(matches!(error, Error::Http { .. }), "{error}");
}

/// The first server redirects to the second, which redirects back to the first: secrets are dropped at the first step
/// and not restored.
#[tokio::test]
async fn secrets_stay_at_their_origin() {
    let home = Server::start(|seen| match seen.header("x-next") {
        Some(next) => redirect(307, next),
        None => ok("home"),
    })
    .await;
    let back = home.url("/back");
    let away = Server::start(move |_| redirect(307, &back)).await;
    let script = Arc::new(Script::default().on("same-server.example", "127.0.0.1"));
    let connector = script.connector(&["127.0.0.1"]);
    let other_name = format!("http://same-server.example:{}/", home.address.port());
    for next in [away.url("/"), other_name] {
        let request = Request::post(home.url("/"), "body")
            .header("Authorization", "Bearer secret")
            .header("Cookie", "a=secret")
            .header("X-Api-Key", "secret")
            .header("webhook-signature", "secret")
            .header("x-next", &next)
            .header("accept", "application/json")
            .header("user-agent", "test/1")
            .header("content-type", "text/plain")
            .limits(following(2));
        assert_eq!(connector.send(request).await.unwrap().body, "home");
        for seen in [home.last()].into_iter().chain(away.seen()) {
            assert!(!format!("{seen:?}").contains("secret"), "{seen:?}");
            let kept = ["accept", "user-agent", "content-type"].map(|name| seen.header(name).is_some());
            assert_eq!((kept, &seen.body[..]), ([true; 3], &b"body"[..]));
        }
    }
    assert_eq!(away.seen().len(), 1);
}
