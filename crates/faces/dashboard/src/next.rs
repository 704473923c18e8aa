//! Where a person goes after signing in: `next`, a page of this service.

use percent_encoding::percent_decode_str;

/// The page for people without a `next`.
const HOME: &str = "/app/";
/// Longer than any authorization request that clients send.
const LONGEST: usize = 8 * 1024;

/// An address below the base URL: a path, perhaps with a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next(String);

impl Default for Next {
    fn default() -> Self {
        Self(HOME.to_owned())
    }
}

impl Next {
    /// Reads what a link or a form names. Anything but a path of this service is ignored.
    pub fn read(text: Option<&str>) -> Self {
        text.filter(|text| is_path(text)).map(|text| Self(text.to_owned())).unwrap_or_default()
    }

    /// Returns the path with its query.
    pub fn path(&self) -> &str {
        &self.0
    }

    /// Returns whether it differs from where people go anyway.
    pub fn is_set(&self) -> bool {
        self.0 != HOME
    }

    /// Returns whether it may end in a redirect to another site. Browsers hold `form-action` against every redirect that
    /// follows a form, so the policy of a form before this page must not have it.
    pub fn leads_out(&self) -> bool {
        self.0.starts_with("/oauth/authorize") || self.0.starts_with("/authorize")
    }
}

/// Returns whether a browser takes a text for a path on the same host, however it is decoded: `//host`, `/\host`,
/// `https:` and their encoded forms are not.
fn is_path(text: &str) -> bool {
    if text.len() > LONGEST
        || !text.bytes().all(|byte| byte.is_ascii_graphic())
        || text.contains(['\\', '<', '>', '"'])
    {
        return false;
    }
    let path = text.split(['?', '#']).next().unwrap_or_default();
    let Ok(decoded) = percent_decode_str(path).decode_utf8() else { return false };
    let is_plain = |path: &str| {
        path.starts_with('/')
            && !path.contains("//")
            && !path.contains(['\\', '@'])
            && !path.chars().any(|letter| letter.is_control() || letter.is_whitespace())
            && path.split('/').all(|part| part != "." && part != "..")
    };
    // A path that is encoded twice is no page of this service.
    is_plain(path) && is_plain(&decoded) && !decoded.contains('%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_never_leaves_the_service() {
        for text in [
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "/%2Fevil.example",
            "/%2f%2fevil.example",
            "%2F%2Fevil.example",
            "/%5Cevil.example",
            "/%255Cevil.example",
            "/account/..//evil.example",
            "/./account",
            "/%2e%2e/evil",
            "https://evil.example",
            "https:evil.example",
            "HTTPS://evil.example",
            "javascript:alert(1)",
            "data:text/html,x",
            " /account",
            "/account ",
            "\t//evil.example",
            "/\t/evil.example",
            "/%09/evil.example",
            "/%0d%0aset-cookie:x",
            "/\r\nset-cookie: x",
            "/@evil.example",
            "evil.example",
            "account",
            "",
            "?next=/account",
            "/\u{ff0f}evil.example",
            "/%ff",
            "/a\"onload=",
            "http://svc.example.evil.example/",
        ] {
            assert_eq!(Next::read(Some(text)), Next::default(), "{text}");
        }
        assert_eq!(Next::read(Some(&format!("/{}", "a".repeat(LONGEST)))), Next::default());
        assert_eq!(Next::read(None), Next::default());
    }

    #[test]
    fn next_keeps_pages_of_the_service() {
        let authorize = "/oauth/authorize?client_id=https%3A%2F%2Fapp.example%2Fid&state=%2F%2F&scope=a%20b";
        for text in ["/account", "/apps?x=//y", "/reauthenticate?next=/apps", authorize] {
            assert_eq!(Next::read(Some(text)).path(), text);
        }
        assert!(Next::read(Some(authorize)).leads_out());
        assert!(!Next::read(Some("/apps")).leads_out());
    }
}
