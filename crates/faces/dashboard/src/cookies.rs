//! Cookies: the session, the browser's form key, and the mark of a browser that has signed in before.

use crate::site::{Site, Transport};
use operation::RawRequest;

/// A cookie of this service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cookie {
    /// The secret of the session.
    Session,
    /// What forms are bound to before there is a session.
    Form,
    /// The mark of a browser in which an account has signed in before.
    Device,
}

/// Cookies of this many bytes and more are none of ours.
const LONGEST: usize = 512;

impl Cookie {
    fn base_name(self) -> &'static str {
        match self {
            Self::Session => "svc_session",
            Self::Form => "svc_form",
            Self::Device => "svc_device",
        }
    }

    /// Returns the lifetime in seconds. `None` ends the cookie with the browser; the database ends sessions earlier.
    fn lifetime(self) -> Option<i64> {
        match self {
            Self::Session => Some(30 * 86_400),
            Self::Form => None,
            Self::Device => Some(365 * 86_400),
        }
    }

    /// Returns the name. With the prefix `__Host-`, browsers take the cookie only from this very host over https, so no
    /// neighbour on a subdomain can plant one. On http there is no such protection, and no such name.
    pub fn name(self, site: &Site) -> String {
        match site.transport() {
            Transport::Encrypted => format!("__Host-{}", self.base_name()),
            Transport::Loopback | Transport::Plain { .. } => self.base_name().to_owned(),
        }
    }

    /// Returns the value that a request sends. Returns `None` if it sends several: which of them this service has set
    /// cannot be known.
    pub fn read(self, site: &Site, request: &RawRequest) -> Option<String> {
        let name = self.name(site);
        let headers = request.headers.iter().filter(|(header, _)| header == "cookie");
        let pairs = headers
            .filter_map(|(_, value)| std::str::from_utf8(value).ok())
            .flat_map(|value| value.split(';'));
        let mut values =
            pairs.filter_map(|pair| pair.trim().split_once('=')).filter(|(other, _)| *other == name);
        let (_, value) = values.next()?;
        let is_ours = values.next().is_none() && !value.is_empty() && value.len() < LONGEST;
        is_ours.then(|| value.to_owned())
    }

    /// Returns the header `Set-Cookie` for a value.
    pub fn set(self, site: &Site, value: &str) -> String {
        let lifetime = self.lifetime().map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
        self.header(site, value, &lifetime)
    }

    /// Returns the header `Set-Cookie` that removes the cookie.
    pub fn clear(self, site: &Site) -> String {
        self.header(site, "", "; Max-Age=0")
    }

    fn header(self, site: &Site, value: &str, lifetime: &str) -> String {
        let secure = if site.transport() == Transport::Encrypted { "; Secure" } else { "" };
        // Lax, because the consent page is opened from other sites, where a strict cookie is not sent.
        format!("{}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{lifetime}", self.name(site))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::InsecureSignIn;
    use std::net::{IpAddr, Ipv4Addr};

    fn request(cookies: &[&str]) -> RawRequest {
        RawRequest {
            method: "GET".to_owned(),
            rest: String::new(),
            query: String::new(),
            headers: cookies.iter().map(|cookie| ("cookie".to_owned(), cookie.to_string().into())).collect(),
            peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
            body: bytes::Bytes::new(),
        }
    }

    #[test]
    fn cookies_are_as_strict_as_the_address_allows() {
        let site = |base_url| Site::new(base_url, InsecureSignIn(true)).unwrap();
        let encrypted = "__Host-svc_session=x; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=2592000";
        assert_eq!(Cookie::Session.set(&site("https://svc.example"), "x"), encrypted);
        let plain = "svc_session=x; Path=/; HttpOnly; SameSite=Lax; Max-Age=2592000";
        assert_eq!(Cookie::Session.set(&site("http://localhost:8080"), "x"), plain);
        assert_eq!(Cookie::Session.set(&site("http://svc.example"), "x"), plain);
        let cleared = "__Host-svc_session=; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0";
        assert_eq!(Cookie::Session.clear(&site("https://svc.example")), cleared);
    }

    #[test]
    fn a_cookie_is_read_only_if_it_is_the_one_of_its_name() {
        let site = Site::new("https://svc.example", InsecureSignIn(false)).unwrap();
        let read = |cookies: &[&str]| Cookie::Session.read(&site, &request(cookies));
        assert_eq!(read(&["a=b; __Host-svc_session=s ; c=d"]).as_deref(), Some("s"));
        assert_eq!(read(&["a=b", "__Host-svc_session=s"]).as_deref(), Some("s"));
        let long = format!("__Host-svc_session={}", "x".repeat(LONGEST));
        for cookies in [
            &["svc_session=s"][..],
            &["__host-svc_session=s"],
            &["__Host-svc_session="],
            &["__Host-svc_session=s; __Host-svc_session=t"],
            &["__Host-svc_session=s", "__Host-svc_session=s"],
            &["x__Host-svc_session=s"],
            &[long.as_str()],
            &[],
        ] {
            assert_eq!(read(cookies), None, "{cookies:?}");
        }
    }
}
