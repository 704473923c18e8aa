//! Formulas: pure, typed expressions over the other fields of a record.
//!
//! An expression is parsed and typed when the field is saved, and evaluated when a record is written; the result is
//! stored like any other value. There is no `now()`: what changes by itself cannot be stored. What has no answer (a division
//! by zero, a date out of the calendar) is no value.

mod scope;
#[cfg(test)]
mod tests;

pub use crate::expression::Formula;
pub use scope::zone_of;

use crate::definitions::field::Field;
use crate::definitions::set::FieldSet;
use crate::expression::problem;
use crate::values::computed_error::ComputedError;
use crate::values::kind::{Family, FieldType};
use crate::values::problem::Problem;
use expressions::{Context, Failure, Limits, Mistake, Path, Type, Value};
use model::Timestamp;
use scope::Fields;
use serde_json::Value as Json;

/// The most characters that a formula's text may have.
const LONGEST: usize = 10_000;

/// Formulas read fields, whose values have limits of their own.
const LIMITS: Limits = Limits { steps: 1_000_000, bytes: 4 * 1024 * 1024 };

impl Formula {
    /// The type of its result over these fields.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn result_type(&self, fields: &FieldSet) -> Result<FieldType, Problem> {
        let wrong = |message: &str| Problem::new("invalid_formula", message);
        match self.0.result_type(&|path| field_type(path, fields)).map_err(problem)? {
            Type::Number => Ok(FieldType::Number),
            Type::Text => Ok(FieldType::LongText),
            Type::Boolean => Ok(FieldType::Boolean),
            Type::Date => Ok(FieldType::Date),
            Type::Time => Ok(FieldType::Datetime),
            Type::List | Type::Object | Type::Any => {
                Err(wrong("gives a list; make it one value with `count`, `has` or `join`"))
            }
            Type::Null => Err(wrong("never has a value")),
        }
    }

    /// Its result for a record; `None` where it has no value.
    ///
    /// # Errors
    /// Why it has no answer for these values.
    pub fn value(
        &self,
        fields: &FieldSet,
        read: &dyn Fn(&Field) -> Result<Option<Json>, ComputedError>,
    ) -> Result<Option<Json>, ComputedError> {
        let scope = Fields { fields, read };
        // Formulas have no function for the time.
        let context = Context { limits: LIMITS, ..Context::new(&scope, Timestamp::from_millis(0)) };
        self.0.evaluate(&context).and_then(stored).map_err(|failure| reason(&failure))
    }
}

/// The type that the values of a field have in a formula; `None` if formulas cannot read it, or if it is that of the
/// field's result.
pub fn type_in_formulas(kind: FieldType) -> Option<&'static str> {
    let is_readable = kind != FieldType::Json && !kind.is_computed();
    is_readable.then(|| type_of(kind.own_family()).name())
}

fn type_of(family: Family) -> Type {
    match family {
        Family::Number => Type::Number,
        Family::Text | Family::Time | Family::Select => Type::Text,
        Family::Boolean => Type::Boolean,
        Family::Date => Type::Date,
        Family::Datetime => Type::Time,
        Family::Choices | Family::Ids | Family::Json => Type::List,
    }
}

fn field_type(path: &Path, fields: &FieldSet) -> Result<Type, Mistake> {
    let key = path.root.as_str();
    let Some(field) = fields.field(key) else {
        let near = input::nearest(key, fields.iter().map(|field| field.key.as_str()));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let noun = fields.noun();
        return Err(Mistake::invalid(format!("names `{key}`, which is no field of this {noun}{hint}")));
    };
    match field.kind {
        FieldType::Json => {
            Err(Mistake::invalid(format!("cannot read `{key}`, whose values are JSON of any type")))
        }
        _ => Ok(type_of(field.family())),
    }
}

/// The stored form of a result; `None` for no value.
fn stored(value: Value<'_>) -> Result<Option<Json>, Failure> {
    Ok(match value {
        Value::Missing | Value::Null | Value::List(_) | Value::Object(_) => None,
        Value::Number(number) => Some(number.kept()?),
        Value::Text(text) => Some(text.chars().take(LONGEST).collect::<String>().into()),
        Value::Time(moment) => Some(moment.at.rfc3339().into()),
        plain @ (Value::Boolean(_) | Value::Date(_)) => Some(plain.into_json()?),
    })
}

/// Why a formula has no value, as it is stored. The types were checked, so that what is left is a number or a size.
fn reason(failure: &Failure) -> ComputedError {
    ComputedError::parse(failure.code()).unwrap_or(ComputedError::OutOfRange)
}
