//! When conditions are met.

use super::{Comparison, Condition};
use serde_json::{Value, json};

fn is_met(found: Option<Value>, op: &str, value: Option<Value>) -> bool {
    let op = Comparison::parse(op).unwrap();
    Condition { from: "$".to_owned(), op, value }.holds(found.as_ref())
}

#[test]
fn conditions_are_met_as_they_always_were() {
    for (found, op, value, expected) in [
        (json!(1), "eq", json!(1.0), true),
        (json!("1"), "eq", json!(1), true),
        (json!(" 1.0 "), "eq", json!(1), true),
        (json!("x"), "eq", json!(1), false),
        (json!(1), "eq", json!("1"), false),
        (json!("true"), "eq", json!(true), true),
        (json!(" true"), "eq", json!(true), false),
        (json!("TRUE"), "eq", json!(true), false),
        (json!(true), "eq", json!("true"), false),
        (json!(1), "eq", json!(true), false),
        (json!(""), "in", json!([null, 0, false]), false),
        (json!("0.1"), "eq", json!(0.1), true),
        (json!(9_007_199_254_740_993_i64), "eq", json!(9_007_199_254_740_992_i64), false),
        (json!("9007199254740993"), "eq", json!(9_007_199_254_740_992_i64), false),
        (json!("0.30000000000000004"), "eq", json!(0.3), false),
        (json!("e\u{301}"), "eq", json!("é"), false),
        (json!("2"), "in", json!([1, 2]), true),
        (json!({ "a": 1 }), "eq", json!({ "a": 1.0 }), true),
        (json!([1]), "eq", json!(1), false),
        (json!("10"), "gt", json!(9), true),
        (json!("abc"), "gt", json!(9), false),
        (json!("abc"), "lte", json!(9), false),
        (json!(true), "gt", json!(0), false),
        (json!([5]), "gt", json!(0), false),
        (json!(""), "lt", json!(1), false),
        (json!("1e400"), "gt", json!(1), true),
        (json!("1e500"), "gt", json!(1), false),
        (json!("9007199254740993"), "gt", json!(9_007_199_254_740_992_i64), true),
        (json!(0.3), "gte", json!(0.3), true),
        (json!(["a", 1.0]), "contains", json!(1), true),
        (json!(["1"]), "contains", json!(1), true),
        (json!("abc"), "contains", json!("B"), false),
        (json!("abc"), "contains", json!("b"), true),
        (json!(null), "neq", json!(1), true),
        (json!("1"), "neq", json!(1), false),
    ] {
        assert_eq!(is_met(Some(found.clone()), op, Some(value.clone())), expected, "{found} {op} {value}");
    }
    assert!(is_met(None, "neq", Some(json!(1))) && !is_met(None, "lt", Some(json!(1))));
    assert!(is_met(None, "not_exists", None) && is_met(Some(json!(null)), "not_exists", None));
    assert!(is_met(Some(json!(false)), "exists", None));
}
