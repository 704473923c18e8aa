//! What an expression gives for a record.

use super::Formula;
use super::zone_of;
use crate::definitions::field::Field;
use crate::definitions::set::FieldSet;
use crate::expression::moment::Moment;
use crate::expression::operand::{Figure, Operand};
use crate::expression::parse::{Expr, Operator};
use crate::values::computed_error::ComputedError;
use crate::values::decimal;
use crate::values::kind::Family;
use crate::{checking::value, values::text};
use chrono_tz::Tz;
use serde_json::Value;
use std::cmp::Ordering;

impl Formula {
    /// Its result for a record; `None` where it has no value.
    ///
    /// # Errors
    /// Why it has no answer for these values.
    pub fn value(
        &self,
        fields: &FieldSet,
        read: &dyn Fn(&Field) -> Result<Option<Value>, ComputedError>,
    ) -> Result<Option<Value>, ComputedError> {
        let field = |key: &str| {
            let field = fields.field(key)?;
            Some(match read(field) {
                Ok(value) => Operand::of(fields, field, &value?),
                Err(error) => Operand::Failed(error),
            })
        };
        eval(&self.root, &field).into_json()
    }
}

impl Operand {
    /// A field's stored value.
    fn of(fields: &FieldSet, field: &Field, stored: &Value) -> Self {
        let label = |key: &str| field.options.choice(key).map_or(key, |(_, choice)| &choice.label).to_owned();
        let found = match (field.family(), stored) {
            (Family::Number, Value::Number(number)) => {
                Some(Self::Number(Figure::stored(decimal::of(number), field.kind.is_computed())))
            }
            (Family::Boolean, Value::Bool(value)) => Some(Self::Boolean(*value)),
            (Family::Text | Family::Time, Value::String(text)) => Some(Self::Text(text.clone())),
            (Family::Select, Value::String(key)) => Some(Self::Text(label(key))),
            (Family::Date, Value::String(text)) => value::date(text).map(Self::Date),
            (Family::Datetime, Value::String(text)) => {
                let zone = zone_of(fields, field).unwrap_or(Tz::UTC);
                value::datetime(text, None).map(|at| Self::Moment(Moment::new(at, zone)))
            }
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
}

fn eval(expr: &Expr, field: &dyn Fn(&str) -> Option<Operand>) -> Operand {
    match expr {
        Expr::Literal(operand) => operand.clone(),
        Expr::Field(key) => field(key).unwrap_or(Operand::Nothing),
        Expr::Negate(inner) => match eval(inner, field) {
            Operand::Number(number) => number.negate(),
            other => because(Operand::Nothing, &[other]),
        },
        Expr::Not(inner) => match eval(inner, field) {
            failed @ Operand::Failed(_) => failed,
            other => Operand::Boolean(!other.is_true()),
        },
        Expr::Binary(operator, left, right) => {
            let sides = [eval(left, field), eval(right, field)];
            let [left, right] = &sides;
            let is_logic = matches!(operator, Operator::And | Operator::Or);
            let failed = failed(&sides).filter(|_| !is_logic).cloned();
            failed.unwrap_or_else(|| because(binary(*operator, left, right), &sides))
        }
        Expr::Call(function, arguments) => {
            let arguments: Vec<Operand> = arguments.iter().map(|argument| eval(argument, field)).collect();
            let failed = failed(&arguments).filter(|_| !FORGIVING.contains(&function.name)).cloned();
            failed.unwrap_or_else(|| because((function.run)(&arguments), &arguments))
        }
    }
}

/// The functions that have a result though an argument has no answer.
const FORGIVING: [&str; 5] = ["if", "coalesce", "is_empty", "and", "or"];

fn failed(operands: &[Operand]) -> Option<&Operand> {
    operands.iter().find(|operand| matches!(operand, Operand::Failed(_)))
}

/// A result; where there is none because there was none of an operand, with the operand's reason.
fn because(result: Operand, operands: &[Operand]) -> Operand {
    match (result, failed(operands)) {
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
        (Operand::Text(left), Operand::Text(right)) => Some(text::order(left, right)),
        (Operand::Date(left), Operand::Date(right)) => Some(left.cmp(right)),
        (Operand::Moment(left), Operand::Moment(right)) => Some(left.at.cmp(&right.at)),
        _ => None,
    }
}
