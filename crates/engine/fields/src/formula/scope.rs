//! The fields of a record, as formulas read them.

use crate::checking::value;
use crate::definitions::field::Field;
use crate::definitions::set::FieldSet;
use crate::values::computed_error::ComputedError;
use crate::values::kind::Family;
use chrono_tz::Tz;
use expressions::decimal;
use expressions::{Failure, Moment, Number, Scope, Value};
use serde_json::Value as Json;

/// The fields of a record.
pub(super) struct Fields<'f> {
    pub(super) fields: &'f FieldSet,
    /// Gives the stored value of a field, or why a computed one has none.
    pub(super) read: &'f dyn Fn(&Field) -> Result<Option<Json>, ComputedError>,
}

impl Scope for Fields<'_> {
    fn root(&self, name: &str) -> Result<Value<'_>, Failure> {
        let Some(field) = self.fields.field(name) else { return Ok(Value::Null) };
        match (self.read)(field) {
            Ok(Some(stored)) => Ok(self.value(field, stored)),
            Ok(None) => Ok(Value::Null),
            Err(reason) => Err(Failure::Unavailable(reason.as_str().into())),
        }
    }
}

impl Fields<'_> {
    /// The stored value of a field.
    fn value(&self, field: &Field, stored: Json) -> Value<'static> {
        let label = |key: &str| field.options.choice(key).map_or(key, |(_, choice)| &choice.label).to_owned();
        let found = match (field.family(), stored) {
            (Family::Number, Json::Number(number)) => {
                Some(Value::Number(Number::stored(decimal::of(&number), field.kind.is_computed())))
            }
            (Family::Boolean, Json::Bool(value)) => Some(Value::Boolean(value)),
            (Family::Text | Family::Time, Json::String(text)) => Some(Value::text(text)),
            (Family::Select, Json::String(key)) => Some(Value::text(label(&key))),
            (Family::Date, Json::String(text)) => value::date(&text).map(Value::Date),
            (Family::Datetime, Json::String(text)) => {
                let zone = zone_of(self.fields, field).unwrap_or(Tz::UTC);
                value::datetime(&text, None).map(|at| Value::Time(Moment::new(at, zone)))
            }
            (family @ (Family::Choices | Family::Ids | Family::Json), Json::Array(elements)) => {
                let text = |element: Json| match element {
                    Json::String(key) if family == Family::Choices => label(&key),
                    Json::String(text) => text,
                    other => other.to_string(),
                };
                let texts: Vec<Json> = elements.into_iter().map(text).map(Json::from).collect();
                Some(Value::List(texts.into()))
            }
            _ => None,
        };
        found.unwrap_or(Value::Null)
    }
}

/// The time zone in which the moments of a field are looked at: its own, or that of a field that a formula reads.
pub fn zone_of(fields: &FieldSet, field: &Field) -> Option<Tz> {
    let own = field.options.time_zone.as_deref().and_then(|zone| zone.parse().ok());
    own.or_else(|| {
        let mut read = field.formula()?.fields().into_iter().filter_map(|key| fields.field(key));
        read.find_map(|other| if other.key == field.key { None } else { zone_of(fields, other) })
    })
}
