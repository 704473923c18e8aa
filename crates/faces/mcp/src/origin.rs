//! Which browser pages may use the endpoint, and the headers that tell browsers so.
//!
//! Nothing here reads a cookie, so the check protects servers on loopback against DNS rebinding rather than users against
//! foreign pages.

use operation::RawAnswer;

/// Headers that clients send.
const ALLOWED_HEADERS: &str = "Authorization, Content-Type, Accept, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, \
     Last-Event-ID, X-Svc-Toolsets, X-Svc-Tools, X-Svc-Read-Only, X-Svc-Workspace, X-Client-Request-Id, Traceparent";
/// Headers that clients read. Without `WWW-Authenticate`, browsers cannot begin to authorize.
const EXPOSED_HEADERS: &str = "WWW-Authenticate, X-Request-Id, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, \
     X-RateLimit-Reset";
/// How long browsers may cache the response to a preflight request, in seconds.
const REMEMBERED: &str = "600";

/// The origins that may use the endpoint: the service's own, loopback, and those that the operator lists.
#[derive(Debug, Clone)]
pub(crate) struct Origins {
    own: Option<String>,
    listed: Vec<String>,
}

impl Origins {
    pub(crate) fn new(base_url: &str, listed: &[String]) -> Self {
        let own = scheme_and_authority(base_url).map(|(scheme, authority)| format!("{scheme}://{authority}"));
        Self { own, listed: listed.to_vec() }
    }

    /// Returns whether pages of an origin may use the endpoint.
    pub(crate) fn allow(&self, origin: &str) -> bool {
        let is_listed = |listed: &String| listed == "*" || listed.eq_ignore_ascii_case(origin);
        self.own.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(origin))
            || is_loopback(origin)
            || self.listed.iter().any(is_listed)
    }
}

/// Adds the headers with which a browser shows an answer to a page.
pub(crate) fn allow(answer: RawAnswer, origin: Option<&str>) -> RawAnswer {
    let answer = answer.header("vary", "Origin");
    match origin {
        Some(origin) => answer
            .header("access-control-allow-origin", origin)
            .header("access-control-expose-headers", EXPOSED_HEADERS),
        None => answer,
    }
}

/// Answers a preflight request.
pub(crate) fn preflight(origin: Option<&str>) -> RawAnswer {
    let answer = RawAnswer::status(204)
        .header("access-control-allow-methods", "POST")
        .header("access-control-allow-headers", ALLOWED_HEADERS)
        .header("access-control-max-age", REMEMBERED);
    allow(answer, origin)
}

fn scheme_and_authority(url: &str) -> Option<(String, String)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?.to_ascii_lowercase();
    let scheme = scheme.to_ascii_lowercase();
    let default_port = if scheme == "https" { ":443" } else { ":80" };
    let authority = authority.strip_suffix(default_port).unwrap_or(&authority).to_owned();
    Some((scheme, authority))
}

/// Returns whether an origin is `http(s)://` and a name or address of this machine, with any port.
fn is_loopback(origin: &str) -> bool {
    let Some((scheme, rest)) = origin.split_once("://") else { return false };
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return false;
    }
    let (host, port) = match rest.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, port)) => {
                (host, port.strip_prefix(':').or(Some(port).filter(|port| port.is_empty())))
            }
            None => return false,
        },
        None => match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, Some("")),
        },
    };
    let Some(port) = port else { return false };
    if !port.is_empty() && port.parse::<u16>().is_err() {
        return false;
    }
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_loopback_and_listed_origins_are_allowed() {
        let origins = Origins::new("https://svc.example.com:443/x", &["https://app.example.com".to_owned()]);
        for allowed in [
            "https://svc.example.com",
            "https://app.example.com",
            "http://localhost",
            "http://localhost:6274",
            "https://127.0.0.1:8443",
            "http://127.8.0.1",
            "http://[::1]:3000",
            "http://[::1]",
        ] {
            assert!(origins.allow(allowed), "{allowed}");
        }
        for refused in [
            "null",
            "",
            "https://evil.example",
            "http://svc.example.com",
            "https://svc.example.com.evil.example",
            "https://app.example.com:8443",
            "http://localhost.evil.example",
            "http://localhost:80.evil.example",
            "http://localhost@evil.example",
            "http://[::1]evil.example",
            "http://[::1",
            "http://128.0.0.1",
            "ftp://localhost",
        ] {
            assert!(!origins.allow(refused), "{refused}");
        }
        assert!(Origins::new("", &["*".to_owned()]).allow("null"));
    }
}
