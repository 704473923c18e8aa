//! URLs and headers that lead astray: those of the table that webhooks use, and what only functions could try. No connection is
//! made for any of them.

use super::bed::{Bed, get, list};
use functions::network::{FetchSource, Network, NetworkMode};
use sandbox::{FetchRequest, Host};
use testkit::{Kind, assert_absent};

/// Refused whatever the function's network is.
const URLS: &[&str] = &[
    "",
    "/",
    "example.com",
    "ftp://example.com/",
    "file:///etc/passwd",
    "data:text/plain,a",
    "javascript:1",
    "unix:/run/x.sock",
    "https:example.com",
    "https:/example.com",
    "//example.com/",
    "https://",
    "https:///a",
    "http://example.com:0/",
    "http://example.com:22/",
    "http://example.com:25/",
    "http://example.com:5432/",
    "http://example.com:6379/",
    "http://example.com:65536/",
    "http://example.com:0443/",
    "http://example.com:8o/",
    "https://user@example.com/",
    "https://user:pass@example.com/",
    "https://@example.com/",
    "https://:@example.com/",
    "https://example.com@10.0.0.1/",
    "https://10.0.0.1\\@example.com/",
    "https://user%40example.com@10.0.0.1/",
    "https://ｌocalhost/",
    "https://ⓔxample.com/",
    "https://example。com/",
    "https://exam\u{ad}ple.com/",
    "https://exam\u{200b}ple.com/",
    "https://xn--a/",
    "https://xn--localhost-/",
    "https://exa%6Dple.com/",
    "https://１０.0.0.1/",
    "https://example.com./",
    "https://localhost./",
    "https://10.0.0.1./",
    "https://example..com/",
    "https://[fe80::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    "https://10.0.0.1/",
    "https://192.168.1.1:8443/",
    "http://169.254.169.254/latest/meta-data/",
    "http://100.64.0.1/",
    "http://0.0.0.0/",
    "http://255.255.255.255/",
    "https://0x0a.1/",
    "https://167772161/",
    "https://012.0.0.1/",
    "https://10.1/",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:10.0.0.1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:a00:1]:8443/",
    "https://[::10.0.0.1]/",
    "https://[64:ff9b::a00:1]/",
    "https://[2002:a00:1::]/",
    "https://[fd00::1]/",
    "https://[ff02::1]/",
    "https://example.com/\r\nhost: 10.0.0.1",
    "https://example.com\t/",
    " https://example.com/",
    "https://example.com/\0",
    "https://example.com/ HTTP/1.1",
];

const HEADERS: &[(&str, &str)] = &[
    ("x-a", "1\r\nhost: inner.example"),
    ("x-a", "1\nx-b: 2"),
    ("x-a", "\0"),
    ("x-a", "\u{7f}"),
    ("x-a\r\nhost", "inner.example"),
    ("x-a ", "1"),
    ("x-a:", "1"),
    ("", "1"),
    (":authority", "inner.example"),
    ("host", "inner.example"),
    ("hOST", "inner.example"),
    ("content-length", "0"),
    ("transfer-encoding", "chunked"),
    ("te", "trailers"),
    ("trailer", "host"),
    ("connection", "authorization"),
    ("keep-alive", "timeout=99"),
    ("proxy-connection", "keep-alive"),
    ("proxy-authorization", "Basic YTpi"),
    ("upgrade", "h2c"),
    ("http2-settings", "AAMAAABkAAQAAP__"),
    ("expect", "100-continue"),
    ("x-svc-signature", "v1,AAAA"),
    ("X-SVC-Anything", "1"),
];

#[testkit::both]
async fn hostile_urls_and_headers_reach_nobody(kind: Kind) {
    let bed = Bed::new(kind).await;
    let networks = [
        Network { mode: NetworkMode::Public, hosts: Vec::new() },
        list(&["example.com", "*.example.com", "localhost"]),
    ];
    for network in networks {
        let host = bed.host(|settings| settings.network = network).await;
        for url in URLS {
            let error = host.fetch(get(url)).await.unwrap_err();
            assert_eq!(error.name, "NetworkDenied", "{url:?}: {}", error.message);
        }
        let fetches = host.fetches();
        assert_eq!(fetches.len(), URLS.len());
        for fetch in fetches {
            assert_eq!((fetch.source, fetch.status), (FetchSource::Refused, None), "{}", fetch.url);
            assert_absent(&fetch.url, "user:pass@example");
        }
        for (name, value) in HEADERS {
            let headers = vec![((*name).to_owned(), (*value).to_owned())];
            let request = FetchRequest { headers, ..get(&bed.echo.at("localhost", "/")) };
            assert!(host.fetch(request).await.is_err(), "{name:?}: {value:?}");
        }
        for method in ["CONNECT", "TRACE", "", "GET /", "GET\r\n", "É"] {
            let request = FetchRequest { method: method.to_owned(), ..get(&bed.echo.at("localhost", "/")) };
            assert_eq!(host.fetch(request).await.unwrap_err().name, "TypeError", "{method:?}");
        }
    }
    // What is right under other rules.
    let none = bed.host(|settings| settings.network = Network::default()).await;
    let listed = bed.host(|_| {}).await;
    for (host, name) in [(&none, "api.example.com"), (&listed, "example.com"), (&listed, "127.0.0.1")] {
        assert_eq!(
            host.fetch(get(&bed.echo.at(name, "/"))).await.unwrap_err().name,
            "NetworkDenied",
            "{name}"
        );
    }
    let host = bed.host(|settings| settings.secrets = vec![("k".to_owned(), "evil".to_owned())]).await;
    let placeholder = host.secrets()[0].placeholder.clone();
    let inside = host.fetch(get(&bed.echo.at(&format!("{placeholder}.example.com"), "/"))).await.unwrap_err();
    assert_eq!(inside.message, "a secret cannot be a part of a host");
    assert!(bed.echo.seen().is_empty());
}
