//! Finds the values of secrets in what a call sends out of the service or leaves behind: output, logs, errors, history, and what
//! hosts answer. A value is found as it is, in JSON strings, encoded for URLs and forms, in hex, and in base64, also where it is a
//! part of what was encoded.
//!
//! A secret of one to three bytes is found only where it stands alone, between characters that are neither letters nor digits:
//! everywhere else it would mangle texts that have nothing to do with it, and say by the holes where it is.

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::collections::BTreeSet;
use std::ops::Range;

/// What stands in the place of a secret.
pub(crate) const HOLE: &str = "[secret]";
/// The shortest secret that is found within words, in bytes.
const SHORTEST: usize = 4;
/// The fewest characters of base64 by which a part of what was encoded is found.
const SHORTEST_PART: usize = 6;
/// What `encodeURIComponent` leaves as it is.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// Finds values of secrets.
pub(super) struct Mask {
    /// Forms that are found anywhere.
    anywhere: Option<AhoCorasick>,
    /// Forms that are found only where they stand alone.
    alone: Option<AhoCorasick>,
    /// Whether the forms are too many to be looked for. Then everything is masked.
    is_blind: bool,
}

impl Mask {
    /// A mask of these values. Placeholders are masked too: they mean nothing outside of the call.
    pub(super) fn new<'a>(
        values: impl Iterator<Item = &'a str>,
        placeholders: impl Iterator<Item = &'a str>,
    ) -> Self {
        let (mut anywhere, mut alone) = (BTreeSet::new(), BTreeSet::new());
        for value in values {
            let forms = forms(value);
            if value.len() < SHORTEST {
                alone.extend(forms);
            } else {
                anywhere.extend(parts_in_base64(value));
                anywhere.extend(forms);
            }
        }
        anywhere.extend(placeholders.map(str::to_owned));
        match (automaton(&anywhere), automaton(&alone)) {
            (Ok(anywhere), Ok(alone)) => Self { anywhere, alone, is_blind: false },
            _ => Self { anywhere: None, alone: None, is_blind: true },
        }
    }

    /// The places of secrets in `bytes`, in their order and apart from each other.
    fn places(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        if self.is_blind && !bytes.is_empty() {
            return std::iter::once(0..bytes.len()).collect();
        }
        let found = |automaton: &Option<AhoCorasick>| -> Vec<Range<usize>> {
            let automaton = automaton.as_ref();
            automaton
                .map(|one| one.find_overlapping_iter(bytes).map(|found| found.range()).collect())
                .unwrap_or_default()
        };
        let mut places = found(&self.anywhere);
        places.extend(found(&self.alone).into_iter().filter(|place| stands_alone(bytes, place)));
        places.sort_by_key(|place| (place.start, place.end));
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(places.len());
        for place in places {
            match merged.last_mut() {
                // Of two secrets that overlap, nothing is left.
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                _ => merged.push(place),
            }
        }
        merged
    }

    /// The bytes without secrets; `None` where there are none.
    pub(super) fn bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let places = self.places(bytes);
        if places.is_empty() {
            return None;
        }
        let (mut masked, mut from) = (Vec::with_capacity(bytes.len()), 0);
        for place in places {
            masked.extend(bytes.get(from..place.start).unwrap_or_default());
            masked.extend(HOLE.as_bytes());
            from = place.end;
        }
        masked.extend(bytes.get(from..).unwrap_or_default());
        Some(masked)
    }

    /// The text without secrets.
    pub(super) fn text(&self, text: &str) -> String {
        match self.bytes(text.as_bytes()) {
            None => text.to_owned(),
            Some(masked) => String::from_utf8_lossy(&masked).into_owned(),
        }
    }

    /// The JSON text without secrets: a string loses the secrets in it, and a number that shows one becomes a string. All else
    /// stays as it is, byte by byte.
    pub(super) fn json(&self, text: &str) -> String {
        if self.is_blind {
            return format!("\"{HOLE}\"");
        }
        if self.anywhere.is_none() && self.alone.is_none() {
            return text.to_owned();
        }
        let (mut masked, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(start) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
            let (before, token) = rest.split_at(start);
            masked.push_str(before);
            let length = token_length(token);
            let (token, after) = token.split_at_checked(length).unwrap_or((token, ""));
            masked.push_str(&self.token(token));
            rest = after;
        }
        masked.push_str(rest);
        masked
    }

    /// A string or a number of a JSON text.
    fn token(&self, token: &str) -> String {
        let Ok(plain) = serde_json::from_str::<String>(token) else {
            // A number, or a string with half of a surrogate pair.
            let shows = self.bytes(token.as_bytes()).is_some();
            return if shows { format!("\"{HOLE}\"") } else { token.to_owned() };
        };
        match self.bytes(plain.as_bytes()) {
            None => token.to_owned(),
            Some(masked) => format!("\"{}\"", in_json(&String::from_utf8_lossy(&masked))),
        }
    }
}

/// The length of the string or number that a text begins with.
fn token_length(text: &str) -> usize {
    if !text.starts_with('"') {
        let is_number = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
        return text.find(|c| !is_number(c)).unwrap_or(text.len());
    }
    let mut escaped = false;
    for (place, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

/// A text as it is inside a JSON string.
pub(super) fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// Returns whether what stands at a place is neither preceded nor followed by a letter or a digit.
fn stands_alone(bytes: &[u8], place: &Range<usize>) -> bool {
    // Bytes of other letters than those of ASCII count as letters.
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80);
    let value = bytes.get(place.clone()).unwrap_or_default();
    if !value.iter().any(|byte| is_word(Some(byte))) {
        // A secret of punctuation alone would be found between any two words.
        return value.len() == bytes.len();
    }
    let before = place.start.checked_sub(1).and_then(|before| bytes.get(before));
    !is_word(before) && !is_word(bytes.get(place.end))
}

/// The forms in which a value is found as a whole.
fn forms(value: &str) -> Vec<String> {
    let bytes = value.as_bytes();
    let component = utf8_percent_encode(value, COMPONENT).to_string();
    let strict = utf8_percent_encode(value, NON_ALPHANUMERIC).to_string();
    let hex = model::hex(bytes);
    vec![
        value.to_owned(),
        in_json(value),
        small_hex(&component),
        small_hex(&strict),
        component,
        strict,
        url::form_urlencoded::byte_serialize(bytes).collect(),
        hex.to_uppercase(),
        hex,
        STANDARD.encode(bytes),
        STANDARD_NO_PAD.encode(bytes),
        URL_SAFE.encode(bytes),
        URL_SAFE_NO_PAD.encode(bytes),
    ]
}

/// Percent-encoding with small letters.
fn small_hex(encoded: &str) -> String {
    let mut small = String::with_capacity(encoded.len());
    let mut left = 0;
    for c in encoded.chars() {
        if c == '%' {
            left = 2;
            small.push(c);
        } else if left > 0 {
            left -= 1;
            small.push(c.to_ascii_lowercase());
        } else {
            small.push(c);
        }
    }
    small
}

/// The characters of base64 that a value determines where it is a part of what was encoded, such as `user:password`: three, by
/// its place among groups of three bytes.
fn parts_in_base64(value: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for before in 0..3_usize {
        let mut bytes = vec![0; before];
        bytes.extend(value.as_bytes());
        let (first, last) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            let encoded = engine.encode(&bytes);
            if let Some(part) = encoded.get(first..last).filter(|part| part.len() >= SHORTEST_PART) {
                parts.push(part.to_owned());
            }
        }
    }
    parts
}

fn automaton(forms: &BTreeSet<String>) -> Result<Option<AhoCorasick>, BuildError> {
    if forms.is_empty() {
        return Ok(None);
    }
    // The kind that is built fastest: most texts of a call are short.
    let kind = Some(AhoCorasickKind::NoncontiguousNFA);
    AhoCorasick::builder().match_kind(MatchKind::Standard).kind(kind).build(forms).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(values: &[&str]) -> Mask {
        Mask::new(values.iter().copied(), std::iter::empty())
    }

    #[test]
    fn a_secret_is_found_in_all_its_forms() {
        let value = "s3cret/Key+é \"x\"";
        let mask = mask(&[value]);
        let component = utf8_percent_encode(value, COMPONENT).to_string();
        let forms = [
            value.to_owned(),
            in_json(value),
            component.to_lowercase().replace("key", "Key"),
            component,
            url::form_urlencoded::byte_serialize(value.as_bytes()).collect(),
            STANDARD.encode(value),
            STANDARD_NO_PAD.encode(value),
            URL_SAFE.encode(value),
            URL_SAFE_NO_PAD.encode(value),
        ];
        for form in forms {
            assert_eq!(mask.text(&format!("<{form}>")), "<[secret]>", "{form}");
        }
        for before in ["u:", "us:", "use:", "user:"] {
            let masked = mask.text(&STANDARD.encode(format!("{before}{value}tail")));
            assert!(masked.contains(HOLE) && masked.len() < 24, "{masked}");
        }
        assert_eq!(mask.text("nothing here"), "nothing here");
    }

    #[test]
    fn secrets_that_overlap_leave_nothing() {
        assert_eq!(mask(&["abcdef", "defghi"]).text("-abcdefghi-"), "-[secret]-");
        assert_eq!(mask(&["abcd", "abcdefgh"]).text("abcdefgh abcd"), "[secret] [secret]");
        assert_eq!(mask(&["aaaa"]).text("aaaaaaa"), "[secret]");
    }

    #[test]
    fn short_secrets_are_found_where_they_stand_alone() {
        let mask = mask(&["42", "ab", "&"]);
        assert_eq!(mask.text("42 + 142, ab:abc,_ab_ é42"), "[secret] + 142, [secret]:abc,_[secret]_ é42");
        assert_eq!(mask.text("a & b"), "a & b");
        assert_eq!(mask.text("&"), HOLE);
        assert_eq!(mask.text(&format!("key={}", STANDARD.encode("ab"))), "key=[secret]");
        assert_eq!(mask.json(r#"{"a":42,"b":420,"c":"42"}"#), r#"{"a":"[secret]","b":420,"c":"[secret]"}"#);
    }

    #[test]
    fn json_stays_json() {
        let mask = mask(&["12345", "n\"quo\\te", "true"]);
        for (text, masked) in [
            (r#"{"n": 12345, "m": -1.5e3}"#, r#"{"n": "[secret]", "m": -1.5e3}"#),
            (r#"["x12345y", 9912345.0]"#, r#"["x[secret]y", "[secret]"]"#),
            (r#"{"12345":true}"#, r#"{"[secret]":true}"#),
            (r#"["an\"quo\\te", "\u006e\"quo\\te"]"#, r#"["a[secret]", "[secret]"]"#),
            (r#"["\ud80012345"]"#, r#"["[secret]"]"#),
            (r#"["is true\n"]"#, r#"["is [secret]\n"]"#),
            (r#"  [1.10, 1E400, "é"] "#, r#"  [1.10, 1E400, "é"] "#),
        ] {
            assert_eq!(mask.json(text), masked);
            assert!(serde_json::from_str::<&serde_json::value::RawValue>(masked).is_ok());
        }
        assert_eq!(Mask::new(std::iter::empty(), std::iter::empty()).json("[1]"), "[1]");
    }
}
