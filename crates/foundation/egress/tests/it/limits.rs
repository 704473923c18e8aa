//! Limits of size and time. Time runs on tokio's paused clock, which jumps to the next timer as soon as nothing else
//! happens.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use egress::{Connector, Error, Limits, Oversize, Policy, Request, Resolver};
use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::support::{Answer, Server, Trap, ok};

fn at_most(max_response_bytes: usize, oversize: Oversize) -> Limits {
    Limits { max_response_bytes, oversize, ..Limits::default() }
}

#[tokio::test]
async fn bodies_are_capped_however_they_are_framed() {
    let framings: [fn() -> Answer; 3] = [
        || ok("0123456789"),
        || {
            Answer::Bytes(
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n"
                    .to_vec(),
            )
        },
        || Answer::Close(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n0123456789".to_vec()),
    ];
    for framing in framings {
        let server = Server::start(move |_| framing()).await;
        let connector = server.connector();
        let send = async |max, oversize| {
            connector.send(Request::get(server.url("/")).limits(at_most(max, oversize))).await
        };
        assert_eq!(send(10, Oversize::Fail).await.unwrap().body, "0123456789");
        assert!(matches!(send(9, Oversize::Fail).await, Err(Error::TooLarge { .. })));
        assert!(matches!(send(0, Oversize::Fail).await, Err(Error::TooLarge { .. })));
        // The limit can be lowered once the headers are known, but not raised.
        for (first, then, fits) in [(100, 10, true), (100, 9, false), (10, 100, true), (0, 100, false)] {
            let request = Request::get(server.url("/")).limits(at_most(first, Oversize::Fail));
            let read = match connector.stream(request).await {
                Ok(streaming) => streaming.at_most(then).collect().await,
                Err(error) => Err(error),
            };
            assert_eq!(read.is_ok_and(|response| response.body == "0123456789"), fits, "{first} {then}");
        }
        for (max, body, truncated) in
            [(10, "0123456789", false), (9, "012345678", true), (4, "0123", true), (0, "", true)]
        {
            let response = send(max, Oversize::Truncate).await.unwrap();
            assert_eq!((&response.body[..], response.truncated), (body.as_bytes(), truncated), "{max}");
        }
    }
}

#[tokio::test]
async fn endless_bodies_end_at_the_cap() {
    let server = Server::start(|_| {
        Answer::Endless(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
            [b"1000\r\n".to_vec(), vec![b'x'; 4096], b"\r\n".to_vec()].concat(),
        )
    })
    .await;
    let connector = server.connector();
    let get = |oversize| Request::get(server.url("/")).limits(at_most(100_000, oversize));
    assert!(matches!(connector.send(get(Oversize::Fail)).await, Err(Error::TooLarge { .. })));
    let response = connector.send(get(Oversize::Truncate)).await.unwrap();
    assert_eq!((response.body.len(), response.truncated), (100_000, true));

    let mut streaming = connector.stream(get(Oversize::Truncate)).await.unwrap();
    let mut total = 0;
    while let Some(part) = streaming.chunk().await.unwrap() {
        total += part.len();
    }
    assert_eq!((streaming.status, total, streaming.truncated()), (200, 100_000, true));
    assert_eq!(streaming.chunk().await, Ok(None));

    let mut streaming = connector.stream(get(Oversize::Fail)).await.unwrap();
    let error = loop {
        match streaming.chunk().await {
            Ok(part) => assert!(part.is_some(), "the end can't come before the error"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::TooLarge { .. }));
    assert_eq!(streaming.chunk().await, Ok(None));
}

#[tokio::test]
async fn heads_are_capped() {
    let large = format!("HTTP/1.1 200 OK\r\nx-large: {}\r\n\r\n", "x".repeat(70 * 1024));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(101));
    for head in [large, many] {
        let server = Server::start(move |_| Answer::Close(head.clone().into_bytes())).await;
        let error = server.connector().send(Request::get(server.url("/"))).await.unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    }
    let server =
        Server::start(|_| Answer::Endless(b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'x'; 4096])).await;
    let error = server.connector().send(Request::get(server.url("/"))).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_says_nothing_times_out() {
    let server = Server::start(|_| Answer::Hang(Vec::new())).await;
    let (connector, request) = (server.connector(), Request::get(server.url("/")));
    let sending = tokio::spawn(async move { connector.send(request).await });
    server.received.notified().await;
    tokio::time::pause();
    let begin = Instant::now();
    let error = sending.await.unwrap().unwrap_err();
    assert_eq!(error, Error::Timeout { reason: "no complete response in time" });
    assert!(begin.elapsed() > Duration::from_secs(25), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_body_that_never_ends_times_out() {
    let server =
        Server::start(|_| Answer::Hang(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc".to_vec())).await;
    let mut streaming = server.connector().stream(Request::get(server.url("/"))).await.unwrap();
    assert_eq!(streaming.chunk().await.unwrap().unwrap(), "abc");
    tokio::time::pause();
    assert!(matches!(streaming.chunk().await, Err(Error::Timeout { .. })));
    assert_eq!(streaming.chunk().await, Ok(None));
}

/// A name server that never responds.
struct Silent;

impl Resolver for Silent {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn lookups_count_as_connecting() {
    let connector = Connector::with_resolver(Policy::public_only(), Arc::new(Silent)).unwrap();
    let begin = Instant::now();
    let error = connector.send(Request::get("http://silent.example/")).await.unwrap_err();
    assert_eq!(error, Error::Timeout { reason: "no connection in time" });
    assert_eq!(begin.elapsed().as_secs(), 5);

    let begin = Instant::now();
    let limits = Limits { connect: Duration::MAX, total: Duration::MAX, ..Limits::default() };
    let error = connector.send(Request::get("http://silent.example/").limits(limits)).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert_eq!(begin.elapsed().as_secs(), 60, "no connection takes longer");
}

#[tokio::test]
async fn handshakes_count_as_connecting() {
    // The kernel accepts into the backlog, but nothing answers the ClientHello.
    let trap = Trap::everywhere();
    let connector = Connector::new(Policy::allowing(["127.0.0.1"]).unwrap()).unwrap();
    let limits = Limits { connect: Duration::from_millis(500), ..Limits::default() };
    let request = Request::get(format!("https://127.0.0.1:{}/", trap.port)).limits(limits);
    let error = connector.send(request).await.unwrap_err();
    assert_eq!(error, Error::Timeout { reason: "no connection in time" });
    assert_eq!(trap.captured(), 1);
}
