//! Ordinary requests: the bytes that reach the server, the response, and the connections used.

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use egress::{Connector, Error, Limits, Method, Policy, Request};
use futures::stream::{self, StreamExt as _};

use crate::support::{Answer, Script, Server, Trap, ok};

#[tokio::test]
async fn request_and_response_arrive_unchanged() {
    let server = Server::start(|_| {
        Answer::Bytes(
            b"HTTP/1.1 418 Teapot\r\nx-a: 1\r\nx-a: 2\r\nset-cookie: a=b\r\ncontent-length: 3\r\n\r\nabc"
                .to_vec(),
        )
    })
    .await;
    let connector = server.connector();
    let request = Request::post(server.url("/p/%41?q=1#fragment"), "{}")
        .header("Content-Type", "application/json")
        .header("X-Twice", "1")
        .header("x-twice", "2")
        .header("x-name", "Zoë");
    let response = connector.send(request).await.unwrap();
    assert_eq!((response.status, &response.body[..], response.truncated), (418, &b"abc"[..], false));
    assert_eq!(response.headers.get_all("x-a").iter().count(), 2);
    assert_eq!(response.final_url.as_str(), server.url("/p/%41?q=1"));
    let seen = server.last();
    assert_eq!(
        (seen.method.as_str(), seen.target.as_str(), &seen.body[..]),
        ("POST", "/p/%41?q=1", &b"{}"[..])
    );
    assert_eq!(seen.header("host"), Some(server.rule().as_str()));
    assert_eq!(seen.header("content-length"), Some("2"));
    assert_eq!(seen.header("x-name"), Some("Zoë"));
    assert_eq!(seen.headers.iter().filter(|(name, _)| name == "x-twice").count(), 2);

    connector.send(Request::get(server.url("/"))).await.unwrap();
    let mut names: Vec<String> = server.last().headers.into_iter().map(|(name, _)| name).collect();
    names.sort();
    assert_eq!(names, ["accept-encoding", "host"], "no cookies, nothing that wasn't asked for");
    connector.send(Request::post(server.url("/"), "")).await.unwrap();
    assert_eq!(server.last().header("content-length"), Some("0"));
}

#[tokio::test]
async fn every_usual_method_is_sent() {
    let server = Server::start(|seen| match seen.method.as_str() {
        "HEAD" => Answer::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n".to_vec()),
        _ => ok(""),
    })
    .await;
    let connector = server.connector();
    for method in [Method::GET, Method::HEAD, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS] {
        let response = connector.send(Request::new(method.clone(), server.url("/"))).await.unwrap();
        assert_eq!((response.status, response.body.len()), (200, 0));
        assert_eq!(server.last().method, method.as_str());
    }
    for method in [Method::CONNECT, Method::TRACE] {
        let error = connector.send(Request::new(method, server.url("/"))).await.unwrap_err();
        assert!(matches!(error, Error::InvalidRequest { .. }));
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn headers_of_the_connection_and_injections_are_refused() {
    let server = Server::start(|_| ok("")).await;
    let connector = server.connector();
    for (name, value) in [
        ("Host", "other.example"),
        ("content-length", "5"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "close"),
        ("keep-alive", "1"),
        ("Proxy-Connection", "close"),
        ("Proxy-Authorization", "x"),
        ("TE", "trailers"),
        ("Trailer", "x"),
        ("Upgrade", "websocket"),
        ("Expect", "100-continue"),
        ("HTTP2-Settings", "x"),
        ("x-a", "1\r\nx-b: 2"),
        ("x-a", "1\n"),
        ("x-a", "\0"),
        ("x-a: 1\r\nx-b", "2"),
        ("x a", "1"),
        ("", "1"),
        (":authority", "other.example"),
    ] {
        let Err(error) = connector.send(Request::get(server.url("/")).header(name, value)).await else {
            panic!("{name}: {value} was sent")
        };
        assert!(matches!(error, Error::InvalidRequest { .. }), "{name}: {value}: {error}");
        assert!(error.is_refusal());
    }
    let many =
        (0..65).fold(Request::get(server.url("/")), |request, i| request.header(format!("x-{i}"), "1"));
    assert!(connector.send(many).await.unwrap_err().is_refusal());
    let large = Request::get(server.url("/")).header("x-a", "a".repeat(33 * 1024));
    assert!(connector.send(large).await.unwrap_err().is_refusal());
    assert_eq!(server.accepted(), 0);
}

#[tokio::test]
async fn the_name_is_kept_and_looked_up_once() {
    let server = Server::start(|_| ok("")).await;
    let port = server.address.port();
    let script =
        Arc::new(Script::default().on("a.corp.example", "127.0.0.1").on("b.corp.example", "127.0.0.1"));
    let connector = script.connector(&["*.corp.example"]);
    for _ in 0..5 {
        for name in ["a.corp.example", "b.corp.example"] {
            connector.send(Request::get(format!("http://{name}:{port}/"))).await.unwrap();
            assert_eq!(server.last().header("host"), Some(format!("{name}:{port}").as_str()));
        }
    }
    assert_eq!((script.lookups("a.corp.example"), script.lookups("b.corp.example")), (1, 1));
    assert_eq!(server.accepted(), 2, "connections are reused for the same host only");
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_fails() {
    let server = Server::start(|_| ok("")).await;
    let script = Arc::new(Script::default().on("two.example", "127.0.0.9 127.0.0.8 127.0.0.1"));
    let url = format!("http://two.example:{}/", server.address.port());
    assert_eq!(script.connector(&["127.0.0.0/8"]).send(Request::get(url)).await.unwrap().status, 200);
    assert_eq!(script.lookups("two.example"), 1);
    // Nothing listens on port 1 of these addresses. The allow rule overrides the check of ports.
    let script = Arc::new(Script::default().on("none.example", "127.0.0.9 127.0.0.8"));
    let error =
        script.connector(&["none.example:1"]).send(Request::get("http://none.example:1/")).await.unwrap_err();
    assert_eq!(error, Error::Connect { reason: "the connection was refused" });
}

#[tokio::test]
async fn the_system_resolver_knows_localhost() {
    let server = Server::start(|_| ok("")).await;
    let connector = Connector::new(Policy::allowing(["localhost"]).unwrap()).unwrap();
    let url = format!("http://localhost:{}/", server.address.port());
    assert_eq!(connector.send(Request::get(&url)).await.unwrap().status, 200);
    let error = Connector::new(Policy::public_only()).unwrap().send(Request::get(url)).await.unwrap_err();
    assert!(error.is_refusal());
}

#[tokio::test]
async fn broken_answers_are_errors() {
    for (answer, reason) in [
        (&b""[..], "closed"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", "closed"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "closed"),
        (b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", "protocol"),
    ] {
        let server = Server::start(move |_| Answer::Close(answer.to_vec())).await;
        let error = server.connector().send(Request::get(server.url("/"))).await.unwrap_err();
        assert!(matches!(error, Error::Http { reason: is } if is.contains(reason)), "{reason}: {error}");
        assert!(!error.is_refusal());
    }
}

#[tokio::test]
async fn bodies_that_are_not_to_be_decoded_stay_as_they_are() {
    let server = Server::start(|_| {
        Answer::Bytes(
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00"
                .to_vec(),
        )
    })
    .await;
    let limits = Limits { decode: false, ..Limits::default() };
    let response = server.connector().send(Request::get(server.url("/")).limits(limits)).await.unwrap();
    assert_eq!(&response.body[..], b"\x1f\x8b\x08\x00");
    assert_eq!(response.headers["content-encoding"], "gzip");
    assert_eq!(server.last().header("accept-encoding"), None);
}

/// Thousands of requests open no more connections than the number of concurrent requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_pooled_under_load() {
    const REQUESTS: usize = 4000;
    const AT_ONCE: usize = 16;
    let server = Server::start(|_| ok("pong")).await;
    let (connector, url) = (server.connector(), server.url("/"));
    let begin = Instant::now();
    let ok = stream::iter(0..REQUESTS)
        .map(|_| connector.send(Request::post(&url, "ping")))
        .buffer_unordered(AT_ONCE)
        .filter(|response| std::future::ready(response.as_ref().is_ok_and(|r| r.body == "pong")))
        .count()
        .await;
    println!("{:.0} requests/s", REQUESTS as f64 / begin.elapsed().as_secs_f64());
    assert_eq!(ok, REQUESTS);
    assert!(server.accepted() <= 2 * AT_ONCE, "{} connections", server.accepted());
}

/// Runs the test below in a process whose environment names proxies.
#[tokio::test]
async fn proxies_of_the_environment_are_ignored() {
    let server = Server::start(|_| ok("direct")).await;
    let trap = Trap::everywhere();
    let proxy = format!("http://127.0.0.1:{}", trap.port);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "exchange::child_of_the_proxy_test", "--ignored", "--nocapture"]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        child.env(name, &proxy);
    }
    child.env_remove("no_proxy").env_remove("NO_PROXY").env("EGRESS_TEST_SERVER", server.rule());
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!((server.accepted(), trap.captured()), (1, 0));
}

#[tokio::test]
#[ignore = "run by proxies_of_the_environment_are_ignored"]
async fn child_of_the_proxy_test() {
    let Ok(server) = std::env::var("EGRESS_TEST_SERVER") else { return };
    let connector = Connector::new(Policy::allowing([server.as_str()]).unwrap()).unwrap();
    assert_eq!(connector.send(Request::get(format!("http://{server}/"))).await.unwrap().body, "direct");
}
