//! JSON from senders that cannot be asked to correct it: webhooks, tool results, form replies.
//!
//! The parser stores numbers as 64-bit integers or floats, and refuses invalid Unicode. Here a number that would lose
//! digits becomes a string with all of them, an unpaired surrogate becomes U+FFFD, and a byte order mark is skipped
//! (RFC 8259, 8.1 and 8.2). Text that is not JSON is still refused.

use super::{is_of_number, loss};
use serde::de::IgnoredAny;
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Range;

/// The length of an escape such as `\ud83d`.
const ESCAPE: usize = 6;

/// Parses JSON without losing digits of numbers. A number that a 64-bit integer or float cannot represent becomes a
/// string with all its digits, an unpaired surrogate becomes U+FFFD, and a byte order mark (UTF-8 or UTF-16) is
/// skipped.
///
/// # Errors
/// If the text is not JSON, or exceeds the parser's limit for nesting.
pub fn lossless(json: &[u8]) -> serde_json::Result<Value> {
    let json = unmarked(json);
    let changes = changes(&json);
    if changes.is_empty() {
        return serde_json::from_slice(&json);
    }
    let mut changed = Vec::with_capacity(json.len() + 2 * changes.len());
    let mut copied = 0;
    for (place, text) in changes {
        changed.extend_from_slice(json.get(copied..place.start).unwrap_or_default());
        changed.extend_from_slice(text.as_bytes());
        copied = place.end;
    }
    changed.extend_from_slice(json.get(copied..).unwrap_or_default());
    serde_json::from_slice(&changed)
}

/// Returns the text as UTF-8, without a byte order mark.
fn unmarked(json: &[u8]) -> Cow<'_, [u8]> {
    let decoded = |units: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = units.chunks_exact(2).filter_map(|pair| pair.try_into().ok()).map(unit);
        let letters = char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER));
        Cow::Owned(letters.collect::<String>().into_bytes())
    };
    match json {
        [0xef, 0xbb, 0xbf, rest @ ..] => Cow::Borrowed(rest),
        [0xfe, 0xff, rest @ ..] => decoded(rest, u16::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => decoded(rest, u16::from_le_bytes),
        json => Cow::Borrowed(json),
    }
}

/// Returns the ranges that the parser would change or refuse, in order, with their replacements.
fn changes(json: &[u8]) -> Vec<(Range<usize>, String)> {
    let mut changes = Vec::new();
    // The last byte that is not white space. It tells whether a number can be a value here.
    let mut before = None;
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        let start = at;
        match byte {
            b'"' => at = string_end(json, at + 1, &mut changes),
            b'-' | b'0'..=b'9' => {
                let rest = json.get(start..).unwrap_or_default();
                at += rest.iter().take_while(|byte| is_of_number(**byte)).count();
                let literal = json.get(start..at).and_then(|literal| std::str::from_utf8(literal).ok());
                let is_value = matches!(before, None | Some(b'[' | b':' | b','))
                    && json.get(at..).unwrap_or_default().trim_ascii_start().first() != Some(&b':');
                if let Some(literal) = literal.filter(|literal| is_value && loses(literal)) {
                    changes.push((start..at, format!("\"{literal}\"")));
                }
            }
            _ => at += 1,
        }
        if !byte.is_ascii_whitespace() {
            before = Some(byte);
        }
    }
    changes
}

fn loses(literal: &str) -> bool {
    // The parser checks the syntax of ignored numbers, but not their size.
    loss(literal).is_some() && serde_json::from_str::<IgnoredAny>(literal).is_ok()
}

/// Returns the end of the string whose content begins at `at`. Adds a replacement for each unpaired surrogate.
fn string_end(json: &[u8], mut at: usize, changes: &mut Vec<(Range<usize>, String)>) -> usize {
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => match (unit(json, at), unit(json, at + ESCAPE)) {
                (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at += 2 * ESCAPE,
                (Some(0xd800..=0xdfff), _) => {
                    changes.push((at..at + ESCAPE, "\u{fffd}".to_owned()));
                    at += ESCAPE;
                }
                _ => at += 2,
            },
            _ => at += 1,
        }
    }
    at
}

/// Returns the UTF-16 code unit of an escape at `at`.
fn unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    u16::from_str_radix(std::str::from_utf8(digits).ok().filter(|_| is_hex)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_of_a_number_is_lost() {
        for (text, value) in [
            (r#"{"id":12345678901234567890123}"#, json!({ "id": "12345678901234567890123" })),
            ("[18446744073709551615, 18446744073709551616]", json!([u64::MAX, "18446744073709551616"])),
            ("[-9223372036854775808,-9223372036854775809]", json!([i64::MIN, "-9223372036854775809"])),
            ("0.1234567890123456789", json!("0.1234567890123456789")),
            ("[1e400, -1E-400 ,1.0,0.1]", json!(["1e400", "-1E-400", 1.0, 0.1])),
            (
                r#"{"a":"12345678901234567890123","\"1":1}"#,
                json!({ "a": "12345678901234567890123", "\"1": 1 }),
            ),
            (r#" { "a" : 9007199254740993.0 , "b" : 2 } "#, json!({ "a": "9007199254740993.0", "b": 2 })),
        ] {
            assert_eq!(lossless(text.as_bytes()).unwrap(), value, "{text}");
        }
    }

    #[test]
    fn marks_and_halves_of_letters_harm_nothing() {
        let utf16 = |mark: [u8; 2], bytes: fn(u16) -> [u8; 2]| {
            mark.into_iter().chain(r#"{"a":"ñ😀"}"#.encode_utf16().flat_map(bytes)).collect::<Vec<u8>>()
        };
        for (bytes, value) in [
            (b"\xef\xbb\xbf{\"a\":1}".to_vec(), json!({ "a": 1 })),
            (utf16([0xff, 0xfe], u16::to_le_bytes), json!({ "a": "ñ😀" })),
            (utf16([0xfe, 0xff], u16::to_be_bytes), json!({ "a": "ñ😀" })),
            (br#"["Ana \ud83d"]"#.to_vec(), json!(["Ana \u{fffd}"])),
            (
                br#"["\ude00\ud83d\ude00\ud83d\ud83d\uDE00\ud83dx"]"#.to_vec(),
                json!(["\u{fffd}😀\u{fffd}😀\u{fffd}x"]),
            ),
            (br#"{"\ud83d":"\\ud83d \u00f1 \u0000"}"#.to_vec(), json!({ "\u{fffd}": "\\ud83d ñ \0" })),
            (br#"["\ud83d\n\ud83d\u0041"]"#.to_vec(), json!(["\u{fffd}\n\u{fffd}A"])),
        ] {
            assert_eq!(lossless(&bytes).unwrap(), value, "{}", String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn what_is_no_json_stays_so() {
        let deep = "[".repeat(5000);
        for text in [
            "",
            "{",
            "[1,]",
            "{12345678901234567890123:1}",
            r#"{"a":1,12345678901234567890123 : 2}"#,
            "1e999x",
            "[12345678901234567890123 1]",
            "[01234567890123456789012]",
            "[--1e999]",
            r#"["\ud83"]"#,
            r#"["\ud83d"#,
            r#""a"12345678901234567890123"#,
            "{'a':1}",
            "\u{feff}",
            &deep,
        ] {
            assert!(lossless(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_the_parser_keeps_is_read_alike(text in r#"[\[\]{}:,"\\ud8c0-9.e+\- ]{0,24}"#) {
            if let Ok(value) = serde_json::from_str::<Value>(&text) && crate::numbers::lossy(text.as_bytes(), "").is_none() {
                proptest::prop_assert_eq!(lossless(text.as_bytes()).unwrap(), value);
            }
            let _ = lossless(text.as_bytes());
        }

        #[test]
        fn a_number_keeps_its_digits(literal in "-?(0|[1-9][0-9]{0,30})([.][0-9]{1,30})?([eE][+-]?[0-9]{1,3})?") {
            let kept = match lossless(literal.as_bytes()).unwrap() {
                Value::String(text) => text,
                number => number.to_string(),
            };
            proptest::prop_assert_eq!(crate::numbers::significant(&kept), crate::numbers::significant(&literal));
        }
    }
}
