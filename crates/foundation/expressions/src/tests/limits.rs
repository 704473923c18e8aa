//! Limits: of the source, of nesting, of steps and of bytes.

use super::{ROOTS, now};
use crate::{Condition, Context, Expression, Failure, Roots, Template, Value};
use serde_json::{Map, Value as Json, json};

const LIST: Roots<'static> = Roots::new(&["list", "text", "pattern"]);

fn evaluated(text: &str, values: &Map<String, Json>) -> Result<Json, Failure> {
    let expression = Expression::parse(text, &LIST).unwrap();
    expression.evaluate(&Context::new(values, now())).and_then(Value::into_json)
}

fn with(list: Vec<Json>, text: String) -> Map<String, Json> {
    json!({ "list": list, "text": text, "pattern": "(a+)+$" }).as_object().unwrap().clone()
}

#[test]
fn the_source_is_limited() {
    let too_complex = |text: &str| {
        let mistake = Expression::parse(text, &ROOTS).expect_err(&text.chars().take(20).collect::<String>());
        assert!(
            matches!(mistake.code, "expression_too_complex" | "invalid_expression"),
            "{}",
            mistake.message
        );
    };
    for open in ["(", "-", "!", "not ", "upper(", "-(", "if(true,"] {
        too_complex(&open.repeat(500.min(1_900 / open.len())));
    }
    too_complex(&("(".repeat(500) + "1" + &")".repeat(500)));
    too_complex(&("a".to_owned() + &"|upper".repeat(300)));
    too_complex(&"1+".repeat(900));
    assert_eq!(Expression::parse(&"1".repeat(2_001), &ROOTS).unwrap_err().code, "expression_too_long");
    for text in ["{{".repeat(20_000), "{{ \"".repeat(10_000), "\\{{".repeat(10_000), "{".repeat(60_000)] {
        let _ = Template::parse(&text, &ROOTS);
    }
    // As deep and as wide as it may be, and evaluated.
    let wide = "1+".repeat(498) + "1";
    assert_eq!(evaluated(&wide, &Map::new()), Ok(json!(499)));
    let deep = "(".repeat(38) + "1" + &")".repeat(38);
    assert_eq!(evaluated(&deep, &Map::new()), Ok(json!(1)));
}

#[test]
fn steps_and_bytes_are_limited() {
    let values = with(vec![json!(1); 60_000], "x".repeat(60_000));
    assert_eq!(evaluated("sum(list)", &values), Ok(json!(60_000)));
    for (text, failure) in [
        ("sum(list) + sum(list)", Failure::TooManySteps),
        ("sort(list)", Failure::TooManySteps),
        ("join(list, text)", Failure::TooLarge),
        ("text & text", Failure::TooLarge),
        ("concat(text, text)", Failure::TooLarge),
        ("replace(text, 'x', 'xx')", Failure::TooLarge),
        ("text(list)", Failure::TooLarge),
        ("json(list)", Failure::TooLarge),
        ("base64(text)", Failure::TooLarge),
        // An error that is caught does not undo what was spent.
        ("coalesce(sum(list), 1) + coalesce(sum(list), 1)", Failure::TooManySteps),
        ("default(text & text, 1)", Failure::TooLarge),
    ] {
        assert_eq!(evaluated(text, &values), Err(failure), "{text}");
    }
    let different = with((0..60_000).map(Json::from).collect(), String::new());
    assert_eq!(evaluated("uniq(list)", &different), Err(Failure::TooManySteps));
    let template = Template::parse("{{ text }}{{ text }}", &LIST).unwrap();
    assert_eq!(template.text(&Context::new(&values, now())), Err(Failure::TooLarge));
}

#[test]
fn regular_expressions_take_linear_time() {
    let values = with(Vec::new(), "a".repeat(60_000) + "!");
    assert_eq!(evaluated("matches(text, '(a+)+$')", &values), Ok(json!(false)));
    assert_eq!(evaluated("matches(text, pattern)", &values), Ok(json!(false)));
    let condition = json!({ "left": "{{ text }}", "op": "like", "right": "%a%a%a%a%a%b" });
    let condition = Condition::parse(&condition, &LIST).unwrap();
    assert!(!matches!(condition.holds(&Context::new(&values, now())), Ok(true)));
}

#[test]
fn the_time_is_an_argument() {
    let expression = Expression::parse("now()", &LIST).unwrap();
    let nothing = Map::new();
    let first = expression.evaluate(&Context::new(&nothing, now())).unwrap();
    assert_eq!(expression.evaluate(&Context::new(&nothing, now())).unwrap(), first);
    let later = expression.evaluate(&Context::new(&nothing, now().plus_seconds(1))).unwrap();
    assert_ne!(later, first);
}
