//! Values of expressions.

use super::{evaluated, mistake, value};
use crate::{Failure, Value, reference};
use serde_json::json;

#[test]
fn the_examples_of_the_documentation_compute_what_it_says() {
    let mut seen = Vec::new();
    for entry in reference::functions().into_iter().chain(reference::operators()) {
        assert_eq!(value(entry.example).to_string(), entry.example_result, "{}", entry.example);
        assert!(entry.about.ends_with('.'), "{}", entry.about);
        assert!(!seen.contains(&entry.form), "{:?} is there twice", entry.form);
        seen.push(entry.form);
    }
}

#[test]
fn paths_lead_into_json() {
    for (text, expected) in [
        ("$nodes.a.output.items[0].price", json!(12.5)),
        ("$nodes['a'].output.items[-1][\"a b\"]['it\\'s']", json!(1)),
        ("$contact.$name", json!("Ana Souza")),
        ("contact.$name", json!("Ana Souza")),
        ("$vars.shop.phone", json!("+34 600")),
        ("$order.items[1]", json!({ "sku": "B2", "price": 3 })),
        ("$order.items[2].price", json!(null)),
        ("$order.items.price", json!(null)),
        ("$contact.points.x", json!(null)),
        ("$order.paid", json!(false)),
        ("$big", json!(9_007_199_254_740_993_i64)),
        ("first($order.items).price + last($order.items).price", json!(15.5)),
        ("($order.items)[0].sku", json!("A1")),
        ("$order.items | pluck: 'price' | sum", json!(15.5)),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn filters_are_calls_with_the_value_first() {
    for (text, expected) in [
        ("$contact.$name | upper", json!("ANA SOUZA")),
        ("$contact.missing | default: 'there' | upper", json!("THERE")),
        ("$contact.missing | default: ''", json!("")),
        ("$order.paid | default: true", json!(false)),
        ("$nodes.a.output.count | default: 5", json!(0)),
        ("price + 0.2 | round: 1", json!(0.3)),
        ("'a,b' | split: ',' | join: '-'", json!("a-b")),
        ("(name | lower) & '!'", json!("red shoe!")),
        ("'abcdef' | slice: 1, 3", json!("bc")),
        ("'abcdef' | slice: -2", json!("ef")),
        ("'abcdef' | slice: 4, 2", json!("")),
        ("$order.items | slice: 1 | size", json!(1)),
        ("$contact.seen_at | date: '%H:%M', 'Europe/Madrid'", json!("09:00")),
        ("$contact.seen_at | add_time: 1, 'day' | date: '%F'", json!("2026-11-21")),
        (
            "'<a href=\"x\">R&eacute;d</a><br>x <script>1<2</script>&#233;&#x41;&' | strip_html",
            json!("R&eacute;d\nx éA&"),
        ),
        (
            "'# Title\\n> *a* __b__ snake_case `c` ![i](u) [t](u) 2 * 3 \\\\*' | strip_markdown",
            json!("Title\na b snake_case c i t 2 * 3 *"),
        ),
        ("parse_json('{\"n\": 1.10}').n", json!(1.1)),
        ("hash('') | size", json!(64)),
        (
            "sort(parse_json('[3, \"b\", null, 1, \"a\", true, 2.5]'))",
            json!([1, 2.5, 3, "a", "b", true, null]),
        ),
        ("currency(-1234567.005, 'usd')", json!("USD -1,234,567.01")),
        ("currency(1000, 'JPY')", json!("JPY 1,000")),
        ("'abc' | truncate: 2", json!("a…")),
        ("'abc' | truncate: 2, ''", json!("ab")),
        ("match('2026-11', '([0-9]+)-(x)?')", json!(["2026-", "2026", null])),
        ("match('x', '[0-9]')", json!(null)),
        ("now() | date: '%F'", json!("2026-11-21")),
        ("contains($contact.tags, 'vip')", json!(true)),
        // A filter within the arguments of a call needs parentheses.
        ("min(($order.items | pluck: 'price'), 5)", json!(3)),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn missing_null_false_and_errors_are_four_things() {
    assert_eq!(evaluated("$contact.missing", false), Ok(Value::Missing));
    assert_eq!(evaluated("$contact.nothing", false), Ok(Value::Null));
    assert_eq!(evaluated("$order.paid", false), Ok(Value::Boolean(false)));
    assert_eq!(evaluated("1 / 0", false), Err(Failure::DivisionByZero));
    let missing = Err(Failure::Missing("$contact.missing".to_owned()));
    assert_eq!(evaluated("$contact.missing", true), missing);
    assert_eq!(evaluated("upper($contact.missing)", true), missing);
    assert_eq!(evaluated("$contact.nothing", true), Ok(Value::Null));
    for (text, expected) in [
        ("default($contact.missing, 1)", json!(1)),
        ("is_set($contact.missing)", json!(false)),
        ("is_set($contact.nothing)", json!(false)),
        ("is_set($order.paid)", json!(true)),
        ("is_empty($order.paid)", json!(false)),
    ] {
        assert_eq!(evaluated(text, true).unwrap().into_json().unwrap(), expected, "{text}");
    }
}

/// n8n#37786, n8n#3270 and objectstack-ai/objectstack PR#1429: an error became null, and `false` an empty value; an error in a
/// condition counted as `false`.
#[test]
fn report_21_an_error_is_an_error() {
    let failed = |reason: &str| json!({ "failed": reason });
    for (text, expected) in [
        ("if(1 / 0 > 1, 'a', 'b')", failed("division_by_zero")),
        ("not (1 / 0 > 1)", failed("division_by_zero")),
        ("1 / 0 > 1 or false", failed("division_by_zero")),
        ("1 / 0 > 1 or true", json!(true)),
        ("1 / 0 > 1 and false", json!(false)),
        ("1 / 0 > 1 and true", failed("division_by_zero")),
        ("1 / 0 = null", failed("division_by_zero")),
        ("text(1 / 0)", failed("division_by_zero")),
        ("name > 5", failed("wrong_type")),
        ("name + 1", failed("wrong_type")),
        ("if(name, 1, 2)", failed("wrong_type")),
        ("upper($order.items)", failed("wrong_type")),
        ("$order.items > 1", failed("wrong_type")),
        ("matches(name, tags[0] & '(')", failed("invalid_argument")),
        ("format_date(since, '%Q')", failed("invalid_argument")),
        ("format_date(since, '%F', 'Mars/Base')", failed("invalid_argument")),
        ("parse_json('{')", failed("invalid_argument")),
        ("$order.paid = false", json!(true)),
        ("if(stock = 0, null, 1 / stock)", json!(0.142_857_142_857_143)),
        ("if(stock = 7, null, 1 / (stock - 7))", json!(null)),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

/// n8n PR#29957, CVE-2025-68613, CVE-2026-1470, CVE-2026-25049 and CVE-2026-27577: an expression reached the host.
#[test]
fn report_27_there_is_no_host_to_reach() {
    for text in [
        "$contact.constructor",
        "$contact.__proto__.constructor",
        "$contact['constructor']['constructor']",
        "$contact.$name.constructor",
        "($contact | json).constructor",
        "first(split('a', '')).constructor",
    ] {
        assert_eq!(evaluated(text, false), Ok(Value::Missing), "{text}");
    }
    for text in [
        "process.env",
        "$process.env",
        "this",
        "globalThis.process",
        "constructor('return process')",
        "$contact.constructor('return process')",
        "`${1}`",
        "${1 + 1}",
        "(() => 1)()",
        "env('HOME')",
        "new Date()",
        "{{ 1 }}",
        "1; 2",
    ] {
        mistake(text);
    }
}

#[test]
fn numbers_are_exact() {
    for (text, expected) in [
        ("0.1 + 0.2 = 0.3", json!(true)),
        ("$big = 9007199254740992", json!(false)),
        ("$big - 1", json!(9_007_199_254_740_992_i64)),
        ("text($big)", json!("9007199254740993")),
        ("$contact.points + 1", json!(121)),
        ("'12' > 5", json!(true)),
        ("'10' < '9'", json!(true)),
        ("'1e3' = 1000", json!(true)),
        ("'007' = 7", json!(false)),
        ("1 / 3 * 3 = 1", json!(true)),
        ("since < sold_at", json!(true)),
        ("time(since) < time(sold_at)", json!(true)),
        ("sold_at > now()", json!(true)),
        ("'true' = $order.paid", json!(false)),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn what_cannot_be_understood_is_refused_with_the_nearest_name() {
    for (text, hint) in [
        ("$contct.x", "did you mean `$contact`"),
        ("contct", "did you mean `$contact`"),
        ("$x", "cannot be read here"),
        ("roun(1)", "did you mean `round`"),
        ("1 | defualt: 2", "did you mean `default`"),
        ("1 | nothing_like_it", "there is no function"),
        ("1 |", "too early"),
        ("1 | 2", "name of a function"),
        ("1 | round: ", "too early"),
        ("1 | upper: 2, 3", "takes one argument"),
        ("{name}", "means nothing"),
        (".name", "behind a reference"),
        ("$contact.", "no number"),
        ("$contact[x]", "brackets"),
        ("$contact['x", "does not end"),
        ("$order.items[99999999999999999999]", "brackets"),
        ("matches(name, '(')", "regular expression"),
        ("matches(name, '(a{1000}){1000}')", "too large"),
        ("", "too early"),
    ] {
        let message = mistake(text).message;
        assert!(message.contains(hint), "{text}: {message}");
    }
}
