//! Requests that are wrong below the level of JSON: paths, methods, headers, bodies in pieces.

use crate::operations::bad_input::{NO_ROUTE, NO_WORKSPACE, NOT_FOUND, OK, check, invalid};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::Read;
use testkit::{Kind, TestApp, read_all, read_answer};
use tokio::io::AsyncWriteExt;

#[testkit::both]
async fn paths(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    for (path, expected) in [
        ("/agents/abc", NOT_FOUND),
        ("/agents/-1", NOT_FOUND),
        ("/agents/1.0", NOT_FOUND),
        ("/agents/99999999999999999999", NOT_FOUND),
        ("/agents/%zz", NOT_FOUND),
        ("/agents/1%2F2", NOT_FOUND),
        ("/agents/%00", NO_ROUTE),
        ("/agents/%ff", NO_ROUTE),
        ("/agents/", NO_ROUTE),
        ("/runs/key_1", NOT_FOUND),
        ("/runs/run_%27;--", NOT_FOUND),
        ("/billing/invoices/inv_", NOT_FOUND),
        ("/nowhere", NO_ROUTE),
        ("", NO_ROUTE),
    ] {
        let request = format!(
            "GET /api/v1{path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
            key.secret
        );
        check(path, &app.raw(request.as_bytes()).await, expected);
    }
}

#[testkit::both]
async fn methods(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    for method in ["OPTIONS", "TRACE", "get", "BREW"] {
        let request = format!(
            "{method} /api/v1/runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
            key.secret
        );
        let answer = app.raw(request.as_bytes()).await;
        check(method, &answer, (405, "method_not_allowed", None));
        assert_eq!(answer.headers["allow"], "POST, GET");
    }
    // As everything in answer to HEAD, the error has no body.
    let head = format!(
        "HEAD /api/v1/me HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
        key.secret
    );
    let answer = app.raw(head.as_bytes()).await;
    assert_eq!((answer.status, answer.text.as_str()), (405, ""));
}

#[testkit::both]
async fn bodies_in_pieces(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let send = async |pieces: usize| {
        let head = format!(
            "POST /api/v1/runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n",
            key.secret
        );
        let mut request = head.into_bytes();
        request.extend_from_slice(b"10\r\n{\"input\":\"Hello\"\r\n");
        for _ in 0..pieces {
            request.extend_from_slice(b"10000\r\n");
            request.extend_from_slice(&[b' '; 0x10000]);
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"1\r\n}\r\n0\r\n\r\n");
        app.raw(&request).await
    };
    check("in pieces", &send(15).await, OK);
    check("too much in pieces", &send(16).await, (413, "payload_too_large", None));
    let broken = format!(
        "POST /api/v1/runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         transfer-encoding: chunked\r\nconnection: close\r\n\r\nnot a size\r\n",
        key.secret
    );
    refused("broken pieces", &app.raw_bytes(broken.as_bytes()).await);
}

#[testkit::both]
async fn headers(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let long = "x".repeat(300);
    for (name, value, expected) in [
        ("idempotency-key", long.as_str(), invalid("Idempotency-Key")),
        ("idempotency-key", "", invalid("Idempotency-Key")),
        ("idempotency-key", "\"\"", invalid("Idempotency-Key")),
        ("idempotency-key", "ü", invalid("Idempotency-Key")),
        ("x-svc-workspace", &long, NO_WORKSPACE),
        ("x-svc-workspace", "", NO_WORKSPACE),
        ("x-svc-workspace", "-1", NO_WORKSPACE),
        ("x-svc-workspace", "99999999999999999999", NO_WORKSPACE),
        ("x-svc-workspace", "no-such-slug", NO_WORKSPACE),
        ("x-client-request-id", &long, OK),
        ("x-client-request-id", "ü", OK),
        ("traceparent", &long, OK),
        ("x-filler", &"x".repeat(17 * 1024), invalid("headers")),
    ] {
        let asking =
            app.ask("POST", "/runs").key(&key).header(name, value).json(&json!({ "input": "Hello" }));
        check(&format!("{name}: {value}"), &asking.send().await, expected);
    }
    // Announced, and never sent: it is refused before anything is read.
    let announced =
        b"POST /api/v1/runs HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\nconnection: close\r\n\r\n";
    check("100 MB announced", &app.raw(announced).await, (413, "payload_too_large", None));
}

#[testkit::both]
async fn what_is_no_request(kind: Kind) {
    let app = TestApp::new(kind).await;
    let long = "x".repeat(140_000);
    let many = "x: y\r\n".repeat(97);
    let get = |path: &[u8], headers: &str| {
        [b"GET /api/v1", path, b" HTTP/1.1\r\nhost: x\r\n", headers.as_bytes(), b"\r\n"].concat()
    };
    let line = |line: &str| format!("{line}\r\nhost: x\r\n\r\n").into_bytes();
    let no_host = b"GET /api/v1/me HTTP/1.1\r\n\r\n".to_vec();
    let cases: &[(&str, Vec<u8>)] = &[
        ("a raw byte in the path", get(b"/me\xff", "")),
        ("a NUL in the path", get(b"/me\0", "")),
        ("a path that is none", line("GET /api/v1/me^`{} HTTP/1.1")),
        ("a method that is none", line("G(T /api/v1/me HTTP/1.1")),
        ("another version", line("GET /api/v1/me HTTP/3.0")),
        ("no version", line("GET /api/v1/me")),
        ("no HTTP", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n".to_vec()),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("no host", no_host),
        ("two hosts", get(b"/me", "host: y\r\n")),
        ("a control character in a name", get(b"/me", "x\x01y: z\r\n")),
        ("a control character in a value", get(b"/me", "x: \x01\r\n")),
        ("a header without a colon", get(b"/me", "nonsense\r\n")),
        ("a header without a name", get(b"/me", ": x\r\n")),
        ("a folded header", get(b"/me", "x: y\r\n z\r\n")),
        ("both lengths", get(b"/me", "content-length: 3\r\ntransfer-encoding: chunked\r\n")),
        ("a negative length", get(b"/me", "content-length: -1\r\n")),
        ("a signed length", get(b"/me", "content-length: +1\r\n")),
        ("two lengths", get(b"/me", "content-length: 1\r\ncontent-length: 1\r\n")),
        ("another encoding", get(b"/me", "transfer-encoding: gzip\r\n")),
        ("a large header", get(b"/me", &format!("x-filler: {long}\r\n"))),
        ("many headers", get(b"/me", &many)),
        ("a long path", get(long.as_bytes(), "")),
    ];
    for (what, request) in cases {
        let answer = app.raw_bytes(request).await;
        assert!(!answer.is_empty(), "{what}: no answer");
        refused(what, &answer);
    }
    assert_eq!(app.raw(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.status, 200);
}

#[testkit::both]
async fn what_is_no_request_after_one_that_is(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let slow = format!("GET /api/v1/me HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n", key.secret);
    for first in ["GET /health HTTP/1.1\r\nhost: x\r\n\r\n", slow.as_str()] {
        let bytes = app.raw_bytes(format!("{first}nonsense\r\n\r\n").as_bytes()).await;
        let text = String::from_utf8(bytes).unwrap();
        let second = text.find("HTTP/1.1 400 ").unwrap_or_else(|| panic!("{text}"));
        assert_eq!(read_answer(&text.as_bytes()[..second]).status, 200, "{text}");
        refused("the second", &text.as_bytes()[second..]);
    }
}

#[testkit::both]
async fn chunks_that_are_none(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    for chunks in
        ["-1\r\n{}\r\n0\r\n\r\n", "ffffffffffffffffff\r\n", "2\r\n{}{}\r\n", "\r\n", "2;\x01\r\n{}\r\n"]
    {
        let request = format!(
            "POST /api/v1/runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n{chunks}",
            key.secret
        );
        refused(chunks, &app.raw_bytes(request.as_bytes()).await);
    }
    let runs = app.get("/runs", &key).await.expect(200);
    assert_eq!(runs.as_array().unwrap().len(), 0);
}

#[testkit::both]
async fn what_ends_too_early(kind: Kind) {
    let app = TestApp::new(kind).await;
    for sent in ["GET /api/v1/me HTTP/1.1\r\nhost: x\r\n", ""] {
        let mut stream = app.connect().await;
        stream.write_all(sent.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        refused(sent, &read_all(&mut stream).await);
    }
}

#[tokio::test]
async fn a_head_that_does_not_arrive() {
    let app = TestApp::new(Kind::Sqlite).await;
    refused("half a head", &app.raw_bytes(b"GET /api/v1/me HTTP/1.1\r\nhost: x\r\n").await);
}

/// Asserts that what is no request was refused: by the HTTP library, without a body or by closing the connection, or by the
/// service if its body was the first thing that was wrong.
#[track_caller]
fn refused(what: &str, answer: &[u8]) {
    if answer.is_empty() {
        return;
    }
    let answer = read_answer(answer);
    if answer.text.is_empty() {
        assert!(matches!(answer.status, 400 | 408 | 431), "{what}: {}", answer.status);
    } else {
        check(what, &answer, invalid("body"));
    }
}

#[testkit::both]
async fn large_answers_are_compressed_for_who_accepts_it(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    for number in 0..40 {
        app.post("/contacts", &key, json!({ "data": { "$name": format!("Ana {number}") } }))
            .await
            .expect(201);
    }
    let ask = async |path: &str, accepted: &str| {
        let secret = &key.secret;
        let request = format!(
            "GET /api/v1{path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\naccept-encoding: {accepted}\r\n\
             connection: close\r\n\r\n"
        );
        app.raw_bytes(request.as_bytes()).await
    };
    let list = "/contacts?limit=40";
    let plain = read_answer(&ask(list, "identity").await);
    assert_eq!((plain.status, plain.headers.get("content-encoding")), (200, None));
    assert!(plain.headers["vary"].contains("accept-encoding"), "{:?}", plain.headers);
    let bytes = ask(list, "br, gzip").await;
    let head = read_answer(&bytes).headers;
    assert_eq!(head["content-encoding"], "gzip");
    let length: usize = head["content-length"].parse().unwrap();
    assert!(length * 3 < plain.text.len(), "{length} of {}", plain.text.len());
    let mut text = String::new();
    GzDecoder::new(&bytes[bytes.len() - length..]).read_to_string(&mut text).unwrap();
    let (compressed, plain): (Value, Value) = (serde_json::from_str(&text).unwrap(), plain.body);
    assert_eq!(compressed["data"], plain["data"]);
    for (path, accepted) in [(list, "gzip;q=0"), (list, "nonsense"), ("/me", "gzip")] {
        let answer = read_answer(&ask(path, accepted).await);
        assert_eq!((answer.status, answer.headers.get("content-encoding")), (200, None), "{path} {accepted}");
    }
}
