//! Targets that must not be reached. Each request is really sent, while a trap listens on every address of the
//! machine and counts connections.

use std::sync::Arc;
use std::time::Duration;

use egress::{Connector, Error, Limits, Policy, Ports, Request, UrlRules};

use crate::support::{Answer, Script, Server, Trap, ok, redirect};

/// URLs that are refused by their text. `PORT` stands for the trap's port.
const INVALID: &[&str] = &[
    // Empty, or not a URL.
    "",
    "/",
    "//127.0.0.1:PORT/",
    "127.0.0.1:PORT",
    "localhost:PORT/",
    "http:",
    "http://",
    "http:///",
    "http://:PORT/",
    "https://?x",
    "https://#x",
    "http:///127.0.0.1:PORT/",
    // Other schemes, and malformed ones that parsers repair.
    "file:///etc/passwd",
    "ftp://127.0.0.1:PORT/",
    "gopher://127.0.0.1:PORT/_x",
    "ws://127.0.0.1:PORT/",
    "unix:///run/docker.sock",
    "data:text/plain,x",
    "dict://127.0.0.1:PORT/",
    "javascript:0",
    "http+unix://x/",
    "http:127.0.0.1:PORT",
    "http:/127.0.0.1:PORT",
    "http:\\\\127.0.0.1:PORT\\",
    "http:/\\127.0.0.1:PORT/",
    "http://\\127.0.0.1:PORT/",
    "blob:http://127.0.0.1:PORT/",
    "view-source:http://127.0.0.1:PORT/",
    // Spaces and control characters, which some parsers strip.
    " http://127.0.0.1:PORT/",
    "http://127.0.0.1:PORT/ ",
    "ht\ttp://127.0.0.1:PORT/",
    "http://127.0.0.1\n:PORT/",
    "http://good.example/\r\nHost: 127.0.0.1",
    "http://good.example/\0",
    "http://good.example\t.evil.example/",
    // User info.
    "http://user@127.0.0.1:PORT/",
    "http://user:pass@good.example/",
    "http://@127.0.0.1:PORT/",
    "http://:@good.example/",
    "http://good.example@127.0.0.1:PORT/",
    "http://good.example:80@127.0.0.1:PORT/",
    "http://good.example\\@127.0.0.1:PORT/",
    "http://127.0.0.1:PORT\\@good.example/",
    "http://a@b@127.0.0.1:PORT/",
    "http://good.example%40127.0.0.1:PORT/",
    // Odd spellings of IPv4.
    "http://2130706433:PORT/",
    "http://0x7f000001:PORT/",
    "http://0x7f.1:PORT/",
    "http://0x7f.0x0.0x0.0x1:PORT/",
    "http://017700000001:PORT/",
    "http://0177.0.0.1:PORT/",
    "http://127.1:PORT/",
    "http://127.0.1:PORT/",
    "http://0127.0.0.1:PORT/",
    "http://127.0.0.01:PORT/",
    "http://127.0.0.1.:PORT/",
    "http://0:PORT/",
    "http://0x0:PORT/",
    "http://127.0.0.0x1:PORT/",
    "http://4294967296:PORT/",
    "http://256.0.0.1:PORT/",
    "http://1.2.3.4.5:PORT/",
    "http://127.0.0.1.1:PORT/",
    "http://%31%32%37.0.0.1:PORT/",
    "http://127%2e0%2e0%2e1:PORT/",
    "http://１２７.0.0.1:PORT/",
    "http://127。0。0。1:PORT/",
    "http://127．0．0．1:PORT/",
    "http://①②⑦.⓪.⓪.①:PORT/",
    "http://0x08080808/",
    "http://8.8.2056/",
    // Odd spellings of names.
    "http://localhost.:PORT/",
    "http://good.example./",
    "http://good..example/",
    "http://.good.example/",
    "http://ｌocalhost:PORT/",
    "http://loc%61lhost:PORT/",
    "http://ⓛocalhost:PORT/",
    "http://good。example/",
    "http://local\u{ad}host:PORT/",
    "http://local\u{200b}host:PORT/",
    "http://good.example%00.evil.example/",
    "http://good.example%2f@x/",
    "http://a!b.example/",
    "http://a*b.example/",
    "http://-.0x1/",
    "http://$(id).example/",
    "http://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example/",
    "http://xn--a/",
    // Brackets, zones and ports.
    "http://[::1:PORT/",
    "http://::1:PORT/",
    "http://[]:PORT/",
    "http://[127.0.0.1]:PORT/",
    "http://[fe80::1%25lo]:PORT/",
    "http://[fe80::1%lo]:PORT/",
    "http://[::1]x:PORT/",
    "http://x[::1]:PORT/",
    "http://[::1]]:PORT/",
    "http://[v1.x]:PORT/",
    "http://127.0.0.1:/",
    "http://127.0.0.1:x/",
    "http://127.0.0.1:+PORT/",
    "http://127.0.0.1:0PORT/",
    "http://127.0.0.1:65536/",
    "http://127.0.0.1:PORT:80/",
    "http://127.0.0.1:-1/",
    "http://good.example:８０/",
];

/// Well-formed URLs of addresses that are not public.
const FORBIDDEN: &[&str] = &[
    "http://127.0.0.1:PORT/",
    "http://127.0.0.2:PORT/",
    "http://127.255.255.254:PORT/",
    "https://127.0.0.1:PORT/",
    "HTTP://127.0.0.1:PORT/",
    "http://0.0.0.0:PORT/",
    "http://localhost:PORT/",
    "http://LOCALHOST:PORT/",
    "http://a.localhost:PORT/",
    "http://10.0.0.1:PORT/",
    "http://172.16.0.1:PORT/",
    "http://192.168.0.1:PORT/",
    "http://100.64.0.1:PORT/",
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.170.2/v2/credentials",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://192.0.0.192/",
    "http://198.18.0.1:PORT/",
    "http://192.0.2.1:PORT/",
    "http://198.51.100.1:PORT/",
    "http://203.0.113.1:PORT/",
    "http://224.0.0.1:PORT/",
    "http://240.0.0.1:PORT/",
    "http://255.255.255.255:PORT/",
    "http://[::1]:PORT/",
    "http://[::]:PORT/",
    "http://[0:0:0:0:0:0:0:1]:PORT/",
    "http://[::ffff:127.0.0.1]:PORT/",
    "http://[::ffff:7f00:1]:PORT/",
    "http://[::ffff:0:127.0.0.1]:PORT/",
    "http://[::127.0.0.1]:PORT/",
    "http://[64:ff9b::127.0.0.1]:PORT/",
    "http://[64:ff9b:1::7f00:1]:PORT/",
    "http://[2002:7f00:1::1]:PORT/",
    "http://[2001:0:7f00:1::1]:PORT/",
    "http://[fc00::1]:PORT/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::1]:PORT/",
    "http://[fec0::1]:PORT/",
    "http://[ff02::1]:PORT/",
    "http://[100::1]:PORT/",
    "http://[2001:db8::1]:PORT/",
    "http://[3fff::1]:PORT/",
    // Ports of other protocols, whatever the host.
    "http://good.example:0/",
    "http://good.example:22/",
    "http://good.example:25/",
    "http://good.example:6379/",
    "http://good.example:5432/",
    "https://good.example:11211/",
    "http://8.8.8.8:53/",
];

/// URLs refused by the rules of webhooks, whose URLs tenants choose. The operator's allow-list contains targets that
/// some of these imitate. `PORT` stands for the trap's port, which is also the accepted port.
const OF_WEBHOOKS: &[&str] = &[
    // Not https, and other ports.
    "http://good.example:PORT/",
    "http://8.8.8.8:PORT/",
    "https://good.example/",
    "https://good.example:80/",
    "https://good.example:8080/",
    "https://good.example:444/",
    "https://good.example:22/",
    "https://good.example:0/",
    "https://good.example:65535/",
    "https://8.8.8.8/",
    "https://[2001:4860:4860::8888]/",
    "https://127.0.0.1/",
    // Credentials.
    "https://user@good.example:PORT/",
    "https://user:pass@good.example:PORT/",
    "https://:@good.example:PORT/",
    "https://hooks.internal@127.0.0.1:PORT/",
    "https://hooks.internal:PORT@127.0.0.1:PORT/",
    "https://127.0.0.1:PORT\\@hooks.internal/",
    "https://user%40hooks.internal@127.0.0.1:PORT/",
    // Fragments and queries that name another host.
    "https://127.0.0.1:PORT#@hooks.internal/",
    "https://127.0.0.1:PORT#hooks.internal",
    "https://127.0.0.1:PORT?@hooks.internal/",
    "https://#@127.0.0.1:PORT/",
    // International names.
    "https://ｌocalhost:PORT/",
    "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT/",
    "https://local\u{200d}host:PORT/",
    "https://localhost。:PORT/",
    "https://127。0。0。1:PORT/",
    "https://xn--localhost-:PORT/",
    "https://xn--localhost:PORT/",
    "https://xn--:PORT/",
    "https://xn--a.example:PORT/",
    "https://ｈooks.internal:PORT/",
    // Dots at the end.
    "https://localhost.:PORT/",
    "https://127.0.0.1.:PORT/",
    "https://hooks.internal.:PORT/",
    "https://good.example.:PORT/",
    "https://good.example..:PORT/",
    // Names and addresses that resemble those on the allow-list.
    "http://hooks.internal.good.example:PORT/",
    "http://x.hooks.internal:PORT/",
    "http://hooks-internal:PORT/",
    "http://10.9.8.70:PORT/",
    "https://0x0a.9.8.7:PORT/",
    "https://168364039:PORT/",
    // Zones.
    "https://[fe80::1%25lo]:PORT/",
    "https://[fe80::1%lo]:PORT/",
    "https://[::1%25lo]:PORT/",
    // IPv4 in IPv6, including the operator's address.
    "https://[::ffff:127.0.0.1]:PORT/",
    "https://[::ffff:7f00:1]:PORT/",
    "https://[0:0:0:0:0:ffff:127.0.0.1]:PORT/",
    "https://[::127.0.0.1]:PORT/",
    "https://[::ffff:10.9.8.7]:PORT/",
    "https://[::ffff:169.254.169.254]:PORT/",
    "https://[64:ff9b::7f00:1]:PORT/",
    "https://[2002:7f00:1::]:PORT/",
    // Addresses.
    "https://127.0.0.1:PORT/",
    "https://10.9.8.6:PORT/",
    "https://169.254.169.254:PORT/",
    "https://[::1]:PORT/",
    "https://localhost:PORT/",
    "https://hooks.localhost:PORT/",
];

/// Headers that would split the message or change the connection.
const HEADERS: &[(&str, &str)] = &[
    ("x-a", "1\r\nhost: inner.example"),
    ("x-a", "1\nx-b: 2"),
    ("x-a", "1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    ("x-a", "1\r"),
    ("x-a", "\0"),
    ("x-a", "\u{7f}"),
    ("x-a\r\nhost", "inner.example"),
    ("x-a: 1\r\nx-b", "2"),
    ("x-a ", "1"),
    (" x-a", "1"),
    ("x-a:", "1"),
    ("", "1"),
    ("x-ä", "1"),
    (":authority", "inner.example"),
    (":path", "/"),
    ("Host", "inner.example"),
    ("Content-Length", "0"),
    ("Transfer-Encoding", "chunked"),
    ("TE", "trailers"),
    ("Trailer", "host"),
    ("Connection", "close, authorization"),
    ("Keep-Alive", "timeout=99"),
    ("Proxy-Connection", "keep-alive"),
    ("Proxy-Authorization", "Basic YTpi"),
    ("Upgrade", "h2c"),
    ("HTTP2-Settings", "AAMAAABkAAQAAP__"),
    ("Expect", "100-continue"),
];

/// DNS answers, each with at least one address that is not public.
const ANSWERS: &[&str] = &[
    "127.0.0.1",
    "127.9.9.9",
    "0.0.0.0",
    "10.1.2.3",
    "172.31.0.1",
    "192.168.1.1",
    "100.64.1.1",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.1",
    "198.19.0.1",
    "224.0.0.251",
    "255.255.255.255",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2001::1",
    "fd00::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "100::1",
    "2001:db8::1",
    // Mixed with public ones, in any order.
    "8.8.8.8 127.0.0.1",
    "127.0.0.1 8.8.8.8",
    "2001:4860:4860::8888 ::1",
    "::1 8.8.8.8",
    "8.8.8.8 8.8.4.4 10.0.0.1",
    "1.1.1.1 ::ffff:127.0.0.1",
];

#[tokio::test]
async fn hostile_urls_connect_to_nothing() {
    let trap = Trap::everywhere();
    let script = Arc::new(Script::default());
    let connector = script.connector(&[]);
    let rules = UrlRules::default();
    for (urls, invalid) in [(INVALID, true), (FORBIDDEN, false)] {
        for url in urls {
            let url = url.replace("PORT", &trap.port.to_string());
            let checked = connector.check_url(&url, &rules).unwrap_err();
            let sent = connector.send(Request::get(&url)).await.unwrap_err();
            assert_eq!(sent, checked, "{url}");
            assert_eq!(matches!(sent, Error::InvalidUrl { .. }), invalid, "{url}: {sent}");
            assert!(sent.is_refusal(), "{url}: {sent}");
            assert_eq!(trap.captured(), 0, "{url}");
        }
    }
    assert!(INVALID.len() + FORBIDDEN.len() + ANSWERS.len() > 150);
    assert_eq!(script.lookups("good.example") + script.lookups("localhost"), 0, "refused before any lookup");
}

#[tokio::test]
async fn hostile_urls_of_webhooks_connect_to_nothing() {
    let trap = Trap::everywhere();
    let script = Arc::new(Script::default());
    let connector = script.connector(&["hooks.internal", "10.9.8.7"]);
    let ports = Ports::Only(vec![trap.port].into());
    let rules = UrlRules { https_only: true, ports, operator_first: true };
    for url in OF_WEBHOOKS {
        let url = url.replace("PORT", &trap.port.to_string());
        let checked = connector.check_url(&url, &rules).unwrap_err();
        let limits = Limits { url: rules.clone(), ..Limits::default() };
        let sent = connector.send(Request::post(&url, "{}").limits(limits)).await.unwrap_err();
        assert_eq!(sent, checked, "{url}");
        assert!(sent.is_refusal(), "{url}: {sent}");
        assert_eq!(trap.captured(), 0, "{url}");
    }
    for name in ["good.example", "localhost", "hooks.internal", "x.hooks.internal"] {
        assert_eq!(script.lookups(name), 0, "{name} was looked up");
    }
}

#[tokio::test]
async fn hostile_headers_connect_to_nothing() {
    let server = Server::start(|_| ok("")).await;
    for (name, value) in HEADERS {
        let request = Request::post(server.url("/"), "{}").header(*name, *value);
        let error = server.connector().send(request).await.unwrap_err();
        assert!(matches!(error, Error::InvalidRequest { .. }), "{name:?} {value:?}: {error}");
        assert_eq!(server.accepted(), 0, "{name:?} {value:?}");
    }
}

/// Webhooks do not follow redirects, regardless of status and target.
#[tokio::test]
async fn redirects_of_receivers_lead_nowhere() {
    let trap = Trap::everywhere();
    let server = Server::at("127.0.0.2", |seen| {
        let (status, location) = seen.header("x-answer").unwrap().split_once(' ').unwrap();
        redirect(status.parse().unwrap(), location)
    })
    .await;
    let limits = || Limits { max_redirects: 0, ..Limits::default() };
    for status in [300, 301, 302, 303, 304, 305, 307, 308] {
        for location in [
            "http://127.0.0.1:PORT/",
            "//127.0.0.1:PORT/",
            "https://localhost:PORT/",
            "http://169.254.169.254/",
            "/",
        ] {
            let answer = format!("{status} {}", location.replace("PORT", &trap.port.to_string()));
            let request = Request::post(server.url("/"), "{}").header("x-answer", &answer).limits(limits());
            let before = server.seen().len();
            let response = server.connector().send(request).await.unwrap();
            assert_eq!((response.status, server.seen().len()), (status, before + 1), "{answer}");
            assert_eq!(trap.captured(), 0, "{answer}");
        }
    }
}

#[tokio::test]
async fn hostile_answers_connect_to_nothing() {
    let trap = Trap::everywhere();
    for (scheme, answer) in ["http", "https"].iter().flat_map(|s| ANSWERS.iter().map(move |a| (s, a))) {
        let script = Arc::new(Script::default().on("name.example", answer));
        let url = format!("{scheme}://name.example:{}/", trap.port);
        let error = script.connector(&[]).send(Request::get(url)).await.unwrap_err();
        assert!(matches!(error, Error::Forbidden { .. }), "{answer}: {error}");
        for address in answer.split(' ') {
            assert!(!format!("{error} {error:?}").contains(address), "the answer leaked: {error}");
        }
        assert_eq!(script.lookups("name.example"), 1, "{answer}");
        assert_eq!(trap.captured(), 0, "{answer}");
    }
}

/// Verifies the two tests above: the same trap catches a connection that the policy allows.
#[tokio::test]
async fn the_trap_catches_what_is_allowed() {
    let trap = Trap::everywhere();
    let connector = Connector::new(Policy::allowing(["127.0.0.0/8"]).unwrap()).unwrap();
    let limits = Limits { total: Duration::from_millis(500), ..Limits::default() };
    let url = format!("http://127.0.0.1:{}/", trap.port);
    let error = connector.send(Request::get(url).limits(limits)).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert_eq!(trap.captured(), 1);
}

/// A server on 127.0.0.2, which the operator allows and which stands for a public host, and a trap on the same port
/// of 127.0.0.1, which an attacker tries to reach.
async fn public_and_inner(answer: fn() -> Answer) -> (Server, Trap) {
    loop {
        let server = Server::at("127.0.0.2", move |_| answer()).await;
        if let Some(trap) = Trap::at("127.0.0.1", server.address.port()) {
            return (server, trap);
        }
    }
}

#[tokio::test]
async fn rebinding_between_check_and_connection_has_no_effect() {
    let (server, trap) = public_and_inner(|| ok("public")).await;
    let script =
        Arc::new(Script::default().on("rebind.example", "127.0.0.2").on("rebind.example", "127.0.0.1"));
    let connector = script.connector(&["127.0.0.2"]);
    let url = format!("http://rebind.example:{}/", trap.port);
    for _ in 0..3 {
        assert_eq!(connector.send(Request::get(&url)).await.unwrap().body, "public");
    }
    assert_eq!(script.lookups("rebind.example"), 1, "one lookup, then the pooled connection");
    assert_eq!((server.accepted(), trap.captured()), (1, 0));
}

#[tokio::test]
async fn rebinding_between_requests_is_refused() {
    let closing =
        || Answer::Close(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec());
    let (server, trap) = public_and_inner(closing).await;
    let script =
        Arc::new(Script::default().on("rebind.example", "127.0.0.2").on("rebind.example", "127.0.0.1"));
    let connector = script.connector(&["127.0.0.2"]);
    let url = format!("http://rebind.example:{}/", trap.port);
    assert_eq!(connector.send(Request::get(&url)).await.unwrap().status, 200);
    assert_eq!(script.lookups("rebind.example"), 1);
    let error = connector.send(Request::get(&url)).await.unwrap_err();
    assert!(matches!(error, Error::Forbidden { .. }), "{error}");
    assert_eq!(script.lookups("rebind.example"), 2);
    assert_eq!((server.accepted(), trap.captured()), (1, 0));
}

#[tokio::test]
async fn one_bad_address_spoils_an_allowed_answer() {
    let (server, trap) = public_and_inner(|| ok("public")).await;
    for answer in ["127.0.0.2 127.0.0.1", "127.0.0.1 127.0.0.2"] {
        let script = Arc::new(Script::default().on("mixed.example", answer));
        let url = format!("http://mixed.example:{}/", trap.port);
        let error = script.connector(&["127.0.0.2"]).send(Request::get(url)).await.unwrap_err();
        assert!(matches!(error, Error::Forbidden { .. }), "{error}");
    }
    assert_eq!((server.accepted(), trap.captured()), (0, 0));
}

#[tokio::test]
async fn rules_hold_per_port_and_caller() {
    let (server, trap) = public_and_inner(|| ok("public")).await;
    let port = trap.port;
    let script = Arc::new(Script::default().on("inner.example", "127.0.0.1").on("inner.other", "127.0.0.1"));
    let other = format!("127.0.0.1:{}", port ^ 1);
    let connector = script.connector(&[&other, "*.inner.example", "127.0.0.2"]);
    for url in [format!("http://127.0.0.1:{port}/"), format!("http://inner.example:{port}/")] {
        assert!(connector.send(Request::get(url)).await.unwrap_err().is_refusal());
    }
    let ports = UrlRules { ports: Ports::Only(vec![443, 8443].into()), ..UrlRules::default() };
    for url_rules in [UrlRules::https(), ports] {
        let limits = Limits { url: url_rules, ..Limits::default() };
        let error = connector.send(Request::get(server.url("/")).limits(limits)).await.unwrap_err();
        assert!(matches!(error, Error::Forbidden { .. }), "{error}");
    }
    assert_eq!((server.accepted(), trap.captured()), (0, 0));
}

#[tokio::test]
async fn unknown_names_and_empty_answers_do_not_resolve() {
    let script = Arc::new(Script::default().on("empty.example", ""));
    let connector = script.connector(&[]);
    for url in ["http://empty.example/", "http://unknown.example/"] {
        let error = connector.send(Request::get(url)).await.unwrap_err();
        assert_eq!(error, Error::Resolve);
        assert!(!error.is_refusal());
    }
}
