//! Numbers in JSON. A number that parsing would change is refused before it is parsed.
//!
//! Parsed JSON holds numbers as 64-bit integers or floats. Both preserve any decimal number of up to 15 significant
//! digits. A longer number may become a different float, and that cannot be detected afterwards.

mod foreign;

pub use foreign::lossless;

use model::FieldError;
use serde_json::Number;
use std::ops::Range;

/// The parser's limit for nesting.
const DEEPEST: usize = 128;

/// A position of the scanner within a document.
enum Place {
    /// In an object, at the field with the quoted name in this range.
    Field(Range<usize>),
    /// In an array, at this element.
    Element(usize),
}

/// Returns an error for the first number that parsing would change. Its path begins with `root`, and is `body` if
/// both are empty. Text that is not JSON is left to the parser.
pub fn lossy(json: &[u8], root: &str) -> Option<FieldError> {
    let mut places: Vec<Place> = Vec::new();
    let mut text = 0..0;
    let mut at = 0;
    while let Some(&byte) = json.get(at).filter(|_| places.len() <= DEEPEST) {
        let start = at;
        at += 1;
        match (byte, places.last_mut()) {
            (b'"', _) => {
                at = string_end(json, at);
                text = start..at;
            }
            // The last string before a colon is the name of a field.
            (b':', Some(Place::Field(name))) => *name = text.clone(),
            (b',', Some(Place::Element(element))) => *element += 1,
            (b'{', _) => places.push(Place::Field(0..0)),
            (b'[', _) => places.push(Place::Element(0)),
            (b'}' | b']', _) => drop(places.pop()),
            (b'-' | b'0'..=b'9', _) => {
                let rest = json.get(start..).unwrap_or_default();
                let length = rest.iter().take_while(|byte| is_of_number(**byte)).count();
                at = start + length;
                let literal = rest.get(..length).and_then(|literal| std::str::from_utf8(literal).ok());
                if let Some((code, rule)) = literal.and_then(loss) {
                    return Some(FieldError::new(path(json, &places, root), rule).code(code));
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns what parsing would change about a number, as a code and a rule, or `None` if it preserves the number.
pub fn loss(literal: &str) -> Option<(&'static str, &'static str)> {
    let has_exponent = literal.contains(['e', 'E']);
    let is_short = literal.bytes().filter(u8::is_ascii_digit).count() <= 15 && !has_exponent;
    if is_short || literal.parse::<i64>().is_ok() || literal.parse::<u64>().is_ok() {
        return None;
    }
    let kept: f64 = literal.parse().ok()?;
    let written = significant(literal);
    // Format the float as the service will. Between two equally close decimals other formatters choose the other one.
    let shown = Number::from_f64(kept).map(|number| significant(&number.to_string()));
    match shown.filter(|shown| !shown.0.is_empty() || written.0.is_empty()) {
        Some(shown) => {
            (written != shown).then_some(("too_precise", "must have at most 15 significant digits"))
        }
        None => Some(("out_of_range", "must be a number of a size between 1e-307 and 1.79e308")),
    }
}

/// Returns the digits of a number without zeros at either end, and the power of ten to multiply them by.
fn significant(literal: &str) -> (String, i64) {
    let literal = literal.trim_start_matches('-');
    let (mantissa, exponent) = literal.split_once(['e', 'E']).unwrap_or((literal, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let leading = digits.trim_start_matches('0');
    let bare = leading.trim_end_matches('0');
    if bare.is_empty() {
        return (String::new(), 0);
    }
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    let exponent: i64 = exponent.parse().unwrap_or_default();
    let power = exponent.saturating_sub(length(fraction)).saturating_add(length(leading) - length(bare));
    (bare.to_owned(), power)
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Returns the position after the quote that ends a string, whose content begins at `at`.
fn string_end(json: &[u8], mut at: usize) -> usize {
    while let Some(byte) = json.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    at
}

/// Returns the path of the scanner's position, such as `rows[3].data.price`.
fn path(json: &[u8], places: &[Place], root: &str) -> String {
    let mut path = root.to_owned();
    for place in places {
        match place {
            Place::Element(element) => path.push_str(&format!("[{element}]")),
            Place::Field(name) => {
                let quoted = json.get(name.clone()).unwrap_or_default();
                let name: String = serde_json::from_slice(quoted).unwrap_or_default();
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&name.replace('\0', ""));
            }
        }
    }
    if path.is_empty() { "body".to_owned() } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn refused(json: &str) -> Option<(String, &'static str)> {
        lossy(json.as_bytes(), "").map(|mistake| (mistake.param, mistake.code.unwrap_or_default()))
    }

    #[test]
    fn numbers_that_parsing_would_change_are_found_where_they_stand() {
        for (json, param, code) in [
            (r#"{"a": 0.12345678901234567890}"#, "a", "too_precise"),
            (r#"{"a": 0.10000000000000000001}"#, "a", "too_precise"),
            (r#"{"a": 9007199254740993.0}"#, "a", "too_precise"),
            (r#"{"a": 9007199254740993e0}"#, "a", "too_precise"),
            (r#"{"a": 600000000000000.3}"#, "a", "too_precise"),
            (r#"{"a": 18446744073709551616}"#, "a", "too_precise"),
            (r#"{"a": 1e400}"#, "a", "out_of_range"),
            (r#"{"a": -1E+400}"#, "a", "out_of_range"),
            (r#"{"a": 1e99999999999999999999}"#, "a", "out_of_range"),
            (r#"{"a": 1e-400}"#, "a", "out_of_range"),
            (r#"{"a": 4.94e-324}"#, "a", "too_precise"),
            (
                r#"{"rows": [{}, {"x": 1, "data": {"pri\"ce": [1, 1e999]}}]}"#,
                r#"rows[1].data.pri"ce[1]"#,
                "out_of_range",
            ),
            (r#"[[1], "1e999", [{"a": "]"}, 1e999]]"#, "[2][1]", "out_of_range"),
            ("1e999", "body", "out_of_range"),
        ] {
            assert_eq!(refused(json), Some((param.to_owned(), code)), "{json}");
        }
    }

    #[test]
    fn numbers_that_are_kept_pass() {
        for json in [
            r#"{"a": "0.12345678901234567890", "1e999": 1}"#,
            "0.1",
            "-0",
            "0e999999999999",
            "0.000000000000000000000000000000",
            "100000000000000000000000000000000000000",
            "9223372036854775807",
            "-9223372036854775808",
            "18446744073709551615",
            "0.30000000000000004",
            "1.7976931348623157e308",
            "1.10000000000000000000000",
            "123456789012345e-20",
            "2.50",
        ] {
            assert_eq!(refused(json), None, "{json}");
        }
        // Invalid JSON is left to the parser and never panics.
        for text in ["", "\"", "\"\\", "}]", "{\"a\":", "-", "1e", "--", "{:1e999", "\u{fffd}"] {
            let _ = refused(text);
        }
    }

    proptest::proptest! {
        #[test]
        fn what_passes_is_printed_with_the_same_digits(literal in "-?(0|[1-9][0-9]{0,18})([.][0-9]{1,18})?([eE][+-]?[0-9]{1,3})?") {
            if loss(&literal).is_none() {
                let parsed: Value = serde_json::from_str(&literal).unwrap();
                proptest::prop_assert_eq!(significant(&parsed.to_string()), significant(&literal));
            }
        }
    }
}
