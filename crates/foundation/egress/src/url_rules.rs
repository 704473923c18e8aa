//! Strict parsing of URLs: all checks of a target that need no network.
//!
//! The `url` crate follows the browsers' standard, which repairs malformed URLs: it reads `http:/\0x7f.1` as
//! `http://127.0.0.1/`. This module refuses URLs that need repair, so that the connector contacts exactly the host
//! that a person sees in a stored URL.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use crate::error::Error;
use crate::policy::{Policy, check_name, decimal};

/// The maximum length of a URL in bytes, both as written and as normalised.
const MAX_URL: usize = 2048;

/// A caller's rules for a URL, in addition to the general rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UrlRules {
    /// Refuse `http`, even for targets on the allow-list.
    pub https_only: bool,
    /// The accepted ports.
    pub ports: Ports,
    /// Let the operator's allow-list take precedence over scheme and ports: a target that it lists by address or name
    /// is accepted.
    pub operator_first: bool,
}

impl UrlRules {
    /// Returns rules for `https` only, on the usual ports.
    pub fn https() -> Self {
        Self { https_only: true, ..Self::default() }
    }
}

/// The ports that a URL may name. A rule of the operator that names host *and* port takes precedence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ports {
    /// Every port except those of well-known services that do not speak HTTP (mail, databases, …).
    #[default]
    Usual,
    /// Only these ports.
    Only(Cow<'static, [u16]>),
}

impl Ports {
    fn allow(&self, port: u16) -> bool {
        match self {
            Self::Usual => port != 0 && DANGEROUS.binary_search(&port).is_err(),
            Self::Only(ports) => port != 0 && ports.contains(&port),
        }
    }
}

/// The browsers' list of blocked ports, and the usual ports of databases, caches and cluster managers. Sorted.
const DANGEROUS: &[u16] = &[
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
    109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 138, 139, 143, 161, 179, 389, 427, 445, 465, 512, 513,
    514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1433, 1521,
    1719, 1720, 1723, 2049, 2375, 2376, 2379, 2380, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 5900,
    6000, 6379, 6380, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 9042, 10080, 10250, 11211, 27017,
];

/// Parses a URL and checks its scheme, the spelling of its host, its port and a literal address. Drops the fragment.
pub(crate) fn check(text: &str, rules: &UrlRules, policy: &Policy) -> Result<Url, Error> {
    let url = parse(text).map_err(|reason| Error::InvalidUrl { reason })?;
    let forbidden = |reason| Err(Error::Forbidden { reason });
    let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
        return Err(Error::InvalidUrl { reason: "the host is empty" });
    };
    let listed = rules.operator_first && policy.lists(&host, port);
    if rules.https_only && url.scheme() != "https" && !listed {
        return forbidden("only https is accepted");
    }
    if !rules.ports.allow(port) && !policy.names_port(&host, port) && !listed {
        return forbidden("this port is not accepted");
    }
    let permitted = match host {
        Host::Ipv4(v4) => policy.permits(None, IpAddr::V4(v4), port),
        Host::Ipv6(v6) => policy.permits(None, IpAddr::V6(v6), port),
        // These names are known to be loopback, so a URL is refused before it is stored. Other names are checked when
        // they are resolved.
        Host::Domain(name) if name == "localhost" || name.ends_with(".localhost") => {
            policy.permits(Some(name), IpAddr::V4(Ipv4Addr::LOCALHOST), port)
                || policy.permits(Some(name), IpAddr::V6(Ipv6Addr::LOCALHOST), port)
        }
        Host::Domain(_) => true,
    };
    if permitted { Ok(url) } else { forbidden(ADDRESS) }
}

/// The reason for every refused address, before and after resolution.
pub(crate) const ADDRESS: &str = "the host's address is not public";

fn parse(text: &str) -> Result<Url, &'static str> {
    if text.len() > MAX_URL {
        return Err("longer than 2048 bytes");
    }
    if text.bytes().any(|b| b.is_ascii_control() || b == b' ') {
        return Err("it has spaces or control characters");
    }
    let (scheme, rest) = text.split_once("://").ok_or("it doesn't start with http:// or https://")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err("it doesn't start with http:// or https://");
    }
    let location = rest.split(['?', '#']).next().unwrap_or_default();
    if location.contains('\\') {
        return Err("it has a backslash");
    }
    // Split the text independently of `Url`, which repairs what it parses, and compare both results below.
    let authority = location.split('/').next().unwrap_or_default();
    if authority.is_empty() {
        return Err("the host is empty");
    }
    if authority.contains('@') {
        return Err("it has user info");
    }
    let mut url = Url::parse(text).map_err(|_| "it can't be parsed")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it has user info");
    }
    let (host, port) = split_port(authority)?;
    if let Some(port) = port
        && url.port_or_known_default() != decimal(port)
    {
        return Err("the port is not a plain number");
    }
    match url.host() {
        Some(Host::Ipv4(v4)) if v4.to_string() == host => {}
        Some(Host::Ipv4(_)) => return Err("the IPv4 address is not written as four decimal numbers"),
        Some(Host::Ipv6(_)) if host.starts_with('[') => {}
        Some(Host::Domain(name)) => {
            check_name(name)?;
            check_spelling(host, name)?;
        }
        _ => return Err("the host can't be parsed"),
    }
    url.set_fragment(None);
    if url.as_str().len() > MAX_URL {
        return Err("longer than 2048 bytes");
    }
    Ok(url)
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), &'static str> {
    // The colons within the brackets of an IPv6 address do not separate the port.
    let end = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    let (head, tail) = authority.split_at_checked(end).ok_or("the host can't be parsed")?;
    match tail.split_once(':') {
        Some((name, port)) => {
            let host = if head.is_empty() { name } else { head };
            if !head.is_empty() && !name.is_empty() {
                return Err("the host can't be parsed");
            }
            Ok((host, Some(port)))
        }
        None => Ok((authority, None)),
    }
}

/// Accepts a name only if it differs from the parsed name in nothing but letter case and international labels: no
/// percent-encoding, no full-width letters, no dots other than the full stop.
fn check_spelling(written: &str, parsed: &str) -> Result<(), &'static str> {
    let same = written.split('.').count() == parsed.split('.').count()
        && written.split('.').zip(parsed.split('.')).all(|(written, parsed)| {
            if written.is_ascii() {
                written.eq_ignore_ascii_case(parsed)
            } else {
                !written.contains('%') && parsed.starts_with("xn--")
            }
        });
    if same { Ok(()) } else { Err("the host's name is written in an unusual way") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> Result<String, Error> {
        check(text, &UrlRules::default(), &Policy::public_only()).map(String::from)
    }

    #[test]
    fn ports_are_sorted_for_the_search() {
        assert!(DANGEROUS.is_sorted());
    }

    #[test]
    fn ordinary_urls_pass() {
        for (text, normal) in [
            ("https://example.com", "https://example.com/"),
            ("HTTPS://Example.COM:443/A?b=c#d", "https://example.com/A?b=c"),
            ("http://example.com:8080/%7Euser?q=@#x@y", "http://example.com:8080/%7Euser?q=@"),
            ("http://8.8.8.8:8000/", "http://8.8.8.8:8000/"),
            ("https://[2001:4860:4860:0::8888]:8443/x", "https://[2001:4860:4860::8888]:8443/x"),
            ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"),
            ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
            ("https://a_b-c.example/a\\b".replace('\\', "%5C").as_str(), "https://a_b-c.example/a%5Cb"),
        ] {
            assert_eq!(public(text).as_deref(), Ok(normal), "{text}");
        }
    }

    #[test]
    fn rules_narrow_scheme_and_port() {
        let policy = Policy::allowing(["10.0.0.1:9000", "hooks.example:81", "10.0.0.2"]).unwrap();
        let rules = UrlRules { ports: Ports::Only(Cow::Borrowed(&[443, 8443])), ..UrlRules::default() };
        let ok = |text: &str| check(text, &rules, &policy).is_ok();
        assert!(ok("https://example.com/"));
        assert!(ok("http://example.com:8443/"));
        assert!(!ok("http://example.com/"));
        assert!(ok("http://10.0.0.1:9000/"), "the operator named the port");
        assert!(ok("http://hooks.example:81/"));
        assert!(!ok("http://other.example:81/"));
        assert!(!ok("http://10.0.0.2:9000/"), "a rule without port doesn't widen the list");
        assert!(ok("http://10.0.0.2:443/"));
        let https = |text: &str| check(text, &UrlRules::https(), &policy).map(|_| ());
        assert_eq!(https("https://example.com:8444/"), Ok(()));
        assert_eq!(
            https("http://10.0.0.1:9000/"),
            Err(Error::Forbidden { reason: "only https is accepted" })
        );
    }

    #[test]
    fn the_operator_may_go_first() {
        let policy = Policy::allowing(["127.0.0.0/8", "hooks.internal", "10.0.0.1:9000"]).unwrap();
        let ports = Ports::Only(Cow::Borrowed(&[443, 8443]));
        let rules = UrlRules { https_only: true, ports, operator_first: true };
        let ok = |text: &str| check(text, &rules, &policy).is_ok();
        for text in [
            "https://example.com/",
            "https://example.com:8443/",
            "http://127.0.0.1:3000/",
            "http://localhost:3000/",
            "http://hooks.internal/",
            "http://10.0.0.1:9000/",
        ] {
            assert!(ok(text), "{text}");
        }
        for text in [
            "http://example.com/",
            "https://example.com:444/",
            "http://8.8.8.8/",
            "https://10.0.0.1:9001/",
            "http://x.hooks.internal/",
            "https://user@127.0.0.1/",
        ] {
            assert!(!ok(text), "{text}");
        }
    }

    #[test]
    fn localhost_needs_a_rule() {
        assert!(public("http://localhost/").is_err_and(|e| e.is_refusal()));
        assert!(public("http://x.localhost/").is_err_and(|e| e.is_refusal()));
        for rule in ["localhost", "127.0.0.0/8", "[::1]:80"] {
            let policy = Policy::allowing([rule]).unwrap();
            assert!(check("http://localhost/", &UrlRules::default(), &policy).is_ok(), "{rule}");
        }
    }

    #[test]
    fn length_is_bounded() {
        let url = |n: usize| format!("https://example.com/{}", "a".repeat(n));
        assert!(public(&url(2048 - 20)).is_ok());
        assert!(public(&url(2048 - 19)).is_err());
        assert!(
            public(&format!("https://example.com/{}", "ä".repeat(700))).is_err(),
            "it grows when normalised"
        );
    }
}
