//! Checks of JSON texts on their way in and out: size, depth, and numbers that a program can hold.

use crate::call::BadValue;
use serde_json::value::RawValue;

/// Checks a value that is given to a program.
///
/// A program's numbers are doubles. A number whose digits a double does not hold is refused, so that none is ever changed.
pub(crate) fn check(text: &str, limit: usize, depth: usize) -> Result<(), BadValue> {
    if text.len() > limit {
        return Err(BadValue::TooLarge(limit));
    }
    if levels(text) > depth {
        return Err(BadValue::TooDeep(depth));
    }
    if serde_json::from_str::<&RawValue>(text).is_err() {
        return Err(BadValue::NotJson);
    }
    match numbers(text).find(|number| !is_exact(number)) {
        Some(number) => Err(BadValue::Number(number.chars().take(40).collect())),
        None => Ok(()),
    }
}

/// The most brackets that are open at a time outside of strings, in any text.
pub(crate) fn levels(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    outside_strings(text, |byte, _| match byte {
        b'[' | b'{' => {
            open += 1;
            most = most.max(open);
        }
        b']' | b'}' => open = open.saturating_sub(1),
        _ => {}
    });
    most
}

/// Calls `each` with the bytes that are in no string, and their places.
fn outside_strings(text: &str, mut each: impl FnMut(u8, usize)) {
    let (mut inside, mut escaped) = (false, false);
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            _ if inside => {}
            _ => each(byte, place),
        }
    }
}

/// The numbers of a JSON text.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    outside_strings(text, |byte, place| {
        let goes_on = found.last().is_some_and(|(_, end)| *end == place);
        match (byte, found.last_mut()) {
            (b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E', Some(last)) if goes_on => last.1 = place + 1,
            (b'0'..=b'9' | b'-', _) => found.push((place, place + 1)),
            _ => {}
        }
    });
    found.into_iter().filter_map(|(start, end)| text.get(start..end))
}

/// Whether a double gives the same digits back.
fn is_exact(number: &str) -> bool {
    let Ok(double) = number.parse::<f64>() else { return false };
    double.is_finite() && (digits(number) == digits(&format!("{double:e}")) || exact_integer(number, double))
}

/// Whether an integer is one that a double holds, although a shorter text means the same double (2^60, for example).
fn exact_integer(number: &str, double: f64) -> bool {
    // `{}` of a double writes all its digits out.
    number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') && number == format!("{double:.0}")
}

/// The significant digits of a number and the power of ten of the last of them.
fn digits(number: &str) -> (String, i64) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let mantissa = mantissa.trim_start_matches('-');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let kept = all.trim_end_matches('0');
    let significant = kept.trim_start_matches('0').to_owned();
    if significant.is_empty() {
        return (significant, 0);
    }
    let exponent: i64 = exponent.trim_start_matches('+').parse().unwrap_or(i64::MAX / 4);
    let cut = i64::try_from(all.len().saturating_sub(kept.len())).unwrap_or(0);
    let after_point = i64::try_from(fraction.len()).unwrap_or(0);
    (significant, exponent.saturating_add(cut).saturating_sub(after_point))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_or_refused() {
        for exact in [
            "0",
            "-0",
            "1",
            "0.1",
            "-12.50",
            "1e3",
            "1E+3",
            "9007199254740992",
            "9007199254740994",
            "1152921504606846976",
            "5.0",
            "1e22",
            "123456789.123456",
            "5e-324",
            "0e999999999999999999999",
            "0.30000000000000004",
        ] {
            assert_eq!(check(exact, 100, 5), Ok(()), "{exact}");
        }
        for lossy in [
            "9007199254740993",
            "-9007199254740993",
            "1e400",
            "0.1000000000000000055",
            "12345678901234567890",
        ] {
            assert_eq!(check(lossy, 100, 5), Err(BadValue::Number(lossy.to_owned())), "{lossy}");
        }
        let inside = r#"{"a":["9007199254740993",{"1e999":[2,9007199254740993]}]}"#;
        assert_eq!(check(inside, 100, 5), Err(BadValue::Number("9007199254740993".to_owned())));
    }

    #[test]
    fn size_depth_and_form_are_checked() {
        assert_eq!(check("[1]", 2, 5), Err(BadValue::TooLarge(2)));
        assert_eq!(check("[[1]]", 9, 1), Err(BadValue::TooDeep(1)));
        assert_eq!(check(&"[".repeat(100_000), 200_000, 100), Err(BadValue::TooDeep(100)));
        for bad in ["", "{", "nul", "[1,]", "01", "1 2", "'a'", "\"\\x\"", "NaN"] {
            assert_eq!(check(bad, 100, 5), Err(BadValue::NotJson), "{bad}");
        }
        assert_eq!(check(r#"["[[[[[[\"[["]"#, 100, 1), Ok(()));
    }
}
