//! Conditions.

use super::{ROOTS, now, scope};
use crate::{Condition, Context, Failure};
use serde_json::{Value as Json, json};

fn holds(condition: &Json, strict: bool) -> Result<bool, Failure> {
    let read = Condition::parse(condition, &ROOTS);
    let read = read.unwrap_or_else(|mistake| panic!("{condition}: {} {}", mistake.path, mistake.message));
    let scope = scope();
    let context = Context { strict, ..Context::new(&scope, now()) };
    read.holds(&context)
}

fn compare(left: impl Into<Json>, op: &str, right: impl Into<Json>) -> Json {
    json!({ "left": left.into(), "op": op, "right": right.into() })
}

#[test]
fn comparisons_hold() {
    for (condition, expected) in [
        (compare("$order.id", "eq", 1042), true),
        (compare("$order.id", "eq", "1042"), true),
        (compare("$order.id", "neq", "x"), true),
        (compare("$order.paid", "eq", false), true),
        (compare("$order.missing", "eq", false), false),
        (compare("$order.missing", "neq", 1), true),
        (compare("$contact.points", "gt", 99), true),
        (compare("$contact.points", "gt", "99"), true),
        (compare("$contact.points", "lt", "{{ $vars.limit * 100 }}"), true),
        (compare("$order.missing", "gt", 1), false),
        (compare("$contact.$name", "lt", "b"), true),
        (compare("$contact.seen_at", "before", "2026-11-20T08:00:01Z"), true),
        (compare("$contact.seen_at", "after", "2026-11-20T08:00:00Z"), false),
        (compare("$contact.seen_at", "gte", "2026-11-20T08:00:00Z"), true),
        (compare("$contact.seen_at", "within_days", 2), true),
        (compare("$contact.seen_at", "within_days", 1), false),
        (compare("$contact.$name", "contains", "SOU"), true),
        (compare("$contact.$name", "starts_with", "ana"), true),
        (compare("$contact.$name", "ends_with", "x"), false),
        (compare("$contact.$name", "like", "A%z_"), true),
        (compare("$contact.$name", "like", "a%"), false),
        (compare("$contact.$name", "ilike", "a%souza"), true),
        (compare("100%", "like", "100\\%"), true),
        (compare("$contact.$name", "matches", "^Ana\\b"), true),
        (compare("$contact.tags", "contains", "vip"), true),
        (compare("$contact.tags", "contains", "VIP"), false),
        (compare("$contact.tags", "has_tag", "VIP"), true),
        (compare("$contact.missing", "has_tag", "VIP"), false),
        (compare("$order.id", "in", json!([1, "$order.id"])), true),
        (compare("$order.id", "not_in", json!([1, 2])), true),
        (compare("Order $order.id", "eq", "Order {{ 1000 + 42 }}"), true),
        (json!({ "left": "$contact.nothing", "op": "is_set" }), false),
        (json!({ "left": "$order.paid", "op": "is_set" }), true),
        (json!({ "left": "$order.paid", "op": "is_empty" }), false),
        (json!("$order.id > 1000 and not $order.paid"), true),
        (json!({ "and": [] }), true),
        (json!({ "or": [] }), false),
        (json!({ "or": ["1 = 2", { "not": "1 = 2" }] }), true),
        (json!({ "and": ["1 = 1", { "not": "1 = 1" }] }), false),
    ] {
        assert_eq!(holds(&condition, false), Ok(expected), "{condition}");
    }
}

/// objectstack-ai/objectstack PR#2661 and PR#1429: `true` that was stored as 1 differed from true, and a condition that could
/// not be evaluated counted as `false`.
#[test]
fn report_26_an_error_in_a_condition_is_an_error_with_a_reason() {
    for condition in [
        json!("1 / 0 > 1"),
        json!({ "not": "1 / 0 > 1" }),
        json!({ "or": ["1 / 0 > 1", "1 = 2"] }),
        json!({ "and": ["1 / 0 > 1", "1 = 1"] }),
        compare("$order.id", "gt", "{{ 1 / 0 }}"),
    ] {
        assert_eq!(holds(&condition, false), Err(Failure::DivisionByZero), "{condition}");
    }
    assert_eq!(holds(&json!({ "or": ["1 / 0 > 1", "1 = 1"] }), false), Ok(true));
    for condition in [
        compare("$contact.$name", "gt", 5),
        compare("$order", "matches", "x"),
        compare("$contact.$name", "before", "2026-11-20"),
        compare("$order.id", "has_tag", "x"),
        json!("$contact.$name"),
        json!("$order.id"),
    ] {
        let failure = holds(&condition, false).expect_err(&condition.to_string());
        assert_eq!(failure.code(), "wrong_type", "{condition}");
    }
    assert_eq!(holds(&compare(true, "eq", "$order.paid"), false), Ok(false));
    assert_eq!(holds(&compare("$order.missing", "eq", 1), true).unwrap_err().code(), "missing_value");
}

#[test]
fn mistakes_have_a_path() {
    for (condition, path, hint) in [
        (json!(5), "", "must be"),
        (json!({ "and": {} }), "and", "list"),
        (json!({ "and": ["1 = 1", { "left": "$x.y", "op": "eq" }] }), "and[1].right", "required"),
        (json!({ "not": { "left": 1, "op": "eqq", "right": 1 } }), "not.op", "did you mean `eq`"),
        (json!({ "left": "{{ $contct.x }}", "op": "is_set" }), "left", "did you mean `$contact`"),
        (json!({ "left": 1, "op": "is_set", "right": 1 }), "right", "not allowed"),
        (json!({ "op": "is_set" }), "left", "required"),
        (json!({ "left": 1, "op": "in", "right": [1, "{{"] }), "right[1]", "without"),
        (json!({ "left": 1, "op": "matches", "right": "(" }), "right", "regular expression"),
        (json!({ "left": 1, "op": "eq", "right": 1, "x": 1 }), "x", "not a field"),
        (json!({ "and": [], "or": [] }), "", "must be"),
        (json!({ "or": ["nme = 1"] }), "or[0]", "did you mean `$name`"),
    ] {
        let mistake = Condition::parse(&condition, &ROOTS).expect_err(&condition.to_string());
        assert_eq!(mistake.path, path, "{condition}");
        assert!(mistake.message.contains(hint), "{condition}: {}", mistake.message);
    }
    let mistake = Condition::parse(&json!({ "and": ["x"] }), &ROOTS).unwrap_err().of_param("conditions[2]");
    assert_eq!(mistake.param, "conditions[2].and[0]");
    let mut deep = json!("1 = 1");
    for _ in 0..100 {
        deep = json!({ "not": deep });
    }
    assert_eq!(Condition::parse(&deep, &ROOTS).unwrap_err().code, "expression_too_complex");
    let many = json!({ "and": vec!["1 = 1"; 101] });
    assert_eq!(Condition::parse(&many, &ROOTS).unwrap_err().code, "expression_too_complex");
}
