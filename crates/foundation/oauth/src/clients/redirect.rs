//! Redirect addresses: the ones that a client may register, and the ones that a request may name.
//!
//! There are three kinds: servers (`https`), programs on the person's computer that listen on loopback (`http`), and apps on
//! the person's device that the operating system opens by a private-use scheme such as `cursor://` (RFC 8252, 7.1).

use url::Url;

/// The maximum length of a redirect address.
const LONGEST: usize = 1000;
/// The hosts that lead to the computer of the person. For these, and only for these, `http` is accepted.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// The longest private-use scheme.
const LONGEST_SCHEME: usize = 60;
/// Schemes that are no app's own: browsers and operating systems run, open or send what they name.
const COMMON_SCHEMES: [&str; 60] = [
    "about",
    "acap",
    "android-app",
    "app",
    "blob",
    "brave",
    "callto",
    "cid",
    "content",
    "data",
    "devtools",
    "dict",
    "edge",
    "facetime",
    "feed",
    "file",
    "filesystem",
    "firefox",
    "ftp",
    "ftps",
    "geo",
    "git",
    "gopher",
    "hcp",
    "help",
    "intent",
    "irc",
    "jar",
    "javascript",
    "ldap",
    "ldaps",
    "livescript",
    "magnet",
    "mailto",
    "market",
    "mid",
    "mk",
    "mms",
    "mocha",
    "news",
    "nfs",
    "nntp",
    "opera",
    "res",
    "resource",
    "rtsp",
    "sftp",
    "shell",
    "sip",
    "sips",
    "sms",
    "smb",
    "ssh",
    "tel",
    "telnet",
    "urn",
    "vbscript",
    "vivaldi",
    "ws",
    "wss",
];
/// The beginnings of families of such schemes.
const COMMON_FAMILIES: [&str; 10] =
    ["about-", "chrome", "itms", "moz-", "ms-", "safari-", "view-source", "web+", "wyciwyg", "x-apple"];

/// Where a redirect address leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A program on the computer of the person. Nobody can verify which.
    Loopback,
    /// A server, by its host and port as they are written in the address.
    Host(String),
    /// An app on the device of the person, by the private-use scheme that opens it. Nobody can verify which app that is.
    App(String),
}

/// Returns where a registered address leads.
pub fn destination(address: &str) -> Destination {
    if let Some((scheme, _)) = address.split_once(':').filter(|(scheme, _)| !is_web(scheme)) {
        return Destination::App(scheme.to_owned());
    }
    let authority = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    let is_loopback = LOOPBACK.iter().any(|host| {
        authority.strip_prefix(host).is_some_and(|after| after.is_empty() || after.starts_with(':'))
    });
    if is_loopback { Destination::Loopback } else { Destination::Host(authority.to_owned()) }
}

/// Checks an address that a client wants to register. Addresses are compared byte for byte later, so spellings that a
/// browser would normalize are refused.
///
/// # Errors
/// The violated rule.
pub fn check(address: &str) -> Result<(), &'static str> {
    if address.len() > LONGEST {
        return Err("is longer than 1000 characters");
    }
    if !address.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("has characters other than visible ASCII; write international names in punycode");
    }
    if address.contains('#') {
        return Err("has a fragment");
    }
    let (scheme, rest) = address.split_once(':').ok_or("has no scheme")?;
    if !is_web(scheme) {
        return check_app(scheme, rest);
    }
    let rest = rest.strip_prefix("//").ok_or("has no host")?;
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains(['@', '\\', '%']) {
        return Err("has user info or a host that is written in an unusual way");
    }
    let url = Url::parse(address).map_err(|_| "is not a URL")?;
    let host = url.host_str().ok_or("has no host")?;
    // `Url` normalizes letter case, numbers of addresses and ports. What it changes is refused.
    let written = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    if authority != written {
        return Err("has a host or a port that is written in an unusual way");
    }
    match scheme {
        "https" => Ok(()),
        "http" if LOOPBACK.contains(&host) => Ok(()),
        _ => Err("must begin with https, unless its host is 127.0.0.1, [::1] or localhost"),
    }
}

fn is_web(scheme: &str) -> bool {
    matches!(scheme, "https" | "http")
}

/// Checks an address with a private-use scheme. RFC 8252 wants a domain name of the app's maker in reverse, but the
/// editors that people use register a single word.
fn check_app(scheme: &str, rest: &str) -> Result<(), &'static str> {
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_lowercase())
        && scheme.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'+' | b'-' | b'.'));
    if !is_scheme || !(2..=LONGEST_SCHEME).contains(&scheme.len()) {
        return Err(
            "must begin with https, with http on loopback, or with the scheme of an app in lower case",
        );
    }
    let is_common = COMMON_SCHEMES.contains(&scheme)
        || COMMON_FAMILIES.iter().any(|family| scheme.starts_with(family))
        || scheme.ends_with("-extension")
        || scheme.ends_with("-ms");
    if is_common || scheme.starts_with("http") {
        return Err("begins with a scheme that is no app's own");
    }
    if !rest.starts_with('/') {
        return Err("must have a path after the scheme, as com.example.app:/callback or example://callback");
    }
    let path = rest.split('?').next().unwrap_or_default();
    let is_plain = path.bytes().all(|byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_' | b'~' | b':' | b'+')
    });
    if !is_plain || rest.contains(['"', '<', '>', '\\', '^', '`', '{', '|', '}']) {
        return Err("has user info or characters that are written in an unusual way");
    }
    Ok(())
}

/// Returns whether a request may name `requested` if its client has registered `registered`: byte for byte, but with
/// any port on loopback, also where the registered address has none (RFC 8252, 7.3).
pub fn matches(registered: &str, requested: &str) -> bool {
    registered == requested || loopback(registered).is_some_and(|wanted| loopback(requested) == Some(wanted))
}

/// Returns an address without its port, if it is one on loopback. There the port says nothing about the client.
pub(super) fn without_port(address: &str) -> String {
    match loopback(address) {
        Some((host, rest)) => format!("http://{host}{rest}"),
        None => address.to_owned(),
    }
}

/// Returns the host of a loopback address and what follows the port.
fn loopback(address: &str) -> Option<(&str, &str)> {
    let address = address.strip_prefix("http://")?;
    let (host, after) = LOOPBACK.iter().find_map(|host| Some((*host, address.strip_prefix(host)?)))?;
    let rest = match after.strip_prefix(':') {
        None => after,
        Some(after) => {
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            let (port, rest) = after.split_at_checked(digits)?;
            let is_port = !port.starts_with('0') && port.parse::<u16>().is_ok();
            is_port.then_some(rest)?
        }
    };
    let is_end = rest.is_empty() || rest.starts_with(['/', '?']);
    (is_end && !rest.contains('#')).then_some((host, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_https_loopback_and_apps_can_be_registered() {
        for address in [
            "https://app.example.com/callback",
            "https://app.example.com",
            "https://app.example.com:8443/callback?tenant=7",
            "https://xn--bcher-kva.example/cb",
            "https://203.0.113.7/cb",
            "https://[2001:db8::1]/cb",
            "http://127.0.0.1/callback",
            "http://127.0.0.1:33418/",
            "http://[::1]:8080/cb",
            "http://localhost",
            "http://localhost:3000/cb?x=1",
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "vscode://vendor.extension/did-authenticate",
            "com.example.app:/oauth2redirect",
            "com.example.app:/oauth2redirect?tenant=7",
            "raycast://oauth",
            "x-claude+mcp://cb",
        ] {
            assert_eq!(check(address), Ok(()), "{address}");
        }
    }

    #[test]
    fn no_other_address_of_the_web_can_be_registered() {
        for address in [
            "",
            "callback",
            "http://app.example.com/callback",
            "http://localhost.evil.example/cb",
            "http://127.0.0.1.evil.example/cb",
            "http://127.0.0.2/cb",
            "http://localhost@evil.example/cb",
            "https://user@app.example.com/cb",
            "https://user:password@app.example.com/cb",
            "https://app.example.com/cb#fragment",
            "https://app.example.com/cb#",
            "https://bücher.example/cb",
            "https://App.example.com/cb",
            "HTTPS://app.example.com/cb",
            "http://LOCALHOST/cb",
            "https://app%2eexample.com/cb",
            "https://app.example.com\\@evil.example/cb",
            "https:///cb",
            "https://app.example.com:443/cb",
            "https://app.example.com:08443/cb",
            "https://app.example.com:/cb",
            "https://0x7f.1/cb",
            "https://app.example.com/a b",
            "https://app.example.com/\u{202e}cb",
            "https:app.example.com/cb",
            "https:/app.example.com/cb",
            "http:/localhost/cb",
            "httpss://app.example.com/cb",
        ] {
            assert!(check(address).is_err(), "{address}");
        }
        assert!(check(&format!("https://app.example.com/{}", "x".repeat(1000))).is_err());
    }

    #[test]
    fn no_scheme_of_browsers_or_of_the_operating_system_can_be_registered() {
        for address in [
            "javascript://app.example.com/%0aalert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "Cursor://app/callback",
            "cursor:callback",
            "cursor:",
            "cursor",
            "c://cb",
            "1password://cb",
            "cur sor://cb",
            "cursor\u{202e}://cb",
            "cursor://app/callback#x",
            "cursor://user@app/callback",
            "cursor://app/%0d%0aLocation:x",
            "cursor://app\\@evil/cb",
            "cursor://app/<script>",
            "cursor://app/cb?x=\"><script>",
            "javascript:alert(1)",
            "javascript:/*x*/alert(1)",
            "JavaScript://x/%0aalert(1)",
            "java\tscript://x",
            "data:/text/html,x",
            "vbscript://x",
            "blob:https://app.example.com/7",
            "blob:/x",
            "filesystem:/x",
            "about:/blank",
            "about:blank",
            "view-source://app.example.com/",
            "ws://app.example.com/",
            "wss://app.example.com/",
            "ftp://app.example.com/",
            "mailto:/marta@example.com",
            "tel:/123",
            "sms:/123",
            "chrome://settings",
            "chrome-extension://abcdef/cb.html",
            "moz-extension://abcdef/cb.html",
            "safari-web-extension://abcdef/cb.html",
            "edge://settings",
            "intent://scan/#Intent;scheme=zxing;end",
            "intent://scan/",
            "ms-settings://x",
            "search-ms:/query",
            "web+app://cb",
        ] {
            assert!(check(address).is_err(), "{address}");
        }
        assert!(check(&format!("{}://cb", "x".repeat(61))).is_err());
    }

    #[test]
    fn loopback_has_any_port_and_nothing_else_differs() {
        for (registered, requested) in [
            ("http://localhost/callback", "http://localhost:55454/callback"),
            ("http://localhost:3000/callback", "http://localhost:55454/callback"),
            ("http://localhost:3000/callback", "http://localhost/callback"),
            ("http://127.0.0.1/", "http://127.0.0.1:1/"),
            ("http://[::1]:9/cb?a=b", "http://[::1]:65535/cb?a=b"),
            ("http://localhost", "http://localhost:8080"),
            ("https://app.example.com/cb", "https://app.example.com/cb"),
            ("cursor://app/cb", "cursor://app/cb"),
        ] {
            assert!(matches(registered, requested), "{registered} {requested}");
        }
        for (registered, requested) in [
            ("http://localhost/callback", "http://127.0.0.1:55454/callback"),
            ("http://localhost/callback", "https://localhost:55454/callback"),
            ("http://localhost/callback", "http://localhost:55454/other"),
            ("http://localhost/callback", "http://localhost:55454/callback/"),
            ("http://localhost/callback", "http://localhost:55454/callback?x=1"),
            ("http://localhost/callback", "http://localhost:55454/callback#x"),
            ("http://localhost/", "http://localhost.evil.example:1/"),
            ("http://localhost/", "http://localhost:1@evil.example/"),
            ("http://localhost/", "http://localhost@evil.example/"),
            ("http://localhost/", "http://localhost:0/"),
            ("http://localhost/", "http://localhost:65536/"),
            ("http://localhost/", "http://localhost:080/"),
            ("http://localhost/", "http://localhost:/"),
            ("http://localhost/", "http://LOCALHOST:1/"),
            ("https://app.example.com/cb", "https://app.example.com:8443/cb"),
            ("https://app.example.com/cb", "https://app.example.com/cb/"),
            ("https://app.example.com/cb", "https://app.example.com/CB"),
            ("https://app.example.com/cb", "https://APP.example.com/cb"),
            ("https://app.example.com/cb", "https://app.example.com/cb?x"),
            ("cursor://app/cb", "cursor://app/cb/"),
            ("cursor://app/cb", "Cursor://app/cb"),
            ("cursor://app/cb", "cursor://app:1/cb"),
            ("cursor://localhost/cb", "cursor://localhost:1/cb"),
            ("cursor://app/cb", "cursor://app/cb?x"),
            ("cursor://app/cb", "cursor:/app/cb"),
            ("https://app.example.com/a/cb", "https://app.example.com/a/./cb"),
        ] {
            assert!(!matches(registered, requested), "{registered} {requested}");
        }
    }

    #[test]
    fn a_destination_is_what_the_browser_will_reach() {
        let host = |text: &str| Destination::Host(text.to_owned());
        assert_eq!(destination("https://app.example.com/cb"), host("app.example.com"));
        assert_eq!(destination("https://app.example.com:8443?x"), host("app.example.com:8443"));
        assert_eq!(destination("https://localhost.evil.example/cb"), host("localhost.evil.example"));
        for address in ["cursor://anysphere.cursor-mcp/cb", "cursor:/cb", "cursor://localhost/cb"] {
            assert_eq!(destination(address), Destination::App("cursor".to_owned()), "{address}");
        }
        for address in ["http://localhost:1/cb", "http://127.0.0.1", "http://[::1]/x", "https://localhost/x"]
        {
            assert_eq!(destination(address), Destination::Loopback, "{address}");
        }
    }
}
