//! JSON values compared by what they say: `1.0`, `1` and `1e0` are one number.

use crate::values::decimal;
use serde_json::{Number, Value};
use std::cmp::Ordering;

/// Compares two numbers by value. No digit is left out, however large they are.
pub fn compare(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => decimal::of(a).cmp(&decimal::of(b)),
    }
}

/// Whether two values are the same, where numbers are compared by value, also inside lists and objects.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

/// Rewrites the numbers of a value so that the same number is always printed alike: a whole number has no fraction.
pub fn normalize(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().filter(|_| number.is_f64()).and_then(whole) {
                *number = whole;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(normalize),
        Value::Object(values) => values.values_mut().for_each(normalize),
        _ => {}
    }
}

/// A float as the 64-bit integer that it is.
fn whole(float: f64) -> Option<Number> {
    // As text, because casts round; one beyond 64 bits does not parse and stays a float.
    let text = format!("{:.0}", if float.fract() == 0.0 { float } else { return None });
    let text = if text == "-0" { "0" } else { &text };
    text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn numbers_are_the_same_by_value() {
        for (a, b, is_same) in [
            ("1", "1.0", true),
            ("1e2", "100", true),
            ("0", "-0.0", true),
            ("9007199254740993", "9007199254740992.0", false),
            ("18446744073709551615", "18446744073709551614", false),
            ("18446744073709551615", "1.8446744073709552e19", false),
            ("10000000000000000000", "1e19", true),
            ("0.1", "0.10", true),
            ("0.3", "0.30000000000000004", false),
            (r#"{"a":[1,{"b":2.0}],"c":3}"#, r#"{"c":3.0,"a":[1.0,{"b":2}]}"#, true),
            ("[1]", "[1,1]", false),
            (r#"{"a":1}"#, r#"{"b":1}"#, false),
            ("1", r#""1""#, false),
            ("1", "true", false),
            ("null", "0", false),
        ] {
            let (a, b) = (parsed(a), parsed(b));
            assert_eq!((same(&a, &b), same(&b, &a)), (is_same, is_same), "{a} {b}");
        }
    }

    #[test]
    fn one_number_is_printed_one_way() {
        for (text, printed) in [
            ("1.0", "1"),
            ("1", "1"),
            ("-0.0", "0"),
            ("1.5", "1.5"),
            ("1e19", "10000000000000000000"),
            ("-2e3", "-2000"),
            (r#"[1.0,{"a":2.0,"b":"3.0"}]"#, r#"[1,{"a":2,"b":"3.0"}]"#),
        ] {
            let mut value = parsed(text);
            normalize(&mut value);
            assert_eq!(value.to_string(), printed);
        }
        let mut large = json!(1e300);
        normalize(&mut large);
        assert_eq!(large, json!(1e300));
    }
}
