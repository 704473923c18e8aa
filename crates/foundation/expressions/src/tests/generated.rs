//! Generated expressions, against an evaluator that is as simple as can be.

use super::{ROOTS, now, scope};
use crate::{Condition, Context, Expression, Template, Value};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

/// An expression of a small language: whole numbers, short texts, booleans and null.
#[derive(Debug, Clone)]
enum Tree {
    Number(i64),
    Text(&'static str),
    Boolean(bool),
    Null,
    Root(&'static str),
    Not(Box<Tree>),
    Negate(Box<Tree>),
    Binary(&'static str, Box<Tree>, Box<Tree>),
    If(Box<Tree>, Box<Tree>, Box<Tree>),
    Default(Box<Tree>, Box<Tree>),
}

#[derive(Debug, Clone, PartialEq)]
enum Plain {
    Number(i128),
    Text(String),
    Boolean(bool),
    Null,
}

type Outcome = Result<Plain, ()>;

/// The values of the roots in the generated expressions.
const VALUES: [(&str, Plain); 3] = [("a", Plain::Number(7)), ("b", Plain::Boolean(true)), ("c", Plain::Null)];

impl Tree {
    /// The source, with parentheses everywhere, or only where they are needed.
    fn source(&self) -> String {
        match self {
            Self::Number(number) if *number < 0 => format!("(-{})", number.unsigned_abs()),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => format!("'{text}'"),
            Self::Boolean(value) => value.to_string(),
            Self::Null => "null".to_owned(),
            Self::Root(name) => format!("${name}"),
            Self::Not(inner) => format!("(not {})", inner.source()),
            Self::Negate(inner) => format!("-({})", inner.source()),
            Self::Binary(operator, left, right) => {
                format!("({} {operator} {})", left.source(), right.source())
            }
            Self::If(condition, yes, no) => {
                format!("if({}, {}, {})", condition.source(), yes.source(), no.source())
            }
            Self::Default(value, other) => format!("({} | default: {})", value.source(), other.source()),
        }
    }

    fn value(&self) -> Outcome {
        Ok(match self {
            Self::Number(number) => Plain::Number((*number).into()),
            Self::Text(text) => Plain::Text((*text).to_owned()),
            Self::Boolean(value) => Plain::Boolean(*value),
            Self::Null => Plain::Null,
            Self::Root(name) => VALUES.iter().find(|(other, _)| other == name).unwrap().1.clone(),
            Self::Not(inner) => Plain::Boolean(!truth(inner.value())?),
            Self::Negate(inner) => {
                number(inner.value()?)?.map_or(Plain::Null, |number| Plain::Number(-number))
            }
            Self::If(condition, yes, no) => {
                if truth(condition.value())? {
                    yes.value()?
                } else {
                    no.value()?
                }
            }
            Self::Default(value, other) => match value.value() {
                Ok(value) if !is_empty(&value) => value,
                _ => other.value()?,
            },
            Self::Binary("and", left, right) => match (truth(left.value()), truth(right.value())) {
                (Ok(false), _) | (_, Ok(false)) => Plain::Boolean(false),
                (Ok(_), Ok(_)) => Plain::Boolean(true),
                _ => return Err(()),
            },
            Self::Binary("or", left, right) => match (truth(left.value()), truth(right.value())) {
                (Ok(true), _) | (_, Ok(true)) => Plain::Boolean(true),
                (Ok(_), Ok(_)) => Plain::Boolean(false),
                _ => return Err(()),
            },
            Self::Binary(operator, left, right) => binary(operator, left.value()?, right.value()?)?,
        })
    }
}

fn binary(operator: &str, left: Plain, right: Plain) -> Outcome {
    let arithmetic = |of: fn(i128, i128) -> i128| {
        Ok(match (number(left.clone())?, number(right.clone())?) {
            (Some(left), Some(right)) => Plain::Number(of(left, right)),
            _ => Plain::Null,
        })
    };
    match operator {
        "+" => arithmetic(|left, right| left + right),
        "-" => arithmetic(|left, right| left - right),
        "*" => arithmetic(|left, right| left * right),
        "&" => Ok(Plain::Text(text(&left) + &text(&right))),
        "=" => Ok(Plain::Boolean(equal(&left, &right))),
        "<>" => Ok(Plain::Boolean(!equal(&left, &right))),
        _ => match (left, right) {
            (Plain::Null, _) | (_, Plain::Null) => Ok(Plain::Boolean(false)),
            (Plain::Number(left), Plain::Number(right)) => Ok(Plain::Boolean(left < right)),
            (Plain::Text(left), Plain::Text(right)) => Ok(Plain::Boolean(left < right)),
            (Plain::Text(text), Plain::Number(right)) => {
                shown(&text).map(|left| Plain::Boolean(left < right)).ok_or(())
            }
            (Plain::Number(left), Plain::Text(text)) => {
                shown(&text).map(|right| Plain::Boolean(left < right)).ok_or(())
            }
            _ => Err(()),
        },
    }
}

/// The whole number that a text shows, in JSON's grammar.
fn shown(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.starts_with('0') && digits.len() > 1 || digits.starts_with('+') {
        None
    } else {
        text.parse().ok()
    }
}

fn equal(left: &Plain, right: &Plain) -> bool {
    match (left, right) {
        (Plain::Null, other) | (other, Plain::Null) => is_empty(other),
        (Plain::Text(text), Plain::Number(number)) | (Plain::Number(number), Plain::Text(text)) => {
            shown(text) == Some(*number)
        }
        (Plain::Text(text), Plain::Boolean(value)) | (Plain::Boolean(value), Plain::Text(text)) => {
            text.parse() == Ok(*value)
        }
        _ => left == right,
    }
}

fn is_empty(value: &Plain) -> bool {
    matches!(value, Plain::Null) || *value == Plain::Text(String::new())
}

fn truth(value: Outcome) -> Result<bool, ()> {
    match value? {
        Plain::Boolean(value) => Ok(value),
        Plain::Null => Ok(false),
        Plain::Text(text) => text.parse().map_err(|_| ()),
        Plain::Number(_) => Err(()),
    }
}

fn number(value: Plain) -> Result<Option<i128>, ()> {
    match value {
        Plain::Number(number) => Ok(Some(number)),
        Plain::Null => Ok(None),
        Plain::Text(text) if text.is_empty() => Ok(None),
        Plain::Text(text) => shown(&text).map(Some).ok_or(()),
        Plain::Boolean(_) => Err(()),
    }
}

fn text(value: &Plain) -> String {
    match value {
        Plain::Number(number) => number.to_string(),
        Plain::Text(text) => text.clone(),
        Plain::Boolean(value) => value.to_string(),
        Plain::Null => String::new(),
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        (-30_i64..30).prop_map(Tree::Number),
        prop::sample::select(vec!["", "a", "b", "12", "true"]).prop_map(Tree::Text),
        any::<bool>().prop_map(Tree::Boolean),
        Just(Tree::Null),
        prop::sample::select(vec!["a", "b", "c"]).prop_map(Tree::Root),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let operators = vec!["+", "-", "*", "&", "=", "<>", "<", "and", "or"];
        let boxed = |tree: Tree| Box::new(tree);
        prop_oneof![
            4 => (prop::sample::select(operators), inner.clone(), inner.clone())
                .prop_map(move |(operator, left, right)| Tree::Binary(operator, boxed(left), boxed(right))),
            1 => inner.clone().prop_map(move |tree| Tree::Not(boxed(tree))),
            1 => inner.clone().prop_map(move |tree| Tree::Negate(boxed(tree))),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(move |(condition, yes, no)| Tree::If(boxed(condition), boxed(yes), boxed(no))),
            1 => (inner.clone(), inner).prop_map(move |(value, other)| Tree::Default(boxed(value), boxed(other))),
        ]
    })
}

/// Pieces of the language in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "$contact", ".$name", ".x", "[0]", "['a']", "[-1", "{{", "}}", "\\{{", "\\", "'", "\"", "|",
        "default", ":", "(", ")", ",", "if", "upper", "1", ".5", "1e9", "-", "+", "not", "and", "==", " ",
        "null", "{", "}", "é", "$", "$$", "sort", "match", "join", "date", "now()", "\u{0}", "%",
    ]);
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

fn exercise(text: &str) {
    let scope = scope();
    let context = Context::new(&scope, now());
    for roots in [ROOTS, ROOTS.bare(), crate::Roots::FIELDS] {
        if let Ok(expression) = Expression::parse(text, &roots) {
            let _ = expression.evaluate(&context).and_then(Value::into_json);
        }
        if let Ok(template) = Template::parse(text, &roots) {
            let _ = template.text(&context);
        }
    }
    for condition in [json!(text), json!({ "left": text, "op": "matches", "right": text })] {
        if let Ok(condition) = Condition::parse(&condition, &ROOTS) {
            let _ = condition.holds(&context);
        }
    }
}

proptest! {
    #[test]
    fn generated_expressions_have_the_values_of_a_naive_evaluator(tree in trees()) {
        let source = tree.source();
        let Ok(expression) = Expression::parse(&source, &ROOTS) else {
            prop_assert!(source.len() > 500 || source.matches('(').count() > 12, "{}", source);
            return Ok(());
        };
        let scope = json!({ "a": 7, "b": true, "c": null }).as_object().unwrap().clone();
        let found = expression.evaluate(&Context::new(&scope, now()));
        match tree.value() {
            Ok(expected) => {
                let found = found.unwrap_or_else(|failure| panic!("{source}: {failure}"));
                prop_assert_eq!(found.to_text(), text(&expected), "{}", source);
                prop_assert_eq!(found.is_nothing(), expected == Plain::Null, "{}", source);
                prop_assert_eq!(matches!(found, Value::Number(_)), matches!(expected, Plain::Number(_)), "{}", source);
            }
            Err(()) => prop_assert!(found.is_err(), "{}: {:?}", source, found),
        }
    }

    #[test]
    fn the_printed_form_parses_back(tree in trees()) {
        if let Ok(expression) = Expression::parse(&tree.source(), &ROOTS) {
            let printed = expression.to_string();
            match Expression::parse(&printed, &ROOTS) {
                Ok(again) => prop_assert_eq!(again, expression, "{}", printed),
                Err(mistake) => prop_assert_ne!(mistake.code, "invalid_expression", "{}", printed),
            }
        }
    }

    #[test]
    fn printed_templates_parse_back(text in pieces()) {
        if let Ok(template) = Template::parse(&text, &ROOTS) {
            let printed = template.to_string();
            prop_assert_eq!(Template::parse(&printed, &ROOTS).unwrap(), template, "{}", printed);
        }
    }

    #[test]
    fn pieces_of_the_language_never_panic(text in pieces()) {
        exercise(&text);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_json_is_a_condition_or_refused(text in "\\PC{0,40}", number in any::<f64>()) {
        let _ = Condition::parse(&json!([text, number]), &ROOTS);
        let _ = Condition::parse(&json!({ "left": [text, number], "op": "in", "right": { "a": text } }), &ROOTS);
    }
}

#[test]
fn values_of_the_roots_are_those_of_the_scope() {
    let scope = json!({ "a": 7, "b": true, "c": null });
    for (name, value) in VALUES {
        let expected = match value {
            Plain::Number(_) => json!(7),
            Plain::Boolean(value) => json!(value),
            _ => Json::Null,
        };
        assert_eq!(scope.get(name), Some(&expected));
    }
}
