//! Validation of subscriptions: URL and headers.

use super::model::Headers;
use egress::{Connector, Ports, UrlRules};
use model::{Error, Result};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// `https` on 443 or 8443; what the operator's allow-list names, such as loopback on a developer's machine, is accepted
/// as it is.
pub(crate) fn url_rules() -> UrlRules {
    UrlRules { https_only: true, ports: Ports::Only(Cow::Borrowed(&[443, 8443])), operator_first: true }
}

/// # Errors
/// `validation_error` at `url`.
pub(crate) fn url(connector: &Connector, url: &str) -> Result<()> {
    if url.contains('#') {
        return Err(Error::invalid("url", "must not have a fragment"));
    }
    connector
        .check_url(url, &url_rules())
        .map(drop)
        .map_err(|error| Error::invalid("url", format_args!("is not accepted: {error}")))
}

const MOST_HEADERS: usize = 10;
const LONGEST_NAME: usize = 128;
const LONGEST_VALUE: usize = 1024;

/// # Errors
/// `validation_error` at `headers`.
pub(crate) fn headers(headers: &Headers) -> Result<()> {
    if headers.len() > MOST_HEADERS {
        return Err(Error::invalid("headers", format_args!("must have at most {MOST_HEADERS} entries")));
    }
    let mut names = BTreeSet::new();
    for (name, value) in headers {
        let wrong = |rule: &str| Err(Error::invalid(format!("headers.{name}"), rule));
        if name.len() > LONGEST_NAME || egress::HeaderName::from_bytes(name.as_bytes()).is_err() {
            return wrong("is not a header's name of at most 128 characters");
        }
        let lower = name.to_ascii_lowercase();
        if is_ours(&lower) {
            return wrong("is set by the service or belongs to the connection");
        }
        if !names.insert(lower) {
            return wrong("is named twice: letter case makes no other header");
        }
        if value.len() > LONGEST_VALUE || !value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            return wrong("must have at most 1024 visible ASCII characters");
        }
        if value.contains("svc_live_") || value.contains("svc_test_") {
            return wrong("must not carry a key of this service");
        }
    }
    Ok(())
}

fn is_ours(name: &str) -> bool {
    name.starts_with("x-svc-")
        || name.starts_with("webhook-")
        || name.starts_with("proxy-")
        || matches!(
            name,
            "host"
                | "content-length"
                | "content-type"
                | "content-encoding"
                | "transfer-encoding"
                | "connection"
                | "keep-alive"
                | "te"
                | "trailer"
                | "upgrade"
                | "expect"
                | "http2-settings"
                | "user-agent"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_ours_are_refused() {
        let check = |name: &str, value: &str| headers(&Headers::from([(name.to_owned(), value.to_owned())]));
        assert!(check("Authorization", "Bearer abc").is_ok());
        assert!(check("X-Tenant", "7").is_ok());
        for name in
            ["Host", "X-Svc-Event-Id", "Webhook-Id", "Content-Type", "Connection", "a b", "", "User-Agent"]
        {
            assert!(check(name, "x").is_err(), "{name}");
        }
        assert!(check("Authorization", "Bearer svc_live_abc").is_err());
        assert!(check("X-A", "a\r\nB: c").is_err());
        assert!(check("X-A", &"a".repeat(1025)).is_err());
    }
}
