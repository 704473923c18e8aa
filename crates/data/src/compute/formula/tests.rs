//! What formulas give, and what is refused.

use super::Formula;
use crate::shape::sample::{choices, shape};
use crate::shape::{FieldOptions, FieldType, Shape};
use proptest::prelude::*;
use serde_json::{Value, json};

fn product() -> Shape {
    let plain = FieldOptions::default;
    shape(vec![
        ("name", FieldType::Text, plain()),
        ("price", FieldType::Number, plain()),
        ("stock", FieldType::Integer, plain()),
        ("active", FieldType::Boolean, plain()),
        ("size", FieldType::Select, choices(&["small", "large"])),
        ("tags", FieldType::MultiSelect, choices(&["new", "sale"])),
        ("since", FieldType::Date, plain()),
        ("sold_at", FieldType::Datetime, plain()),
        ("extra", FieldType::Json, plain()),
        ("and", FieldType::Number, plain()),
    ])
}

fn data() -> Value {
    json!({
        "name": "Red Shoe", "price": 0.1, "stock": 7, "active": true, "size": "large", "tags": ["new", "sale"],
        "since": "2024-02-29", "sold_at": "2026-11-21T23:30:00.000Z", "and": 5,
    })
}

fn value(text: &str) -> Value {
    let (shape, data) = (product(), data());
    let formula = Formula::parse(text).unwrap_or_else(|problem| panic!("{text}: {}", problem.message));
    formula.result_type(&shape).unwrap_or_else(|problem| panic!("{text}: {}", problem.message));
    formula.value(&shape, &|field| data.get(&field.key).cloned()).unwrap_or(Value::Null)
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
        ("stock / 0", json!(null)),
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
        ("sqrt(-1)", json!(null)),
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
    let shape = shape(vec![
        ("total", FieldType::Formula, formula("net + net * 0.2")),
        ("net", FieldType::Formula, formula("price * 2")),
        ("price", FieldType::Number, FieldOptions::default()),
    ]);
    let mut data = json!({ "price": 10, "total": 1 }).as_object().unwrap().clone();
    crate::compute::formulas(&shape, &mut data);
    assert_eq!(Value::from(data), json!({ "price": 10, "net": 20, "total": 24 }));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z0-9(){}+*/<>=!&|,.'\" -]{0,60}") {
        if let Ok(formula) = Formula::parse(&text) {
            let shape = product();
            let _ = formula.result_type(&shape);
            let _ = formula.value(&shape, &|_| None);
        }
    }

    #[test]
    fn arithmetic_agrees_with_the_machine(a in -1000i32..1000, b in -1000i32..1000, c in 1i32..1000) {
        let text = format!("({a} + {b}) * {c} - {a} / {c}");
        let exact = (f64::from(a) + f64::from(b)) * f64::from(c) - f64::from(a) / f64::from(c);
        let found = value(&text).as_f64().unwrap();
        prop_assert!((found - exact).abs() <= exact.abs() * 1e-12 + 1e-12, "{} {}", found, exact);
    }
}
