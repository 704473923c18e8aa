//! What each type takes, and the form in which it is kept.

use super::{Mode, check, same_json};
use crate::definitions::sample::{choices, field};
use crate::{Cardinality, FieldOptions, FieldType};
use proptest::prelude::*;
use serde_json::{Value, json};

fn options() -> FieldOptions {
    FieldOptions::default()
}

/// What is kept, or the word of the refusal.
fn kept(kind: FieldType, options: FieldOptions, value: &Value, mode: Mode) -> Result<Value, &'static str> {
    let field = field(1, "f", kind, options);
    check(&field, value, mode).map(|kept| kept.unwrap_or(Value::Null)).map_err(|problem| problem.code)
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of values")]
fn strict_values_have_the_type_of_their_field() {
    use FieldType as T;
    let limited = FieldOptions { max_length: Some(3), pattern: Some("[a-z]+".into()), ..options() };
    let money = FieldOptions { precision: Some(2), min: Some(0.into()), max: Some(100.into()), ..options() };
    let zoned = FieldOptions { time_zone: Some("Europe/Madrid".into()), ..options() };
    let spanish = FieldOptions { default_country: Some("ES".into()), ..options() };
    let one = FieldOptions { cardinality: Some(Cardinality::One), ..options() };
    let one_item = FieldOptions { max_items: Some(1), ..options() };
    let schema =
        FieldOptions { json_schema: Some(json!({ "type": "object", "required": ["a"] })), ..options() };
    let long = "x".repeat(1001);
    let cases: Vec<(T, FieldOptions, Value, Result<Value, &str>)> = vec![
        (T::Text, options(), json!("a b"), Ok(json!("a b"))),
        (T::Text, options(), json!(""), Ok(json!(""))),
        (T::Text, options(), json!(5), Err("invalid_type")),
        (T::Text, options(), json!(long), Err("too_long")),
        (T::LongText, options(), json!(long), Ok(json!(long))),
        (T::Text, limited.clone(), json!("abcd"), Err("too_long")),
        (T::Text, limited.clone(), json!("ab1"), Err("pattern_mismatch")),
        (T::Text, limited, json!("abc"), Ok(json!("abc"))),
        (T::Email, options(), json!("a@b.co"), Ok(json!("a@b.co"))),
        (T::Email, options(), json!("a@b"), Err("invalid_format")),
        (T::Email, options(), json!("a b@c.de"), Err("invalid_format")),
        (T::Url, options(), json!("https://a.b/c?d"), Ok(json!("https://a.b/c?d"))),
        (T::Url, options(), json!("javascript:alert(1)"), Err("invalid_format")),
        (T::Phone, options(), json!("+34 612 34 56 78"), Ok(json!("+34612345678"))),
        (T::Phone, options(), json!("612 34 56 78"), Err("invalid_format")),
        (T::Phone, spanish, json!("612 34 56 78"), Ok(json!("+34612345678"))),
        (T::Number, options(), json!(1.0), Ok(json!(1))),
        (T::Number, options(), json!(-0.0), Ok(json!(0))),
        (T::Number, options(), json!(0.123_456_789_012_345), Ok(json!(0.123_456_789_012_345))),
        (T::Number, options(), json!(1_234_567_890_123_456_789_i64), Err("too_precise")),
        (T::Number, options(), json!(9_007_199_254_740_992_i64), Ok(json!(9_007_199_254_740_992_i64))),
        (T::Number, options(), json!(9_007_199_254_740_993_i64), Err("too_precise")),
        (T::Number, options(), json!(1e308), Ok(json!(1e308))),
        (T::Number, options(), json!(5e-324), Err("out_of_range")),
        (T::Number, options(), json!("1"), Err("invalid_type")),
        (T::Currency, money.clone(), json!(9.99), Ok(json!(9.99))),
        (T::Currency, money.clone(), json!(9.999), Err("too_precise")),
        (T::Currency, money.clone(), json!(-1), Err("out_of_range")),
        (T::Currency, money, json!(100.01), Err("out_of_range")),
        (T::Rating, options(), json!(5), Ok(json!(5))),
        (T::Rating, options(), json!(6), Err("out_of_range")),
        (T::Rating, options(), json!(1.5), Err("invalid_type")),
        (T::Integer, options(), json!(9_007_199_254_740_992_i64), Ok(json!(9_007_199_254_740_992_i64))),
        (T::Integer, options(), json!(9_007_199_254_740_993_i64), Err("out_of_range")),
        (T::Integer, options(), json!(3.0), Ok(json!(3))),
        (T::Boolean, options(), json!(false), Ok(json!(false))),
        (T::Boolean, options(), json!(0), Err("invalid_type")),
        (T::Date, options(), json!("2024-02-29"), Ok(json!("2024-02-29"))),
        (T::Date, options(), json!("2023-02-29"), Err("invalid_type")),
        (T::Date, options(), json!("2024-2-9"), Err("invalid_type")),
        (T::Datetime, options(), json!("2026-11-21T10:00:00+02:00"), Ok(json!("2026-11-21T08:00:00.000Z"))),
        (T::Datetime, options(), json!("2026-11-21T10:00:00"), Err("invalid_type")),
        (T::Datetime, zoned.clone(), json!("2026-11-21T10:00:00"), Ok(json!("2026-11-21T09:00:00.000Z"))),
        (T::Datetime, zoned, json!("2026-03-29T02:30"), Ok(json!("2026-03-29T01:30:00.000Z"))),
        (T::Time, options(), json!("09:30:00"), Ok(json!("09:30"))),
        (T::Time, options(), json!("09:30:05"), Ok(json!("09:30:05"))),
        (T::Time, options(), json!("24:00"), Err("invalid_type")),
        (T::Select, choices(&["red", "blue"]), json!("red"), Ok(json!("red"))),
        (T::Select, choices(&["red", "blue"]), json!("Red"), Err("unknown_option")),
        (
            T::MultiSelect,
            choices(&["red", "blue"]),
            json!(["blue", "red", "blue"]),
            Ok(json!(["blue", "red"])),
        ),
        (T::MultiSelect, choices(&["red", "blue"]), json!([]), Ok(Value::Null)),
        (T::MultiSelect, choices(&["red", "blue"]), json!("red"), Err("invalid_type")),
        (T::Relation, options(), json!([3, 1, 3]), Ok(json!([3, 1]))),
        (T::Relation, options(), json!([0]), Err("invalid_type")),
        (T::Relation, options(), json!(3), Err("invalid_type")),
        (T::Relation, one.clone(), json!([1, 2]), Err("too_many")),
        (T::Relation, one.clone(), json!(3), Ok(json!([3]))),
        (T::Relation, one.clone(), json!([3]), Ok(json!([3]))),
        (T::Relation, one.clone(), json!(null), Ok(json!(null))),
        (T::Relation, one.clone(), json!([]), Ok(json!(null))),
        (T::Relation, one.clone(), json!(0), Err("invalid_type")),
        (T::Relation, one, json!("3"), Err("invalid_type")),
        (T::Contact, one_item.clone(), json!(3), Ok(json!([3]))),
        (T::Contact, one_item, json!([3, 4]), Err("too_many")),
        (T::Contact, options(), json!(3), Err("invalid_type")),
        (T::Json, options(), json!({ "a": [1] }), Ok(json!({ "a": [1] }))),
        (T::Json, schema, json!({}), Err("schema_mismatch")),
        (T::Json, options(), json!("x".repeat(70_000)), Err("too_long")),
        (T::Formula, options(), json!(1), Err("read_only_field")),
        (T::AutoNumber, options(), json!(1), Err("read_only_field")),
    ];
    for (kind, options, value, expected) in cases {
        assert_eq!(kept(kind, options, &value, Mode::Strict), expected, "{kind:?} {value}");
        assert_eq!(
            kept(kind, FieldOptions::default(), &Value::Null, Mode::Strict).is_ok(),
            !kind.is_read_only()
        );
    }
}

#[test]
fn text_is_converted_on_request() {
    use FieldType as T;
    let cases: Vec<(T, FieldOptions, Value, Result<Value, &str>)> = vec![
        (T::Text, options(), json!(5), Ok(json!("5"))),
        (T::Number, options(), json!(" 12.50 "), Ok(json!(12.5))),
        (T::Number, options(), json!("0.10000000000000000001"), Err("too_precise")),
        (T::Number, options(), json!("1e400"), Err("out_of_range")),
        (T::Integer, options(), json!("5.0"), Ok(json!(5))),
        (T::Integer, options(), json!("9007199254740993.0"), Err("out_of_range")),
        (T::Json, options(), json!("{\"a\":0.10000000000000000001}"), Err("too_precise")),
        (T::Json, options(), json!("1e400 is much"), Ok(json!("1e400 is much"))),
        (T::Number, options(), json!("twelve"), Err("invalid_type")),
        (T::Number, options(), json!(""), Ok(Value::Null)),
        (T::Currency, FieldOptions { precision: Some(2), ..options() }, json!("9.999"), Err("too_precise")),
        (T::Boolean, options(), json!("Yes"), Ok(json!(true))),
        (T::Boolean, options(), json!(0), Ok(json!(false))),
        (T::Date, options(), json!("2026-11-21T10:00:00Z"), Ok(json!("2026-11-21"))),
        (T::Select, choices(&["red"]), json!(" RED "), Ok(json!("red"))),
        (T::MultiSelect, choices(&["red", "blue"]), json!("Blue; red"), Ok(json!(["blue", "red"]))),
        (T::Relation, options(), json!("1, 2"), Ok(json!([1, 2]))),
        (T::Relation, options(), json!(7), Ok(json!([7]))),
        (T::Json, options(), json!("{\"a\":1}"), Ok(json!({ "a": 1 }))),
        (T::Json, options(), json!("plain"), Ok(json!("plain"))),
    ];
    for (kind, options, value, expected) in cases {
        assert_eq!(kept(kind, options, &value, Mode::Typecast), expected, "{kind:?} {value}");
    }
}

proptest! {
    #[test]
    fn what_is_kept_is_kept_again(number in -1e14f64..1e14, text in ".{0,30}", day in 0i64..3_000_000) {
        let number = format!("{number:.3}").parse::<f64>().unwrap();
        if let Ok(first) = kept(FieldType::Number, options(), &json!(number), Mode::Strict) {
            prop_assert_eq!(kept(FieldType::Number, options(), &first, Mode::Strict), Ok(first));
        }
        for mode in [Mode::Strict, Mode::Typecast] {
            for kind in FieldType::ALL {
                if let Ok(first) = kept(kind, choices(&["a"]), &json!(text), mode) {
                    prop_assert_eq!(kept(kind, choices(&["a"]), &first, Mode::Strict), Ok(first), "{:?}", kind);
                }
            }
        }
        let moment = model::Timestamp::from_millis(day * 86_400_000 / 2);
        let kept = kept(FieldType::Datetime, options(), &json!(moment.rfc3339()), Mode::Strict);
        prop_assert_eq!(kept, Ok(json!(moment.rfc3339())));
    }
}

#[test]
fn json_is_the_same_by_worth() {
    assert!(same_json(&json!({ "a": 1, "b": [1.0] }), &json!({ "b": [1], "a": 1.0 })));
    assert!(!same_json(&json!([1, 2]), &json!([2, 1])));
    assert!(!same_json(&json!(1), &json!("1")));
    assert!(!same_json(&json!(9_007_199_254_740_993_i64), &json!({})));
    assert!(!same_json(&json!(9_007_199_254_740_993_i64), &json!(9_007_199_254_740_992_i64)));
}
