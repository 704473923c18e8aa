//! Requests that are wrong below the level of JSON: paths, methods, headers, bodies in pieces.

use crate::bad_input::{NO_ROUTE, NO_WORKSPACE, NOT_FOUND, OK, check, invalid};
use serde_json::json;
use testkit::TestApp;

testkit::on_both! {
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
        check("broken pieces", &app.raw(broken.as_bytes()).await, invalid("body"));
    }

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
            let asking = app.ask("POST", "/runs").key(&key).header(name, value).json(&json!({ "input": "Hello" }));
            check(&format!("{name}: {value}"), &asking.send().await, expected);
        }
        // What the HTTP library does not take at all, it refuses itself, before there is anything of ours.
        for headers in [format!("x-filler: {}\r\n", "x".repeat(140_000)), "x: y\r\n".repeat(97)] {
            let request = format!("GET /api/v1/me HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n");
            let answer = app.raw(request.as_bytes()).await;
            assert_eq!((answer.status, answer.text.as_str()), (431, ""));
            assert!(!answer.headers.contains_key("x-request-id"));
        }
        // Announced, and never sent: it is refused before anything is read.
        let announced = b"POST /api/v1/runs HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\nconnection: close\r\n\r\n";
        check("100 MB announced", &app.raw(announced).await, (413, "payload_too_large", None));
    }
}
