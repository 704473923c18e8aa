//! What an expression gives for an item.

use super::number::Figure;
use super::parse::{Expr, Operator};
use crate::compute::ComputedError;
use crate::decimal;
use crate::shape::{Family, Field};
use crate::{text, value};
use chrono::NaiveDate;
use model::Timestamp;
use serde_json::Value;
use std::cmp::Ordering;

/// A value within an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// No value.
    Nothing,
    /// No value, because an operation has no answer. Everything takes it for nothing.
    Failed(ComputedError),
    /// A number.
    Number(Figure),
    /// A text, a choice's label, a time of day.
    Text(String),
    /// True or false.
    Boolean(bool),
    /// A day.
    Date(NaiveDate),
    /// A moment.
    Moment(Timestamp),
    /// The elements of a set, as text.
    List(Vec<String>),
}

/// The most characters that a formula's text may have.
const LONGEST: usize = 10_000;

impl Operand {
    /// A field's stored value.
    pub fn of(field: &Field, stored: &Value) -> Self {
        let label = |key: &str| field.options.choice(key).map_or(key, |(_, choice)| &choice.label).to_owned();
        let found = match (field.family(), stored) {
            (Family::Number, Value::Number(number)) => {
                Some(Self::Number(Figure::stored(decimal::of(number), field.kind.is_computed())))
            }
            (Family::Boolean, Value::Bool(value)) => Some(Self::Boolean(*value)),
            (Family::Text | Family::Time, Value::String(text)) => Some(Self::Text(text.clone())),
            (Family::Select, Value::String(key)) => Some(Self::Text(label(key))),
            (Family::Date, Value::String(text)) => value::date(text).map(Self::Date),
            (Family::Datetime, Value::String(text)) => value::datetime(text, None).map(Self::Moment),
            (Family::Choices | Family::Ids | Family::Json, Value::Array(elements)) => {
                let text = |element: &Value| match element {
                    Value::String(key) if field.family() == Family::Choices => label(key),
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                Some(Self::List(elements.iter().map(text).collect()))
            }
            _ => None,
        };
        found.unwrap_or(Self::Nothing)
    }

    /// The stored form; `None` for no value.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(super) fn into_json(self) -> Result<Option<Value>, ComputedError> {
        Ok(match self {
            Self::Nothing | Self::List(_) => None,
            Self::Failed(reason) => return Err(reason),
            Self::Number(number) => Some(number.json()?),
            Self::Text(text) if text.chars().count() > LONGEST => {
                Some(text.chars().take(LONGEST).collect::<String>().into())
            }
            Self::Text(text) => Some(text.into()),
            Self::Boolean(value) => Some(value.into()),
            Self::Date(day) => Some(day.format("%Y-%m-%d").to_string().into()),
            Self::Moment(moment) => Some(moment.rfc3339().into()),
        })
    }

    /// It as people read it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Nothing | Self::Failed(_) => String::new(),
            Self::Number(number) => number.text(),
            Self::Text(text) => text.clone(),
            Self::Boolean(value) => value.to_string(),
            Self::Date(day) => day.format("%Y-%m-%d").to_string(),
            Self::Moment(moment) => moment.rfc3339(),
            Self::List(elements) => elements.join(", "),
        }
    }

    /// Whether it is nothing, or a text or list without content.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Nothing | Self::Failed(_) => true,
            Self::Text(text) => text.is_empty(),
            Self::List(elements) => elements.is_empty(),
            _ => false,
        }
    }

    /// Only `true` is; nothing is not.
    pub(super) fn is_true(&self) -> bool {
        *self == Self::Boolean(true)
    }
}

pub(super) fn eval(expr: &Expr, field: &dyn Fn(&str) -> Option<Operand>) -> Operand {
    match expr {
        Expr::Literal(operand) => operand.clone(),
        Expr::Field(key) => field(key).unwrap_or(Operand::Nothing),
        Expr::Negate(inner) => match eval(inner, field) {
            Operand::Number(number) => number.negate(),
            other => because(Operand::Nothing, &[other]),
        },
        Expr::Not(inner) => Operand::Boolean(!eval(inner, field).is_true()),
        Expr::Binary(operator, left, right) => {
            let sides = [eval(left, field), eval(right, field)];
            let [left, right] = &sides;
            because(binary(*operator, left, right), &sides)
        }
        Expr::Call(function, arguments) => {
            let arguments: Vec<Operand> = arguments.iter().map(|argument| eval(argument, field)).collect();
            because((function.run)(&arguments), &arguments)
        }
    }
}

/// A result; where there is none because there was none of an operand, with the operand's reason.
fn because(result: Operand, operands: &[Operand]) -> Operand {
    let failed = operands.iter().find(|operand| matches!(operand, Operand::Failed(_)));
    match (result, failed) {
        (Operand::Nothing, Some(failed)) => failed.clone(),
        (result, _) => result,
    }
}

fn binary(operator: Operator, left: &Operand, right: &Operand) -> Operand {
    let boolean = Operand::Boolean;
    match operator {
        Operator::Or => boolean(left.is_true() || right.is_true()),
        Operator::And => boolean(left.is_true() && right.is_true()),
        Operator::Equal => boolean(equal(left, right)),
        Operator::Unequal => boolean(!equal(left, right)),
        Operator::Less => boolean(order(left, right) == Some(Ordering::Less)),
        Operator::LessOrEqual => boolean(order(left, right).is_some_and(Ordering::is_le)),
        Operator::Greater => boolean(order(left, right) == Some(Ordering::Greater)),
        Operator::GreaterOrEqual => boolean(order(left, right).is_some_and(Ordering::is_ge)),
        Operator::Concat => Operand::Text(left.text() + &right.text()),
        Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
            match (left, right) {
                (Operand::Number(left), Operand::Number(right)) => arithmetic(operator, left, right),
                _ => Operand::Nothing,
            }
        }
    }
}

fn arithmetic(operator: Operator, left: &Figure, right: &Figure) -> Operand {
    match operator {
        Operator::Add => left.add(right),
        Operator::Subtract => left.subtract(right),
        Operator::Multiply => left.multiply(right),
        Operator::Divide => left.divide(right),
        _ => left.remainder(right),
    }
}

fn equal(left: &Operand, right: &Operand) -> bool {
    match (left, right) {
        (Operand::Text(left), Operand::Text(right)) => text::nfc(left) == text::nfc(right),
        (Operand::Nothing | Operand::Failed(_), other) | (other, Operand::Nothing | Operand::Failed(_)) => {
            other.is_empty()
        }
        _ => left == right,
    }
}

/// Nothing is neither less nor greater than anything.
fn order(left: &Operand, right: &Operand) -> Option<Ordering> {
    match (left, right) {
        (Operand::Number(left), Operand::Number(right)) => Some(left.order(right)),
        (Operand::Text(left), Operand::Text(right)) => {
            Some((text::fold(left), left).cmp(&(text::fold(right), right)))
        }
        (Operand::Date(left), Operand::Date(right)) => Some(left.cmp(right)),
        (Operand::Moment(left), Operand::Moment(right)) => Some(left.cmp(right)),
        _ => None,
    }
}
