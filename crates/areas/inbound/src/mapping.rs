//! Mapping: what a request is called, which variables it gives, whose contact it is about, and whether it counts.

use crate::verify::request::Incoming;
use crate::verify::source::Source;
use chrono_tz::Tz;
use expressions::{decimal, equal, equality, order};
use input::numbers;
use model::{Error, FieldError, Result, text_enum};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How a request is mapped. Every `from` is a source: `$.order.id` in the body, `header:NAME`, or `query:NAME`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InboundMapping)]
pub struct Mapping {
    /// The source of the event type.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub event_type: Option<String>,
    /// Conditions that must all be met. Otherwise the request is stored as `unmatched` and no event is published.
    #[serde(default)]
    #[schema(max_items = 20)]
    pub conditions: Vec<Condition>,
    /// Variables by name: letters, digits and `_`, at most 64 characters. At most 50 variables.
    #[serde(default)]
    pub vars: BTreeMap<String, Variable>,
    /// The contact of the request.
    #[serde(default)]
    pub contact: Option<ContactMapping>,
}

/// A condition on a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InboundCondition)]
pub struct Condition {
    /// The source of the value.
    #[schema(max_length = 200)]
    pub from: String,
    /// The comparison.
    pub op: Comparison,
    /// The value to compare with: a list for `in`, none for `exists` and `not_exists`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub value: Option<Value>,
}

text_enum! {
    /// A comparison.
    #[schema(as = InboundComparison)]
    pub enum Comparison {
        /// Equal.
        Eq = "eq",
        /// Not equal, or missing.
        Neq = "neq",
        /// Contained in a list.
        In = "in",
        /// Text that contains the text, or a list that contains the value.
        Contains = "contains",
        /// A greater number.
        Gt = "gt",
        /// A greater or equal number.
        Gte = "gte",
        /// A smaller number.
        Lt = "lt",
        /// A smaller or equal number.
        Lte = "lte",
        /// Present, and not null.
        Exists = "exists",
        /// Missing, or null.
        NotExists = "not_exists",
    }
}

text_enum! {
    /// The type of a variable.
    #[derive(Default)]
    #[schema(as = InboundVariableType)]
    pub enum VariableType {
        /// Any type.
        #[default]
        Any = "any",
        /// A string. Numbers and booleans are converted.
        String = "string",
        /// A number. Strings are converted.
        Number = "number",
        /// An integer. Strings are converted.
        Integer = "integer",
        /// A boolean. The strings `true` and `false` are converted.
        Boolean = "boolean",
        /// An object.
        Object = "object",
        /// A list.
        Array = "array",
    }
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InboundVariable)]
pub struct Variable {
    /// The source of the value.
    #[schema(max_length = 200)]
    pub from: String,
    /// The type.
    #[serde(rename = "type", default)]
    pub kind: VariableType,
    /// The value if the request has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub default: Option<Value>,
    /// Whether a request without the value fails. Without `required` and `default`, the variable is null.
    #[serde(default)]
    pub required: bool,
}

text_enum! {
    /// How a contact is matched.
    #[schema(as = InboundContactMatch)]
    pub enum MatchOn {
        /// By `fields.phone`.
        Phone = "phone",
        /// By `fields.email`.
        Email = "email",
        /// By the field in `field`.
        Field = "field",
    }
}

/// The contact of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InboundContactMapping)]
pub struct ContactMapping {
    /// How the contact is matched.
    pub match_on: MatchOn,
    /// For `field`: the key of the field, one of `fields`.
    #[serde(default)]
    #[schema(max_length = 64)]
    pub field: Option<String>,
    /// Whether to create a contact if none matches.
    #[serde(default)]
    pub create: bool,
    /// The sources of the contact's fields by field key, at most 50.
    pub fields: BTreeMap<String, String>,
}

impl ContactMapping {
    fn key(&self) -> Option<&str> {
        match self.match_on {
            MatchOn::Phone => Some("phone"),
            MatchOn::Email => Some("email"),
            MatchOn::Field => self.field.as_deref(),
        }
    }
}

/// What mapping made of a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Mapped {
    /// The kind of the request.
    pub(super) event_type: Option<String>,
    /// The variables.
    pub(super) vars: Map<String, Value>,
    /// The contact: `match_on`, `key`, `value`, `create`, `fields`.
    pub(super) contact: Option<Value>,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    /// Its conditions hold.
    Mapped(Mapped),
    /// A condition does not hold.
    Unmatched,
    /// A value does not fit.
    Failed(FieldError),
}

/// A mapping whose sources are read.
pub(super) struct Compiled {
    event_type: Option<Source>,
    conditions: Vec<(Source, Condition)>,
    vars: Vec<(String, Source, Variable)>,
    contact: Option<(ContactMapping, Vec<(String, Source)>)>,
}

impl Mapping {
    /// Reads the sources.
    ///
    /// # Errors
    /// `validation_error` with the field under `mapping`.
    pub(super) fn compile(&self) -> Result<Compiled> {
        let source = |param: &str, text: &str| {
            Source::parse(text).map_err(|rule| Error::invalid(format!("mapping.{param}"), rule))
        };
        let event_type = self.event_type.as_deref().map(|text| source("event_type", text)).transpose()?;
        let mut conditions = Vec::with_capacity(self.conditions.len());
        for (place, condition) in self.conditions.iter().enumerate() {
            let from = source(&format!("conditions[{place}].from"), &condition.from)?;
            condition.check(place)?;
            conditions.push((from, condition.clone()));
        }
        let mut vars = Vec::with_capacity(self.vars.len());
        check_number("vars", self.vars.len())?;
        for (name, variable) in &self.vars {
            let param = format!("vars.{name}");
            check_name(&param, name)?;
            let from = source(&format!("{param}.from"), &variable.from)?;
            if let Some(default) = &variable.default
                && variable.kind.read(default).is_none()
            {
                return Err(Error::invalid(format!("mapping.{param}.default"), "does not have the type"));
            }
            vars.push((name.clone(), from, variable.clone()));
        }
        let contact = self.contact.as_ref().map(ContactMapping::compile).transpose()?;
        Ok(Compiled { event_type, conditions, vars, contact })
    }
}

impl ContactMapping {
    fn compile(&self) -> Result<(Self, Vec<(String, Source)>)> {
        if (self.match_on == MatchOn::Field) != self.field.is_some() {
            return Err(Error::invalid(
                "mapping.contact.field",
                "is required for `match_on` = `field`, and allowed only for it",
            ));
        }
        if self.key().is_none_or(|key| !self.fields.contains_key(key)) {
            return Err(Error::invalid("mapping.contact.fields", "must contain the field that is matched"));
        }
        let mut fields = Vec::with_capacity(self.fields.len());
        check_number("contact.fields", self.fields.len())?;
        for (name, text) in &self.fields {
            let param = format!("contact.fields.{name}");
            check_name(&param, name)?;
            let from =
                Source::parse(text).map_err(|rule| Error::invalid(format!("mapping.{param}"), rule))?;
            fields.push((name.clone(), from));
        }
        Ok((self.clone(), fields))
    }
}

fn check_number(param: &str, number: usize) -> Result<()> {
    if number <= 50 { Ok(()) } else { Err(Error::invalid(format!("mapping.{param}"), "must be at most 50")) }
}

fn check_name(param: &str, name: &str) -> Result<()> {
    let fits = (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.starts_with(|letter: char| letter.is_ascii_digit());
    let rule = "must have a name of at most 64 letters, digits and `_` that does not start with a digit";
    if fits { Ok(()) } else { Err(Error::invalid(format!("mapping.{param}"), rule)) }
}

impl Condition {
    fn check(&self, place: usize) -> Result<()> {
        let param = || format!("mapping.conditions[{place}].value");
        let value = self.value.as_ref();
        match self.op {
            Comparison::Exists | Comparison::NotExists if value.is_some() => {
                Err(Error::invalid(param(), "is not allowed for this comparison"))
            }
            Comparison::Exists | Comparison::NotExists => Ok(()),
            _ if value.is_none() => Err(Error::invalid(param(), "is required for this comparison")),
            Comparison::In if !value.is_some_and(Value::is_array) => {
                Err(Error::invalid(param(), "must be a list"))
            }
            Comparison::Gt | Comparison::Gte | Comparison::Lt | Comparison::Lte
                if !value.is_some_and(Value::is_number) =>
            {
                Err(Error::invalid(param(), "must be a number"))
            }
            _ => Ok(()),
        }
    }

    fn holds(&self, found: Option<&Value>) -> bool {
        let wanted = self.value.as_ref().unwrap_or(&Value::Null);
        let found = found.filter(|found| !found.is_null());
        // What shows no number has no order: the condition is not met.
        let compare = |holds: fn(Ordering) -> bool| {
            let order = found.map(|found| order(&found.into(), &wanted.into(), Tz::UTC));
            order.and_then(Result::ok).flatten().is_some_and(holds)
        };
        match self.op {
            Comparison::Exists => found.is_some(),
            Comparison::NotExists => found.is_none(),
            Comparison::Eq => found.is_some_and(|found| same(found, wanted)),
            Comparison::Neq => !found.is_some_and(|found| same(found, wanted)),
            Comparison::In => found.is_some_and(|found| {
                wanted.as_array().is_some_and(|all| all.iter().any(|one| same(found, one)))
            }),
            Comparison::Contains => match found {
                Some(Value::String(text)) => wanted.as_str().is_some_and(|part| text.contains(part)),
                Some(Value::Array(items)) => items.iter().any(|item| same(item, wanted)),
                _ => false,
            },
            Comparison::Gt => compare(Ordering::is_gt),
            Comparison::Gte => compare(Ordering::is_ge),
            Comparison::Lt => compare(Ordering::is_lt),
            Comparison::Lte => compare(Ordering::is_le),
        }
    }
}

/// Equal, where `1` and `1.0` are one number and a form's text equals the number or boolean that it prints.
fn same(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::String(_), Value::Bool(_) | Value::Number(_)) => {
            equal(&found.into(), &wanted.into(), Tz::UTC)
        }
        (found, wanted) => equality::same(found, wanted),
    }
}

impl VariableType {
    /// The value as this type; `None` where it is none.
    fn read(self, value: &Value) -> Option<Value> {
        match (self, value) {
            (Self::Any, value)
            | (Self::String, value @ Value::String(_))
            | (Self::Number, value @ Value::Number(_))
            | (Self::Boolean, value @ Value::Bool(_))
            | (Self::Object, value @ Value::Object(_))
            | (Self::Array, value @ Value::Array(_)) => Some(value.clone()),
            (Self::String, Value::Number(_) | Value::Bool(_)) => Some(value.to_string().into()),
            (Self::Integer, Value::Number(number)) => whole(number),
            (Self::Number, Value::String(text)) => number(text),
            (Self::Integer, Value::String(text)) => match number(text)? {
                Value::Number(number) => whole(&number),
                long => decimal::parse(text.trim())?.ok()?.is_integer().then_some(long),
            },
            (Self::Boolean, Value::String(text)) => match text.as_str() {
                "true" => Some(true.into()),
                "false" => Some(false.into()),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A number as JSON writes it; one with too many digits stays a text, which has all of them.
fn number(text: &str) -> Option<Value> {
    let text = text.trim();
    decimal::parse(text)?.ok()?;
    numbers::lossless(text.as_bytes()).ok()
}

/// A whole number; `2.0` is one.
fn whole(number: &Number) -> Option<Value> {
    if number.is_i64() || number.is_u64() {
        return Some(Value::Number(number.clone()));
    }
    // Beyond 2^53 a float stands for several whole numbers.
    let float =
        number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0)?;
    #[expect(clippy::cast_possible_truncation, reason = "the line above keeps it inside")]
    Some(Value::from(float as i64))
}

impl Compiled {
    /// Applies the mapping. `body` is the body as it was read.
    pub(super) fn apply(&self, request: &Incoming<'_>, body: &Value) -> Outcome {
        let holds =
            |(from, condition): &(Source, Condition)| condition.holds(from.find(request, body).as_deref());
        if !self.conditions.iter().all(holds) {
            return Outcome::Unmatched;
        }
        match self.mapped(request, body) {
            Ok(mapped) => Outcome::Mapped(mapped),
            Err(error) => Outcome::Failed(error),
        }
    }

    fn mapped(&self, request: &Incoming<'_>, body: &Value) -> Result<Mapped, FieldError> {
        let text = |source: &Source| match source.find(request, body)?.into_owned() {
            Value::String(text) => Some(text),
            Value::Null | Value::Object(_) | Value::Array(_) => None,
            value => Some(value.to_string()),
        };
        let event_type = self.event_type.as_ref().and_then(text);
        let event_type = event_type.map(|text| text.chars().take(200).collect());
        let mut vars = Map::new();
        for (name, from, variable) in &self.vars {
            let fault = |message: String| FieldError::new(format!("mapping.vars.{name}"), message);
            let found = from.find(request, body).filter(|found| !found.is_null());
            let value = match (found, &variable.default) {
                (Some(found), _) => variable.kind.read(&found).ok_or_else(|| {
                    fault(format!("the value at `{}` is no {}", variable.from, variable.kind.as_str()))
                })?,
                (None, Some(default)) => default.clone(),
                (None, None) if variable.required => {
                    return Err(fault(format!("there is no value at `{}`", variable.from)));
                }
                (None, None) => Value::Null,
            };
            vars.insert(name.clone(), value);
        }
        let contact = match &self.contact {
            None => None,
            Some((mapping, sources)) => {
                let fields: Map<String, Value> = sources
                    .iter()
                    .filter_map(|(name, from)| {
                        let found = from.find(request, body).filter(|found| !found.is_null())?;
                        Some((name.clone(), found.into_owned()))
                    })
                    .collect();
                let key = mapping.key().unwrap_or_default();
                let value = fields.get(key).and_then(|value| VariableType::String.read(value));
                let value = value.ok_or_else(|| {
                    let param = format!("mapping.contact.fields.{key}");
                    FieldError::new(param, "the request has no value to match the contact by")
                })?;
                let create = mapping.create;
                Some(
                    json!({ "match_on": mapping.match_on, "key": key, "value": value, "create": create, "fields": fields }),
                )
            }
        };
        Ok(Mapped { event_type, vars, contact })
    }
}

#[cfg(test)]
#[path = "condition_tests.rs"]
mod condition_tests;
