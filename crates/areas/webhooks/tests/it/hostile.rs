//! Endpoints that nobody may subscribe: URLs and headers that would lead deliveries astray. `egress` has the table of what
//! connects to nothing; here each is refused when it is written, by the name of its field.

use crate::key;
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

/// Refused URLs. Tests allow loopback as a developer's machine does, so the addresses are others.
const URLS: &[&str] = &[
    // Schemes and ports.
    "http://example.com/",
    "http://example.com:443/",
    "ftp://example.com/",
    "https:example.com",
    "//example.com/",
    "https://example.com:80/",
    "https://example.com:444/",
    "https://example.com:8080/",
    "https://example.com:22/",
    "https://example.com:0/",
    "https://example.com:65536/",
    "https://example.com:0443/",
    // Credentials.
    "https://user@example.com/",
    "https://user:pass@example.com/",
    "https://@example.com/",
    "https://:@example.com/",
    "https://example.com@10.0.0.1/",
    "https://10.0.0.1\\@example.com/",
    "https://user%40example.com@10.0.0.1/",
    // Fragments.
    "https://example.com/#part",
    "https://example.com#",
    "https://example.com#@10.0.0.1/",
    "https://10.0.0.1#example.com",
    // International names, and what only looks like a name.
    "https://ｌocalhost/",
    "https://ⓔxample.com/",
    "https://example。com/",
    "https://exam\u{ad}ple.com/",
    "https://exam\u{200b}ple.com/",
    "https://xn--a/",
    "https://xn--localhost-/",
    "https://exa%6Dple.com/",
    "https://１０.0.0.1/",
    // Dots at the end.
    "https://example.com./",
    "https://localhost./",
    "https://10.0.0.1./",
    "https://example..com/",
    // Zones.
    "https://[fe80::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    // Addresses, and IPv4 in IPv6.
    "https://10.0.0.1/",
    "https://192.168.1.1:8443/",
    "https://169.254.169.254/latest",
    "https://0x0a.1/",
    "https://167772161/",
    "https://012.0.0.1/",
    "https://10.1/",
    "https://[::1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:a00:1]:8443/",
    "https://[::10.0.0.1]/",
    "https://[64:ff9b::a00:1]/",
    "https://[2002:a00:1::]/",
    "https://[fd00::1]/",
    // Control characters and spaces.
    "https://example.com/\r\nhost: 10.0.0.1",
    "https://example.com\t/",
    " https://example.com/",
    "https://example.com/\0",
];

/// Refused headers.
const HEADERS: &[(&str, &str)] = &[
    ("X-A", "1\r\nHost: inner.example"),
    ("X-A", "1\nX-B: 2"),
    ("X-A", "\0"),
    ("X-A", "\u{7f}"),
    ("X-A", "Zoë"),
    ("X-A\r\nHost", "inner.example"),
    ("X-A ", "1"),
    ("X-A:", "1"),
    ("", "1"),
    (":authority", "inner.example"),
    ("Host", "inner.example"),
    ("hOST", "inner.example"),
    ("Content-Length", "0"),
    ("Content-Type", "text/plain"),
    ("Content-Encoding", "gzip"),
    ("Transfer-Encoding", "chunked"),
    ("TE", "trailers"),
    ("Trailer", "host"),
    ("Connection", "authorization"),
    ("Keep-Alive", "timeout=99"),
    ("Proxy-Connection", "keep-alive"),
    ("Proxy-Authorization", "Basic YTpi"),
    ("Proxy-Authenticate", "Basic"),
    ("Upgrade", "h2c"),
    ("HTTP2-Settings", "AAMAAABkAAQAAP__"),
    ("Expect", "100-continue"),
    ("User-Agent", "curl/8"),
    ("webhook-id", "evt_1"),
    ("Webhook-Timestamp", "0"),
    ("WEBHOOK-SIGNATURE", "v1,AAAA"),
    ("webhook-anything", "1"),
    ("X-Svc-Signature", "v1,AAAA"),
    ("x-svc-anything", "1"),
    ("Authorization", "Bearer svc_live_0123456789"),
];

#[testkit::both]
async fn hostile_endpoints_are_refused_by_their_fields(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let endpoint = app.subscribe(&key, "https://example.com/hook", json!({})).await;
    let path = format!("/webhook-endpoints/{}", endpoint["id"].as_str().unwrap());
    let refused = async |field: Value, param: &str| {
        let mut new = json!({ "url": "https://example.com/", "enabled_events": ["contact.created"] });
        new.as_object_mut().unwrap().extend(field.as_object().unwrap().clone());
        let answer = app.post("/webhook-endpoints", &key, new).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{field}");
        let answer = app.patch(&path, &key, field.clone()).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{field}");
    };
    for url in URLS {
        refused(json!({ "url": url }), "url").await;
    }
    for (name, value) in HEADERS {
        refused(json!({ "headers": { (*name): value } }), &format!("headers.{name}")).await;
    }
    refused(json!({ "headers": { "X-Tenant": "7", "x-tenant": "8" } }), "headers.x-tenant").await;
    let kept = app.get(&path, &key).await.expect(200);
    assert_eq!(
        (&kept["url"], &kept["version"]),
        (&endpoint["url"], &endpoint["version"]),
        "nothing was changed"
    );
    assert_eq!(app.get("/webhook-endpoints", &key).await.expect(200).as_array().unwrap().len(), 1);
}
