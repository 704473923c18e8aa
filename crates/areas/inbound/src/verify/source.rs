//! Paths to values of a request: `$.a.b[0]` in the body, `header:NAME`, or `query:NAME`.
//!
//! Paths are the singular queries of RFC 9535: names and places only, so that a path gives one value at most and
//! looking it up costs no more than its length.

use super::request::{Incoming, is_header_name};
use serde_json::Value;
use std::borrow::Cow;

/// A place in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Body(Vec<Segment>),
    Header(String),
    Query(String),
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    Name(String),
    /// Counted from the end where it is negative.
    Place(i64),
}

/// The longest source, in bytes.
const LONGEST: usize = 200;

impl Source {
    /// Reads a source.
    ///
    /// # Errors
    /// What is wrong with it, as a rule for the caller.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        const RULE: &str = "must be a path such as `$.order.items[0].id`, or `header:NAME`, or `query:NAME`";
        if text.len() > LONGEST {
            return Err("must have at most 200 bytes");
        }
        if let Some(name) = text.strip_prefix("header:") {
            return if is_header_name(name) { Ok(Self::Header(name.to_owned())) } else { Err(RULE) };
        }
        if let Some(name) = text.strip_prefix("query:") {
            return if name.is_empty() { Err(RULE) } else { Ok(Self::Query(name.to_owned())) };
        }
        let mut rest = text.strip_prefix('$').ok_or(RULE)?;
        let mut segments = Vec::new();
        while !rest.is_empty() {
            let (segment, tail) = segment(rest).ok_or(RULE)?;
            segments.push(segment);
            rest = tail;
        }
        Ok(Self::Body(segments))
    }

    /// The value there; `body` is the request's body as it was read.
    pub(crate) fn find<'a>(&self, request: &Incoming<'_>, body: &'a Value) -> Option<Cow<'a, Value>> {
        match self {
            Self::Body(segments) => segments.iter().try_fold(body, step).map(Cow::Borrowed),
            Self::Header(name) => {
                request.header_text(name).map(|value| Cow::Owned(value.into_owned().into()))
            }
            Self::Query(name) => request.query_value(name).map(|value| Cow::Owned(value.into_owned().into())),
        }
    }
}

fn step<'a>(value: &'a Value, segment: &Segment) -> Option<&'a Value> {
    match (value, segment) {
        (Value::Object(fields), Segment::Name(name)) => fields.get(name),
        (Value::Array(items), Segment::Place(place)) => {
            let place = usize::try_from(*place).ok().or_else(|| {
                let from_end = usize::try_from(place.unsigned_abs()).ok()?;
                items.len().checked_sub(from_end)
            });
            items.get(place?)
        }
        _ => None,
    }
}

/// The first segment of a path that is not empty, and the rest.
fn segment(text: &str) -> Option<(Segment, &str)> {
    if let Some(rest) = text.strip_prefix('.') {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let mut letters = name.chars();
        let begins = letters.next().is_some_and(|letter| is_name_letter(letter) && !letter.is_ascii_digit());
        return (begins && letters.all(is_name_letter)).then(|| (Segment::Name(name.to_owned()), rest));
    }
    let rest = text.strip_prefix('[')?;
    if let Some(quote @ ('\'' | '"')) = rest.chars().next() {
        let (name, rest) = quoted(rest.get(1..)?, quote)?;
        return Some((Segment::Name(name), rest.strip_prefix(']')?));
    }
    let (number, rest) = rest.split_once(']')?;
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" && number == "0" || !digits.starts_with('0'));
    let place = number.parse().ok().filter(|_| is_number)?;
    Some((Segment::Place(place), rest))
}

fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || !letter.is_ascii()
}

/// A quoted name with its escapes resolved, and what follows the closing quote.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '\\' => name
                .push(letters.next().map(|(_, letter)| letter).filter(|l| matches!(l, '\\' | '\'' | '"'))?),
            letter if letter == quote => return Some((name, text.get(place + letter.len_utf8()..)?)),
            letter => name.push(letter),
        }
    }
    None
}

/// A path of names as text.
pub(crate) fn path_of(names: &[&str]) -> String {
    names.iter().fold("$".to_owned(), |path, name| {
        let mut letters = name.chars();
        let plain = letters.next().is_some_and(|letter| is_name_letter(letter) && !letter.is_ascii_digit())
            && letters.all(is_name_letter);
        if plain {
            format!("{path}.{name}")
        } else {
            format!("{path}['{}']", name.replace('\\', "\\\\").replace('\'', "\\'"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use model::Timestamp;
    use proptest::prelude::*;
    use serde_json::json;
    use std::net::IpAddr;

    fn find(source: &str, body: &Value) -> Option<Value> {
        let headers = [("x-kind".to_owned(), Bytes::from_static(b"push"))];
        let request = Incoming {
            method: "POST",
            url: String::new(),
            query: "page=2&a%20b=3",
            headers: &headers,
            peer: IpAddr::from([127, 0, 0, 1]),
            body: b"",
            now: Timestamp::from_millis(0),
        };
        Source::parse(source).unwrap().find(&request, body).map(Cow::into_owned)
    }

    #[test]
    fn values_are_found() {
        let body = json!({ "a": { "b c": [1, { "d": null }], "it's": 4 }, "ü": 5, "-x": 6 });
        for (source, expected) in [
            ("$", Some(body.clone())),
            ("$.a['b c'][0]", Some(json!(1))),
            ("$.a[\"b c\"][-1].d", Some(json!(null))),
            ("$.a['it\\'s']", Some(json!(4))),
            ("$.ü", Some(json!(5))),
            ("$['-x']", Some(json!(6))),
            ("$.a['b c'][2]", None),
            ("$.a['b c'][-3]", None),
            ("$.a['b c'].d", None),
            ("$.b", None),
            ("header:X-Kind", Some(json!("push"))),
            ("header:X-Other", None),
            ("query:page", Some(json!("2"))),
            ("query:a b", Some(json!("3"))),
            ("query:b", None),
        ] {
            assert_eq!(find(source, &body), expected, "{source}");
        }
    }

    #[test]
    fn what_is_no_source_is_refused() {
        for text in [
            "",
            "a",
            "$.",
            "$..a",
            "$.a.",
            "$.a[",
            "$.a]",
            "$[a]",
            "$['a'",
            "$['a]",
            "$[01]",
            "$[-0]",
            "$[--1]",
            "$[*]",
            "$.*",
            "$[1:2]",
            "$.a b",
            "$.1",
            "$a",
            "header:",
            "header:a b",
            "query:",
            "body:a",
            "$[99999999999999999999]",
        ] {
            assert!(Source::parse(text).is_err(), "{text}");
        }
        assert!(Source::parse(&format!("$.{}", "a".repeat(200))).is_err());
    }

    proptest! {
        #[test]
        fn a_path_of_names_reads_back(names in proptest::collection::vec("\\PC{1,8}", 0..4)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let expected = names.iter().map(|name| Segment::Name((*name).to_owned())).collect();
            prop_assert_eq!(Source::parse(&path_of(&names)), Ok(Source::Body(expected)));
        }

        #[test]
        fn nothing_panics(text in "\\PC{0,40}") {
            let _ = Source::parse(&text);
        }
    }
}
