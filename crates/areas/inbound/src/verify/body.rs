//! Bodies of received requests: JSON, forms, text or bytes, as they are read for mapping.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use egress::charset;
use input::numbers;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// How a body was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Fields,
    Text,
    Binary,
}

impl Form {
    /// Whether a sender says that this body is JSON, and it is none.
    pub(crate) fn says_json_but_is_none(self, media_type: Option<&str>, body: &[u8]) -> bool {
        self != Self::Json && media_type.is_some_and(is_json) && !body.trim_ascii().is_empty()
    }
}

/// Reads a body for mapping. Nothing is refused: what is not what it says it is, is text, and what is no text is base64.
pub(crate) fn read_body(content_type: Option<&str>, body: &[u8]) -> (Form, Value) {
    let media = content_type.and_then(media_type);
    let media = media.as_deref();
    let charset = content_type.and_then(charset::label).filter(|label| charset::is_known(label));
    if (media.is_some_and(is_json) || may_be_json(media, body))
        && let Some(value) = json(charset, body)
    {
        return (Form::Json, value);
    }
    if media == Some("application/x-www-form-urlencoded") {
        return (Form::Fields, Value::Object(fields(charset, body)));
    }
    match (std::str::from_utf8(body), charset) {
        (Err(_), None) => (Form::Binary, STANDARD.encode(body).into()),
        (Ok(text), None) => (Form::Text, text.into()),
        (_, charset) => (Form::Text, charset::decode_as(charset, body).into()),
    }
}

/// The media type of a content type, in lower case and without parameters.
pub(crate) fn media_type(content_type: &str) -> Option<String> {
    let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    (!media.is_empty()).then(|| media.chars().take(200).collect())
}

fn is_json(media_type: &str) -> bool {
    matches!(media_type, "application/json" | "application/x-json" | "text/json" | "text/x-json")
        || media_type.ends_with("+json")
}

/// Whether a body that is not called JSON can be an object or a list of it. Amazon SNS sends JSON as text, and `curl -d` as
/// a form; a form in which `{` and `[` stand unescaped at the beginning is not known.
fn may_be_json(media_type: Option<&str>, body: &[u8]) -> bool {
    let is_likely = match media_type {
        None => true,
        Some(media) => matches!(
            media,
            "text/plain"
                | "text/javascript"
                | "application/javascript"
                | "application/x-javascript"
                | "application/octet-stream"
                | "binary/octet-stream"
                | "application/x-www-form-urlencoded"
        ),
    };
    let start = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
    is_likely && matches!(start, [b'{' | b'[', ..] | [0xfe, 0xff, ..] | [0xff, 0xfe, ..])
}

/// JSON must be UTF-8, so that is tried before what the sender says. Of text in neither, single bytes are lost.
fn json(charset: Option<&str>, body: &[u8]) -> Option<Value> {
    let has_mark = body.starts_with(b"\xfe\xff") || body.starts_with(b"\xff\xfe");
    let is_utf8 = std::str::from_utf8(body).is_ok() && charset.is_none_or(|label| !is_wide(label));
    let text = if has_mark || is_utf8 { Cow::Borrowed(body) } else { utf8(charset, body) };
    numbers::lossless(&text).ok()
}

fn utf8<'a>(charset: Option<&str>, body: &'a [u8]) -> Cow<'a, [u8]> {
    match charset::decode_as(charset, body) {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// Whether letters of a charset have two bytes, so that ASCII in it seems to be UTF-8 with zeros.
fn is_wide(label: &str) -> bool {
    label.to_ascii_lowercase().starts_with("utf-16")
}

/// The fields of a form; one that comes several times is a list. The charset is that of the content type, or of the field
/// `_charset_` (as browsers fill it in) or `charset` (as payment notices do).
fn fields(charset: Option<&str>, body: &[u8]) -> Map<String, Value> {
    let pairs: Vec<(Vec<u8>, Vec<u8>)> = pairs(body).collect();
    let named = |wanted: &str| {
        let found = pairs.iter().find(|(name, _)| name == wanted.as_bytes())?;
        std::str::from_utf8(&found.1).ok().filter(|label| charset::is_known(label))
    };
    let charset = charset.or_else(|| named("_charset_")).or_else(|| named("charset"));
    let mut fields = Map::new();
    for (name, value) in &pairs {
        // A form is ASCII whose bytes stand for letters of the charset; of one in UTF-16 there is none.
        let charset = charset.filter(|label| !is_wide(label));
        let value = Value::from(charset::decode_part(charset, value).into_owned());
        let name = charset::decode_part(charset, name);
        match fields.get_mut(&*name) {
            None => drop(fields.insert(name.into_owned(), value)),
            Some(Value::Array(values)) => values.push(value),
            Some(one) => *one = Value::Array(vec![one.take(), value]),
        }
    }
    fields
}

/// Names and values of a form, as bytes: `url` decodes UTF-8 only.
fn pairs(body: &[u8]) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()).map(|pair| {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let mut half = || {
            let half = halves.next().unwrap_or_default();
            let spaced: Vec<u8> = half.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
            percent_encoding::percent_decode(&spaced).collect()
        };
        (half(), half())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const FORM: &str = "application/x-www-form-urlencoded";

    #[test]
    fn bodies_are_read_as_what_they_are() {
        for (content_type, body, expected) in [
            (Some("application/json"), &b"{\"a\":1}"[..], (Form::Json, json!({ "a": 1 }))),
            (Some("application/cloudevents+json"), b"[1]", (Form::Json, json!([1]))),
            (None, b" {\"a\":1}", (Form::Json, json!({ "a": 1 }))),
            (Some("application/json"), b"{", (Form::Text, json!("{"))),
            (Some("application/json"), b"[1,]", (Form::Text, json!("[1,]"))),
            (Some("application/json"), b"\"a\"", (Form::Json, json!("a"))),
            (Some("application/json"), b"{\"a\":1,\"a\":2}", (Form::Json, json!({ "a": 2 }))),
            (
                Some(FORM),
                b"a=1&b=2&a=%C3%BC&&c&d=x+y%2B",
                (Form::Fields, json!({ "a": ["1", "ü"], "b": "2", "c": "", "d": "x y+" })),
            ),
            (Some("text/plain; charset=UTF-8"), b"{\"a\":1}", (Form::Json, json!({ "a": 1 }))),
            (Some("text/plain"), b"{\"a\":1", (Form::Text, json!("{\"a\":1"))),
            (Some("text/plain"), b"12", (Form::Text, json!("12"))),
            (Some("text/csv"), b"[1]", (Form::Text, json!("[1]"))),
            (Some(FORM), b"{\"a\":1}", (Form::Json, json!({ "a": 1 }))),
            (Some(FORM), b"{a}=1", (Form::Fields, json!({ "{a}": "1" }))),
            (Some("image/png"), b"\x89\xff", (Form::Binary, json!("if8="))),
            (None, b"", (Form::Text, json!(""))),
        ] {
            assert_eq!(read_body(content_type, body), expected, "{content_type:?}");
        }
        let deep = "[".repeat(5000);
        assert_eq!(read_body(Some("application/json"), deep.as_bytes()).0, Form::Text);
    }

    #[test]
    fn charsets_are_heeded() {
        let utf16: Vec<u8> = "{\"a\":\"ñ\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (content_type, body, expected) in [
            ("application/json; charset=ISO-8859-1", &b"{\"a\":\"Mu\xf1oz\"}"[..], json!({ "a": "Muñoz" })),
            // Servers are set up to say so of everything.
            ("application/json; charset=ISO-8859-1", "{\"a\":\"Muñoz\"}".as_bytes(), json!({ "a": "Muñoz" })),
            ("application/json", b"{\"a\":\"Mu\xf1oz\"}", json!({ "a": "Mu\u{fffd}oz" })),
            ("application/json", b"\xef\xbb\xbf{\"a\":1}", json!({ "a": 1 })),
            ("text/plain", b"\xef\xbb\xbf {\"a\":1}", json!({ "a": 1 })),
            ("application/json; charset=utf-16le", &utf16, json!({ "a": "ñ" })),
            ("application/json", &[b"\xff\xfe", utf16.as_slice()].concat(), json!({ "a": "ñ" })),
            ("text/plain; charset=windows-1252", b"\x80 5", json!("€ 5")),
            (
                "application/x-www-form-urlencoded; charset=windows-1252",
                b"a=Mu%F1oz+%80",
                json!({ "a": "Muñoz €" }),
            ),
            (FORM, b"a=Mu%F1oz&charset=windows-1252", json!({ "a": "Muñoz", "charset": "windows-1252" })),
            (
                FORM,
                b"_charset_=iso-8859-1&a=%F1&charset=x",
                json!({ "_charset_": "iso-8859-1", "a": "ñ", "charset": "x" }),
            ),
            (FORM, b"a=%F1&charset=nonsense", json!({ "a": "\u{fffd}", "charset": "nonsense" })),
            (FORM, b"a=%C3%B1&charset=Shift_JIS", json!({ "a": "ﾃｱ", "charset": "Shift_JIS" })),
            // No part of a form begins with a byte order mark.
            (FORM, b"a=%FF%FEx&charset=latin1", json!({ "a": "ÿþx", "charset": "latin1" })),
        ] {
            let read = read_body(Some(content_type), body).1;
            assert_eq!(read, expected, "{content_type}");
        }
    }

    #[test]
    fn numbers_keep_their_digits_and_halves_of_letters_are_replaced() {
        let read = |body: &str| read_body(Some("application/json"), body.as_bytes());
        assert_eq!(
            read(r#"{"id":12345678901234567890123,"rate":0.1234567890123456789,"n":7}"#),
            (Form::Json, json!({ "id": "12345678901234567890123", "rate": "0.1234567890123456789", "n": 7 }))
        );
        assert_eq!(read(r#"{"name":"Ana \ud83d"}"#), (Form::Json, json!({ "name": "Ana \u{fffd}" })));
    }
}
