//! What formulas give, and what is refused.

use super::Formula;
use crate::ComputedErrors;
use crate::definitions::sample::{choices, fields};
use crate::{FieldOptions, FieldSet, FieldType};
use expressions::reference;
use proptest::prelude::*;
use serde_json::{Value, json};

fn product() -> FieldSet {
    let plain = FieldOptions::default;
    fields(vec![
        ("name", FieldType::Text, plain()),
        ("price", FieldType::Number, plain()),
        ("stock", FieldType::Integer, plain()),
        ("active", FieldType::Boolean, plain()),
        ("size", FieldType::Select, choices(&["small", "large"])),
        ("tags", FieldType::MultiSelect, choices(&["new", "sale"])),
        ("since", FieldType::Date, plain()),
        ("sold_at", FieldType::Datetime, plain()),
        ("seen_at", FieldType::Datetime, in_madrid()),
        ("came_at", FieldType::Datetime, in_madrid()),
        ("extra", FieldType::Json, plain()),
        ("and", FieldType::Number, plain()),
    ])
}

fn in_madrid() -> FieldOptions {
    FieldOptions { time_zone: Some("Europe/Madrid".to_owned()), ..FieldOptions::default() }
}

fn data() -> Value {
    json!({
        "name": "Red Shoe", "price": 0.1, "stock": 7, "active": true, "size": "large", "tags": ["new", "sale"],
        "since": "2024-02-29", "sold_at": "2026-11-21T23:30:00.000Z", "and": 5,
        "seen_at": "2026-11-21T23:30:00.000Z", "came_at": "2026-10-24T01:30:00.000Z",
    })
}

fn value(text: &str) -> Value {
    let (fields, data) = (product(), data());
    let formula = Formula::parse(text).unwrap_or_else(|problem| panic!("{text}: {}", problem.message));
    formula.result_type(&fields).unwrap_or_else(|problem| panic!("{text}: {}", problem.message));
    match formula.value(&fields, &|field| Ok(data.get(&field.key).cloned())) {
        Ok(value) => value.unwrap_or(Value::Null),
        Err(reason) => json!({ "failed": reason }),
    }
}

#[test]
fn the_examples_of_the_documentation_compute_what_it_says() {
    for entry in reference::functions_of_formulas().into_iter().chain(reference::operators()) {
        assert_eq!(value(entry.example).to_string(), entry.example_result, "{}", entry.example);
        let name = |form: &String| form.split('(').next().unwrap().to_owned();
        let is_shown = entry.form.iter().any(|form| entry.example.contains(&name(form)));
        assert!(is_shown, "{} does not show {:?}", entry.example, entry.form);
        assert!(entry.about.ends_with('.'), "{}", entry.about);
    }
}

#[test]
fn times_are_those_of_the_clocks_of_their_field() {
    for (text, expected) in [
        ("day_of(seen_at)", json!("2026-11-22")),
        ("day(seen_at)", json!(22)),
        ("hour(seen_at)", json!(0)),
        ("minute(seen_at)", json!(30)),
        ("weekday(seen_at)", json!(7)),
        ("text(seen_at)", json!("2026-11-22T00:30:00.000+01:00")),
        ("seen_at & \"\"", json!("2026-11-22T00:30:00.000+01:00")),
        ("seen_at = sold_at", json!(true)),
        ("text(sold_at)", json!("2026-11-21T23:30:00.000Z")),
        // The clocks go back on the 25th: 3:30 stays 3:30, and a day is one of the calendar.
        ("date_add(came_at, 2, 'days')", json!("2026-10-26T02:30:00.000Z")),
        ("date_add(came_at, 1, 'week')", json!("2026-10-31T02:30:00.000Z")),
        ("date_add(came_at, 1, 'month')", json!("2026-11-24T02:30:00.000Z")),
        ("date_add(came_at, 48, 'hours')", json!("2026-10-26T01:30:00.000Z")),
        ("date_diff(date_add(came_at, 2, 'days'), came_at, 'days')", json!(2)),
        ("date_diff(date_add(came_at, 2, 'days'), came_at, 'hours')", json!(49)),
        ("date_diff(came_at, date_add(came_at, 2, 'days'), 'days')", json!(-2)),
        ("date_diff(seen_at, date(2026, 11, 22), 'minutes')", json!(30)),
        ("date_diff(date(2026, 11, 23), seen_at, 'days')", json!(0)),
        ("hour(date_add(seen_at, 1, 'hour'))", json!(1)),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn formulas_give_what_spreadsheets_give() {
    for (text, expected) in [
        ("1 + 2 * 3", json!(7)),
        ("(1 + 2) * 3", json!(9)),
        ("-2 * -3 - -1", json!(7)),
        ("7 % 3 & \"x\"", json!("1x")),
        ("price + 0.2", json!(0.3)),
        ("price + 0.2 = 0.3", json!(true)),
        ("price * stock", json!(0.7)),
        ("stock / 0", json!({ "failed": "division_by_zero" })),
        ("coalesce(stock / 0, 1) + 1", json!(2)),
        ("\"is \" & stock / 0", json!({ "failed": "division_by_zero" })),
        ("stock / 0 > 1", json!({ "failed": "division_by_zero" })),
        ("not stock / 0 > 1", json!({ "failed": "division_by_zero" })),
        ("text(stock / 0)", json!({ "failed": "division_by_zero" })),
        ("if(is_empty(stock / 0), \"none\", \"some\")", json!("none")),
        ("active or stock / 0 > 1", json!(true)),
        ("{and} + 1", json!(6)),
        ("name & ' (' & size & ')'", json!("Red Shoe (Large)")),
        ("if(stock > 5 and active, \"many\", \"few\")", json!("many")),
        ("IF(not active, 1)", json!(null)),
        ("not stock = 7", json!(false)),
        ("!active || stock <> 7", json!(false)),
        ("coalesce(null, '', name)", json!("Red Shoe")),
        ("round(2.345, 2)", json!(2.35)),
        ("round(-1234.5, -2)", json!(-1200)),
        ("min(3, stock, price)", json!(0.1)),
        ("sum(price, price, price)", json!(0.3)),
        ("sqrt(-1)", json!({ "failed": "no_real_number" })),
        ("sqrt(3)", json!(1.732_050_807_568_88)),
        ("power(3, 0.5)", json!(1.732_050_807_568_88)),
        ("power(2, 10)", json!(1024)),
        ("number('12.50') + 1", json!(13.5)),
        ("number('many')", json!(null)),
        ("len('añb')", json!(3)),
        ("upper(left(name, 3)) & right(name, 2)", json!("REDoe")),
        ("mid(name, 5, 2)", json!("Sh")),
        ("replace(name, 'Red', 'Blue')", json!("Blue Shoe")),
        ("contains(name, 'sHOE')", json!(true)),
        ("starts_with(name, 'shoe') or ends_with(name, 'SHOE')", json!(true)),
        ("count(tags)", json!(2)),
        ("has(tags, 'Sale')", json!(true)),
        ("join(tags, '/')", json!("New/Sale")),
        ("is_empty(tags)", json!(false)),
        ("year(since) * 100 + month(since)", json!(202_402)),
        ("weekday(since)", json!(4)),
        ("hour(sold_at) * 60 + minute(sold_at)", json!(1410)),
        ("day_of(sold_at)", json!("2026-11-21")),
        ("date(2024, 2, 30)", json!(null)),
        ("date_add(since, 1, 'year')", json!("2025-02-28")),
        ("date_add(since, -1, 'months')", json!("2024-01-29")),
        ("date_add(sold_at, 45, 'minutes')", json!("2026-11-22T00:15:00.000Z")),
        ("date_add(since, 9999, 'years')", json!(null)),
        ("date_diff(sold_at, since, 'days')", json!(996)),
        ("date_diff(since, sold_at, 'years')", json!(-2)),
        ("text(since) & text(active)", json!("2024-02-29true")),
        ("name < 'red shoes'", json!(true)),
        ("size = 'Large'", json!(true)),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

/// n8n#3270 and objectstack-ai/objectstack PR#1429: an error is neither `false` nor no value.
#[test]
fn what_fails_is_not_taken_for_false() {
    let failed = json!({ "failed": "division_by_zero" });
    for (text, expected) in [
        ("if(stock / 0 > 1, \"a\", \"b\")", failed.clone()),
        ("stock / 0 > 1 or not active", failed.clone()),
        ("stock / 0 > 1 and active", failed.clone()),
        ("stock / 0 > 1 and not active", json!(false)),
        ("or(stock / 0 > 1, active)", json!(true)),
        ("not (stock > 5)", json!(false)),
        // Only what is needed is computed.
        ("if(stock = 7, null, 1 / (stock - 7))", json!(null)),
        ("if(stock <> 7, null, 1 / (stock - 7))", failed),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn numbers_keep_their_digits_or_there_is_no_answer() {
    let failed = |reason: &str| json!({ "failed": reason });
    for (text, expected) in [
        ("999999999999999 + 0.01", failed("too_precise")),
        ("1001000000000000 + 0.1", failed("too_precise")),
        ("123456789.12 * 1234567.89", failed("too_precise")),
        ("round(123456789.12 * 1234567.89, 0)", json!(152_415_787_650_053_i64)),
        ("text(123456789.12 * 1234567.89)", json!("152415787650053.3568")),
        ("1e308 + 1e308", failed("out_of_range")),
        ("1e308 * 10 / 10", json!(1e308)),
        ("1e308 + 1 - 1e308", failed("too_precise")),
        ("1e90 + 1 - 1e90", json!(1)),
        ("9007199254740992 + 1", failed("too_precise")),
        ("9007199254740991 + 1", json!(9_007_199_254_740_992_i64)),
        ("sum(1e308 * 10, 0)", failed("out_of_range")),
        ("max(1 / 0, 1)", failed("division_by_zero")),
        ("1 % 0", failed("division_by_zero")),
        ("-1.5 % 1", json!(0.5)),
        ("power(0, -1)", failed("division_by_zero")),
        ("power(10, 400)", failed("out_of_range")),
        ("power(10, 999999999)", failed("out_of_range")),
        ("power(1.05, 10)", json!(1.628_894_626_777_44)),
        ("power(2, -2)", json!(0.25)),
        ("power(-1, 0.5)", failed("no_real_number")),
        ("1 / 3", json!(0.333_333_333_333_333)),
        ("2 / 3", json!(0.666_666_666_666_667)),
        ("1 / 3 * 3", json!(1)),
        ("floor(1 / 3 * 3)", json!(1)),
        ("1 / 3 * 3 = 1 and !(1 / 3 * 3 < 1)", json!(true)),
        ("0.1 * 3 = 0.3", json!(true)),
        ("round(1.005, 2)", json!(1.01)),
        ("round(-2.5)", json!(-3)),
        ("floor(-0.5) + ceil(0.2)", json!(0)),
        ("abs(-0.1) + .5 + 5. + 05", json!(10.6)),
        ("number('0.12345678901234567890')", failed("too_precise")),
        ("number('1e999')", failed("out_of_range")),
        ("left('abc', 1e30)", json!("abc")),
        ("round(1.5, 1e300) + round(1.5, -1e300)", json!(1.5)),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn what_does_not_fit_is_refused_when_it_is_saved() {
    for (text, hint) in [
        ("", "too early"),
        ("1 +", "too early"),
        ("1 2", "operator"),
        ("(1", "`)`"),
        ("'open", "does not end"),
        ("{name", "never closed"),
        ("1..2", "no number"),
        ("1e999", "must be of a size"),
        ("1 + .", "no number"),
        ("nme", "did you mean `name`"),
        ("roun(1)", "did you mean `round`"),
        ("now()", "no function"),
        ("abs()", "one argument"),
        ("round(1, 2, 3)", "1 to 2"),
        ("name + 1", "arithmetic"),
        ("if(stock, 1, 2)", "argument 1"),
        ("if(active, 1, 'a')", "argument 3"),
        ("active > true", "order"),
        ("since = sold_at", "compares"),
        ("tags", "gives a list"),
        ("extra", "JSON of any type"),
        ("null", "never has a value"),
        ("price ? 1", "means nothing"),
    ] {
        let refused = Formula::parse(text).and_then(|formula| formula.result_type(&product()));
        let problem = refused.expect_err(text);
        assert!(problem.message.contains(hint), "{text}: {}", problem.message);
    }
    let deep = "(".repeat(100) + "1" + &")".repeat(100);
    assert_eq!(Formula::parse(&deep).unwrap_err().code, "formula_too_complex");
    assert_eq!(Formula::parse(&"1+".repeat(2000)).unwrap_err().code, "formula_too_long");
}

#[test]
fn formulas_know_what_they_read() {
    let formula = Formula::parse("if(active, {price} * stock, price)").unwrap();
    assert_eq!(formula.fields().into_iter().collect::<Vec<_>>(), ["active", "price", "stock"]);
}

#[test]
fn a_formula_may_read_another_wherever_that_stands() {
    let formula = |text: &str| FieldOptions {
        expression: Some(text.into()),
        result_type: Some(FieldType::Number),
        ..FieldOptions::default()
    };
    let fields = fields(vec![
        ("total", FieldType::Formula, formula("net + net * 0.2")),
        ("net", FieldType::Formula, formula("price * 2")),
        ("price", FieldType::Number, FieldOptions::default()),
    ]);
    let mut data = json!({ "price": 10, "total": 1 }).as_object().unwrap().clone();
    crate::computed::formulas(&fields, &mut data, &mut ComputedErrors::new());
    assert_eq!(Value::from(data), json!({ "price": 10, "net": 20, "total": 24 }));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z0-9(){}+*/<>=!&|,.'\" -]{0,60}") {
        if let Ok(formula) = Formula::parse(&text) {
            let fields = product();
            let _ = formula.result_type(&fields);
            let _ = formula.value(&fields, &|_| Ok(None));
        }
    }

    #[test]
    fn exact_results_are_those_of_big_decimals(
        a in "-?[0-9]{1,12}[.][0-9]{1,4}", b in "-?[0-9]{1,12}[.][0-9]{1,4}", c in "-?[0-9]{1,9}[.][0-9]{1,2}",
    ) {
        use crate::decimal;
        let number = |text: &str| text.parse::<decimal::Decimal>().unwrap();
        let exact = (number(&a) + number(&b)) * number(&c) - number(&b);
        let expected = decimal::kept(&exact).unwrap_or_else(|loss| json!({ "failed": loss.code() }));
        prop_assert_eq!(value(&format!("({a} + {b}) * {c} - {b}")), expected);
    }

    #[test]
    fn arithmetic_agrees_with_the_machine(a in -1000i32..1000, b in -1000i32..1000, c in 1i32..1000) {
        let text = format!("({a} + {b}) * {c} - {a} / {c}");
        let exact = (f64::from(a) + f64::from(b)) * f64::from(c) - f64::from(a) / f64::from(c);
        let found = value(&text).as_f64().unwrap();
        prop_assert!((found - exact).abs() <= exact.abs() * 1e-12 + 1e-12, "{} {}", found, exact);
    }
}
