//! What functions need of an evaluation: its time, its limits, and values of the types that they take.

use super::wanted::Wanted;
use crate::context::Limits;
use crate::values::compare;
use crate::values::failure::Failure;
use crate::values::times;
use crate::values::value::Value;
use chrono_tz::Tz;
use model::Timestamp;
use std::cell::Cell;

/// The time and the limits of an evaluation, with what it has used of them.
pub(crate) struct Environment {
    pub(crate) now: Timestamp,
    pub(crate) zone: Tz,
    limits: Limits,
    steps: Cell<usize>,
}

impl Environment {
    pub(crate) fn new(now: Timestamp, zone: Tz, limits: Limits) -> Self {
        Self { now, zone, limits, steps: Cell::new(0) }
    }

    /// Counts steps.
    pub(crate) fn charge(&self, steps: usize) -> Result<(), Failure> {
        let total = self.steps.get().saturating_add(steps);
        self.steps.set(total);
        if total > self.limits.steps { Err(Failure::TooManySteps) } else { Ok(()) }
    }

    /// Refuses a text of this many bytes if it is too long. Shorter ones count as steps.
    pub(crate) fn expect_short(&self, bytes: usize) -> Result<(), Failure> {
        if bytes > self.limits.bytes {
            return Err(Failure::TooLarge);
        }
        self.charge(bytes / 64)
    }

    /// Appends a value to a text, as long as the text stays short enough.
    pub(crate) fn append(&self, out: &mut String, value: &Value<'_>) -> Result<(), Failure> {
        let begins = out.len();
        match value {
            Value::Object(members) => self.append_json(out, &**members)?,
            Value::List(elements) if elements.iter().any(|one| one.is_object() || one.is_array()) => {
                self.append_json(out, &**elements)?;
            }
            Value::List(elements) => {
                for (place, element) in elements.iter().enumerate() {
                    out.push_str(if place > 0 { ", " } else { "" });
                    out.push_str(&Value::of(element).to_text());
                    self.expect_room(out)?;
                }
            }
            plain => out.push_str(&plain.to_text()),
        }
        self.expect_room(out)?;
        self.charge((out.len() - begins) / 64)
    }

    /// Appends JSON to a text.
    pub(crate) fn append_json(
        &self,
        out: &mut String,
        json: &(impl serde::Serialize + ?Sized),
    ) -> Result<(), Failure> {
        let mut bounded = Bounded { bytes: Vec::new(), most: self.limits.bytes };
        serde_json::to_writer(&mut bounded, json).map_err(|_| Failure::TooLarge)?;
        out.push_str(&String::from_utf8(bounded.bytes).map_err(|_| Failure::TooLarge)?);
        Ok(())
    }

    fn expect_room(&self, text: &str) -> Result<(), Failure> {
        if text.len() > self.limits.bytes { Err(Failure::TooLarge) } else { Ok(()) }
    }

    /// A value as the type that is wanted: texts that show one are read, and plain values are texts. No value stays none.
    pub(crate) fn fitted<'v>(&self, value: Value<'v>, wanted: Wanted) -> Result<Value<'v>, Failure> {
        let wrong = |value: &Value<'_>, wanted: &str| {
            Err(Failure::WrongType(format!("has {} in the place of {wanted}", value.word())))
        };
        match (wanted, value) {
            (_, value @ (Value::Missing | Value::Null))
            | (Wanted::Anything | Wanted::Alike, value)
            | (Wanted::Number | Wanted::Numbers, value @ Value::Number(_))
            | (Wanted::Numbers | Wanted::List | Wanted::TextOrList, value @ Value::List(_))
            | (Wanted::Text | Wanted::TextOrList | Wanted::Pattern, value @ Value::Text(_))
            | (Wanted::Boolean, value @ Value::Boolean(_))
            | (Wanted::Time, value @ (Value::Date(_) | Value::Time(_)))
            | (Wanted::Object, value @ Value::Object(_)) => Ok(value),
            (Wanted::Number | Wanted::Numbers, Value::Text(text)) => {
                match crate::values::decimal::parse(text.trim()) {
                    Some(number) => Ok(Value::Number(number?.into())),
                    None if text.trim().is_empty() => Ok(Value::Null),
                    None => wrong(&Value::Text(text), "a number"),
                }
            }
            (Wanted::Boolean, Value::Text(text)) => match compare::boolean(&text) {
                Some(boolean) => Ok(Value::Boolean(boolean)),
                None => wrong(&Value::Text(text), "true or false"),
            },
            (Wanted::Time, Value::Text(text)) => match times::read(&text, self.zone) {
                Some(time) => Ok(time),
                None if text.trim().is_empty() => Ok(Value::Null),
                None => wrong(&Value::Text(text), "a date or time"),
            },
            (
                Wanted::Text | Wanted::TextOrList | Wanted::Pattern,
                value @ (Value::List(_) | Value::Object(_)),
            ) => wrong(&value, "text"),
            (Wanted::Text | Wanted::TextOrList | Wanted::Pattern, value) => {
                Ok(Value::text(value.to_text().into_owned()))
            }
            (Wanted::Number | Wanted::Numbers, value) => wrong(&value, "a number"),
            (Wanted::Boolean, value) => wrong(&value, "true or false"),
            (Wanted::Time, value) => wrong(&value, "a date or time"),
            (Wanted::List, value) => wrong(&value, "a list"),
            (Wanted::Object, value) => wrong(&value, "an object"),
        }
    }
}

/// Bytes up to a number.
struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.most {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
