//! How values compare, in expressions and in conditions alike.

use crate::values::equality;
use crate::values::failure::Failure;
use crate::values::number::Number;
use crate::values::text;
use crate::values::times;
use crate::values::value::Value;
use chrono_tz::Tz;
use serde_json::Value as Json;
use std::cmp::Ordering;

/// Whether two values are equal. A text beside a number, a date, a time, or true or false is read as one; what it does not
/// show is not equal. No value equals an empty text or list.
pub fn equal(left: &Value<'_>, right: &Value<'_>, zone: Tz) -> bool {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => text::nfc(left) == text::nfc(right),
        (Value::Missing | Value::Null, other) | (other, Value::Missing | Value::Null) => other.is_empty(),
        (Value::List(left), Value::List(right)) => {
            left.len() == right.len()
                && left.iter().zip(right.iter()).all(|(left, right)| equality::same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, left)| right.get(name).is_some_and(|right| equality::same(left, right)))
        }
        (Value::Text(text), other) | (other, Value::Text(text)) => {
            read_as(text, other, zone).is_some_and(|read| equal(&read, other, zone))
        }
        (Value::Date(day), Value::Time(moment)) | (Value::Time(moment), Value::Date(day)) => {
            times::start(*day, moment.zone) == moment.at
        }
        (left, right) => left == right,
    }
}

/// The order of two values; `None` where one has no value. A text beside a number, a date or a time is read as one.
///
/// # Errors
/// [`Failure::WrongType`] for values that have no order, or not the same.
pub fn order(left: &Value<'_>, right: &Value<'_>, zone: Tz) -> Result<Option<Ordering>, Failure> {
    let wrong = || Failure::WrongType(format!("compares {} with {}", left.word(), right.word()));
    Ok(Some(match (left, right) {
        (Value::Missing | Value::Null, _) | (_, Value::Missing | Value::Null) => return Ok(None),
        (Value::Number(left), Value::Number(right)) => left.order(right),
        (Value::Text(left), Value::Text(right)) => text::order(left, right),
        (Value::Date(left), Value::Date(right)) => left.cmp(right),
        (Value::Time(left), Value::Time(right)) => left.at.cmp(&right.at),
        (Value::Date(day), Value::Time(moment)) => times::start(*day, moment.zone).cmp(&moment.at),
        (Value::Time(moment), Value::Date(day)) => moment.at.cmp(&times::start(*day, moment.zone)),
        (Value::Text(text), other @ (Value::Number(_) | Value::Date(_) | Value::Time(_))) => {
            return order(&read_as(text, other, zone).ok_or_else(wrong)?, other, zone);
        }
        (other @ (Value::Number(_) | Value::Date(_) | Value::Time(_)), Value::Text(text)) => {
            return order(other, &read_as(text, other, zone).ok_or_else(wrong)?, zone);
        }
        _ => return Err(wrong()),
    }))
}

/// As [`order`], where two texts that both show numbers, or dates or times, have the order of these.
///
/// # Errors
/// As [`order`].
pub(crate) fn order_of_shown(
    left: &Value<'_>,
    right: &Value<'_>,
    zone: Tz,
) -> Result<Option<Ordering>, Failure> {
    if let (Value::Text(one), Value::Text(other)) = (left, right) {
        if let Some(pair) = number(one).zip(number(other)) {
            return Ok(Some(pair.0.order(&pair.1)));
        }
        if let Some((one, other)) = times::read(one, zone).zip(times::read(other, zone)) {
            return order(&one, &other, zone);
        }
    }
    order(left, right, zone)
}

/// The text as the type that the other value has.
fn read_as(text: &str, other: &Value<'_>, zone: Tz) -> Option<Value<'static>> {
    match other {
        Value::Number(_) => number(text).map(Value::Number),
        Value::Boolean(_) => boolean(text).map(Value::Boolean),
        Value::Date(_) | Value::Time(_) => times::read(text, zone),
        _ => None,
    }
}

/// The number that a text shows.
pub(crate) fn number(text: &str) -> Option<Number> {
    crate::values::decimal::parse(text.trim())?.ok().map(Number::from)
}

/// The word `true` or `false`.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Whether an element of a list equals a value.
pub(crate) fn is_among(wanted: &Value<'_>, elements: &[Json], zone: Tz) -> bool {
    elements.iter().any(|element| equal(wanted, &Value::of(element), zone))
}
