//! Parameters of queries and forms (`application/x-www-form-urlencoded`).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

/// Encodes everything but the characters that no URL reserves.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Decoded parameters, in the order in which they were sent.
#[derive(Debug, Default)]
pub(super) struct Parameters(Vec<(Vec<u8>, Vec<u8>)>);

impl Parameters {
    /// Decodes a query or a form. Values are bytes, because `state` is echoed whatever it is.
    pub(super) fn parse(text: &[u8]) -> Self {
        let decode = |part: &[u8]| {
            let spaced: Vec<u8> = part.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
            percent_decode(&spaced).collect::<Vec<u8>>()
        };
        let parts = text.split(|byte| *byte == b'&').filter(|part| !part.is_empty());
        let pair = |part: &[u8]| {
            let mut halves = part.splitn(2, |byte| *byte == b'=');
            let name = decode(halves.next().unwrap_or_default());
            (name, decode(halves.next().unwrap_or_default()))
        };
        Self(parts.map(pair).collect())
    }

    /// Returns the first value of a parameter as it was sent, also an empty one.
    pub(super) fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// Returns the first value of a parameter. An empty one counts as missing (RFC 6749, 3.1), and so does one that is not
    /// text.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.bytes(name)?).ok().filter(|value| !value.is_empty())
    }

    /// Returns whether a parameter was sent more than once.
    pub(super) fn is_repeated(&self, name: &str) -> bool {
        self.all(name).count() > 1
    }

    /// Returns the name of a parameter other than these that was sent more than once.
    pub(super) fn repeated(&self, except: &[&str]) -> Option<String> {
        let is_new = |at: usize, name: &[u8]| !self.0.iter().take(at).any(|(other, _)| other == name);
        let (_, (name, _)) = self.0.iter().enumerate().find(|(at, (name, _))| {
            !is_new(*at, name) && !except.iter().any(|excepted| excepted.as_bytes() == name)
        })?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let named = self.0.iter().filter(move |(other, _)| other == name.as_bytes());
        named.map(|(_, value)| value.as_slice())
    }
}

/// Appends parameters to a redirect address.
pub(super) fn append(address: &str, parameters: &[(&str, &[u8])]) -> String {
    let mut url = address.to_owned();
    if url.ends_with(['?', '&']) {
        url.pop();
    }
    let mut separator = if url.contains('?') { '&' } else { '?' };
    for (name, value) in parameters {
        url.push(separator);
        url.push_str(name);
        url.push('=');
        url.extend(percent_encode(value, RESERVED));
        separator = '&';
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_once() {
        let read = Parameters::parse(b"a=1&b=x+y%2Bz&c&d=&&e=%2525&f=%ff&a=2&g=p=q");
        assert_eq!(read.get("a"), Some("1"));
        assert_eq!(read.get("b"), Some("x y+z"));
        assert_eq!((read.get("c"), read.get("d")), (None, None));
        assert_eq!(read.bytes("d"), Some(&b""[..]));
        assert_eq!(read.get("e"), Some("%25"));
        assert_eq!((read.get("f"), read.bytes("f")), (None, Some(&b"\xff"[..])));
        assert_eq!(read.get("g"), Some("p=q"));
        assert_eq!((read.get("x"), read.bytes("x")), (None, None));
    }

    #[test]
    fn repetitions_are_found() {
        let read = Parameters::parse(b"resource=1&%73cope=1&resource=2&scope=2&x=1");
        assert!(read.is_repeated("scope") && !read.is_repeated("x"));
        assert_eq!(read.repeated(&["resource"]).as_deref(), Some("scope"));
        assert_eq!(read.repeated(&["resource", "scope"]), None);
        assert_eq!(Parameters::parse(b"").repeated(&[]), None);
    }

    #[test]
    fn what_is_appended_decodes_to_the_same_bytes() {
        let state: Vec<u8> = (0..=255).collect();
        for (address, start) in [
            ("https://a.example/cb", "https://a.example/cb?state="),
            ("https://a.example/cb?x=1", "https://a.example/cb?x=1&state="),
            ("https://a.example/cb?", "https://a.example/cb?state="),
            ("http://localhost:1", "http://localhost:1?state="),
        ] {
            let url = append(address, &[("state", &state), ("iss", b"https://svc.example")]);
            assert!(url.starts_with(start) && url.ends_with("&iss=https%3A%2F%2Fsvc.example"), "{url}");
            let query = url.split_once('?').unwrap().1;
            assert_eq!(Parameters::parse(query.as_bytes()).bytes("state"), Some(state.as_slice()));
        }
    }
}
