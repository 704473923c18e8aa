//! Compressed bodies.

use std::io::Write as _;

use egress::{Error, Limits, Method, Oversize, Request, Response};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use crate::support::{Answer, Server};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

async fn ask(answer: Vec<u8>, limits: Limits) -> Result<Response, Error> {
    let server = Server::start(move |_| Answer::Close(answer.clone())).await;
    server.connector().send(Request::get(server.url("/")).limits(limits)).await
}

#[tokio::test]
async fn compressed_bodies_are_decoded() {
    let text = b"sku,price\nA-1,2.50\n".repeat(500);
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(&text).unwrap();
    let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
    raw.write_all(&text).unwrap();
    for (name, body) in
        [("gzip", gzip(&text)), ("deflate", zlib.finish().unwrap()), ("deflate", raw.finish().unwrap())]
    {
        let response = ask(answer(&format!("200 OK\r\ncontent-encoding: {name}"), &body), Limits::default())
            .await
            .unwrap();
        assert!(response.body == text, "{name}");
        // These headers described the coded body.
        assert!(!response.headers.contains_key("content-encoding"));
        assert!(!response.headers.contains_key("content-length"));
    }
}

#[tokio::test]
async fn a_body_is_measured_when_it_is_decoded() {
    let bomb = answer("200 OK\r\ncontent-encoding: gzip", &gzip(&vec![0; 20 << 20]));
    assert!(matches!(ask(bomb.clone(), Limits::default()).await, Err(Error::TooLarge { .. })));
    let cut = ask(bomb, Limits { oversize: Oversize::Truncate, ..Limits::default() }).await.unwrap();
    assert_eq!((cut.body.len(), cut.truncated), (1 << 20, true));
    let fits = answer("200 OK\r\ncontent-encoding: gzip", &gzip(b"0123456789"));
    let limits = |max_response_bytes| Limits { max_response_bytes, ..Limits::default() };
    assert_eq!(ask(fits.clone(), limits(10)).await.unwrap().body, "0123456789");
    assert!(matches!(ask(fits, limits(9)).await, Err(Error::TooLarge { .. })));
}

#[tokio::test]
async fn what_cannot_be_decoded_is_an_error_or_is_cut() {
    let whole = gzip(b"0123456789");
    for body in [
        answer("200 OK\r\ncontent-encoding: gzip", &whole[..whole.len() - 3]),
        answer("200 OK\r\ncontent-encoding: gzip", b"no gzip"),
        answer("200 OK\r\ncontent-encoding: br", b"\x0b\x02\x80"),
        answer("200 OK\r\ncontent-encoding: gzip, gzip", &whole),
    ] {
        let error = ask(body.clone(), Limits::default()).await.unwrap_err();
        assert!(matches!(error, Error::Http { reason } if reason.contains("compressed")), "{error}");
        // A truncated excerpt is still useful, so it is not an error.
        let cut = ask(body, Limits { oversize: Oversize::Truncate, ..Limits::default() }).await.unwrap();
        assert_eq!((cut.status, cut.truncated), (200, true));
    }
}

#[tokio::test]
async fn bodies_without_content_and_ranges_are_left_alone() {
    for head in ["204 No Content\r\ncontent-encoding: gzip", "200 OK\r\ncontent-encoding: br"] {
        assert_eq!(ask(answer(head, b""), Limits::default()).await.unwrap().body, "");
    }
    let part = &gzip(b"0123456789")[5..9];
    let head = "206 Partial Content\r\ncontent-range: bytes 5-8/30\r\ncontent-encoding: gzip";
    assert_eq!(ask(answer(head, part), Limits::default()).await.unwrap().body, part);
    let file = gzip(b"0123456789");
    let head = "200 OK\r\ncontent-type: application/gzip\r\ncontent-encoding: gzip";
    assert_eq!(ask(answer(head, &file), Limits::default()).await.unwrap().body, file);
    let server = Server::start(|_| {
        Answer::Close(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 30\r\n\r\n".to_vec())
    })
    .await;
    let head = server.connector().send(Request::new(Method::HEAD, server.url("/"))).await.unwrap();
    assert_eq!(head.body, "");
}

#[tokio::test]
async fn requests_ask_for_what_is_not_compressed_unless_the_caller_says_otherwise() {
    let server = Server::start(|_| crate::support::ok("")).await;
    server.connector().send(Request::get(server.url("/"))).await.unwrap();
    assert_eq!(server.last().header("accept-encoding"), Some("identity"));
    server.connector().send(Request::get(server.url("/")).header("Accept-Encoding", "gzip")).await.unwrap();
    assert_eq!(server.last().header("accept-encoding"), Some("gzip"));
}
