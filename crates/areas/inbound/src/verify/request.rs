//! Request to an inbound webhook: its headers, its address, its body, and what of it is stored.

use super::body::{Form, media_type, read_body};
use bytes::Bytes;
use model::Timestamp;
use operation::CauseHeader;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::net::IpAddr;

/// Headers are kept up to this many bytes in all.
const KEPT_HEADER_BYTES: usize = 8 * 1024;
/// What is kept instead of a secret.
const REDACTED: &str = "[redacted]";

/// A request, before anything of it is believed.
pub(crate) struct Incoming<'a> {
    /// The method, in capitals.
    pub(crate) method: &'a str,
    /// The whole address as the sender was given it, with its query.
    pub(crate) url: String,
    /// The query, as sent.
    pub(crate) query: &'a str,
    /// Names in lower case, and values.
    pub(crate) headers: &'a [(String, Bytes)],
    /// Who is connected.
    pub(crate) peer: IpAddr,
    /// The body, as sent.
    pub(crate) body: &'a [u8],
    /// When it came.
    pub(crate) now: Timestamp,
}

impl<'a> Incoming<'a> {
    /// The first value of a header; the name in any case.
    pub(crate) fn header(&self, name: &str) -> Option<&'a [u8]> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &**value)
    }

    /// A header as text; what is no UTF-8 in it is replaced.
    pub(crate) fn header_text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.header(name).map(String::from_utf8_lossy)
    }

    /// The first value of a query parameter.
    pub(crate) fn query_value(&self, name: &str) -> Option<Cow<'a, str>> {
        let mut pairs = url::form_urlencoded::parse(self.query.as_bytes());
        pairs.find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The media type, in lower case and without parameters.
    pub(crate) fn media_type(&self) -> Option<String> {
        media_type(&self.header_text("content-type")?)
    }

    /// The body, read for mapping.
    pub(crate) fn read_body(&self) -> (Form, Value) {
        read_body(self.header_text("content-type").as_deref(), self.body)
    }

    /// The headers worth keeping, without secrets. `secret_header` is the one that holds the sender's secret.
    pub(crate) fn kept_headers(&self, secret_header: Option<&str>) -> Map<String, Value> {
        let mut kept = Map::new();
        let mut bytes = 0;
        for (name, value) in self.headers {
            let is_secret = secret_header.is_some_and(|secret| secret.eq_ignore_ascii_case(name));
            let value = if is_secret || sounds_secret(name) {
                Cow::Borrowed(REDACTED)
            } else {
                String::from_utf8_lossy(value)
            };
            let more = name.len() + value.len();
            // A copy of our own mark would let others go on with the chain.
            let is_mark = name == CauseHeader::NAME;
            if bytes + more > KEPT_HEADER_BYTES || is_mark || !is_header_name(name) {
                continue;
            }
            bytes += more;
            match kept.get_mut(name) {
                Some(Value::String(known)) => known.extend([", ", &*value]),
                _ => drop(kept.insert(name.clone(), value.into_owned().into())),
            }
        }
        kept
    }

    /// The query without secrets, bounded.
    pub(crate) fn kept_query(&self) -> String {
        let mut kept = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in url::form_urlencoded::parse(self.query.as_bytes()).take(100) {
            let value = if sounds_secret(&name) { Cow::Borrowed(REDACTED) } else { value };
            kept.append_pair(&name, &value);
        }
        kept.finish().chars().take(4096).collect()
    }
}

/// Whether a header or parameter of this name holds a secret. Signatures are none: they prove only this request.
fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(name.as_str(), "authorization" | "proxy-authorization" | "cookie" | "set-cookie")
        || ["token", "secret", "password", "api-key", "api_key", "apikey"]
            .iter()
            .any(|word| name.contains(word))
}

/// Whether a text can name a header.
pub(crate) fn is_header_name(text: &str) -> bool {
    (1..=100).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn incoming<'a>(query: &'a str, headers: &'a [(String, Bytes)]) -> Incoming<'a> {
        Incoming {
            method: "POST",
            url: String::new(),
            query,
            headers,
            peer: IpAddr::from([127, 0, 0, 1]),
            body: b"",
            now: Timestamp::from_millis(0),
        }
    }

    #[test]
    fn secrets_are_not_kept() {
        let header = |name: &str, value: &str| (name.to_owned(), Bytes::copy_from_slice(value.as_bytes()));
        let headers = [
            header("authorization", "Basic x"),
            header("x-gitlab-token", "t"),
            header("x-own", "s"),
            header("x-a", "1"),
            header("x-a", "2"),
            header("x-long", &"x".repeat(9000)),
            ("x-latin".to_owned(), Bytes::from_static(b"a\xe9")),
        ];
        let request = incoming("a=1&access_token=t&b=%00", &headers);
        let kept = Value::Object(request.kept_headers(Some("X-Own")));
        assert_eq!(
            kept,
            json!({ "authorization": REDACTED, "x-gitlab-token": REDACTED, "x-own": REDACTED, "x-a": "1, 2",
                    "x-latin": "a\u{fffd}" })
        );
        assert_eq!(request.kept_query(), "a=1&access_token=%5Bredacted%5D&b=%00");
    }
}
