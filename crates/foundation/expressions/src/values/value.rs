//! Values: what expressions read, compute with and give.

use crate::values::failure::Failure;
use crate::values::moment::Moment;
use crate::values::number::Number;
use crate::values::path::Step;
use chrono::NaiveDate;
use serde_json::{Map, Value as Json};
use std::borrow::Cow;

/// A value. Texts, lists and objects are borrowed from what was read as long as nothing changes them.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// There is nothing of this name. In a text it is nothing, as JSON it is null, and with `strict` a failure.
    Missing,
    /// JSON's null.
    Null,
    /// True or false.
    Boolean(bool),
    /// A number with all of its digits.
    Number(Number),
    /// A text.
    Text(Cow<'a, str>),
    /// A day.
    Date(NaiveDate),
    /// A moment, and the time zone in which it is looked at.
    Time(Moment),
    /// A list.
    List(Cow<'a, [Json]>),
    /// An object.
    Object(Cow<'a, Map<String, Json>>),
}

impl<'a> Value<'a> {
    /// A value of JSON.
    pub fn of(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Boolean(*value),
            Json::Number(number) => Self::Number(Number::of_json(number)),
            Json::String(text) => Self::Text(Cow::Borrowed(text)),
            Json::Array(elements) => Self::List(Cow::Borrowed(elements)),
            Json::Object(members) => Self::Object(Cow::Borrowed(members)),
        }
    }

    /// A value of JSON that nothing else keeps.
    pub fn of_owned(json: Json) -> Self {
        match json {
            Json::String(text) => Self::Text(Cow::Owned(text)),
            Json::Array(elements) => Self::List(Cow::Owned(elements)),
            Json::Object(members) => Self::Object(Cow::Owned(members)),
            plain => Value::of(&plain).into_owned(),
        }
    }

    /// The value of what may be missing.
    pub fn of_option(json: Option<&'a Json>) -> Self {
        json.map_or(Self::Missing, Self::of)
    }

    /// A text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// The value as JSON: null for what is missing, RFC 3339 for dates and times.
    ///
    /// # Errors
    /// [`Failure::TooPrecise`] and [`Failure::OutOfRange`] for a number that JSON readers would change.
    pub fn into_json(self) -> Result<Json, Failure> {
        Ok(match self {
            Self::Missing | Self::Null => Json::Null,
            Self::Boolean(value) => value.into(),
            Self::Number(number) => number.json()?,
            Self::Text(text) => text.into_owned().into(),
            Self::List(elements) => Json::Array(elements.into_owned()),
            Self::Object(members) => Json::Object(members.into_owned()),
            Self::Date(_) | Self::Time(_) => self.to_text().into(),
        })
    }

    /// The value as people read it. Lists of plain values have commas between them; what else is in objects or lists is JSON.
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Self::Missing | Self::Null => Cow::Borrowed(""),
            Self::Boolean(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
            Self::Number(number) => number.text().into(),
            Self::Text(text) => Cow::Borrowed(text),
            Self::Date(day) => day.format("%Y-%m-%d").to_string().into(),
            Self::Time(moment) => moment.text().into(),
            Self::List(elements) if elements.iter().any(|one| one.is_object() || one.is_array()) => {
                serde_json::to_string(elements).unwrap_or_default().into()
            }
            Self::List(elements) => {
                let texts = elements.iter().map(|one| Value::of(one).to_text().into_owned());
                texts.collect::<Vec<_>>().join(", ").into()
            }
            Self::Object(members) => serde_json::to_string(members).unwrap_or_default().into(),
        }
    }

    /// Whether there is no value, an empty text, or a list or object without content. `false` and 0 are values.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Missing | Self::Null => true,
            Self::Text(text) => text.is_empty(),
            Self::List(elements) => elements.is_empty(),
            Self::Object(members) => members.is_empty(),
            _ => false,
        }
    }

    /// Whether there is no value: it is missing, or null.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Missing | Self::Null)
    }

    /// Its type, in words.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Missing | Self::Null => "null",
            Self::Boolean(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::Date(_) => "a date",
            Self::Time(_) => "a time",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// The member of an object. Below a value that has no such member nothing is.
    #[must_use]
    pub fn member(self, name: &str) -> Self {
        match self {
            Self::Object(Cow::Borrowed(members)) => Self::of_option(members.get(name)),
            Self::Object(Cow::Owned(mut members)) => {
                members.remove(name).map_or(Self::Missing, Self::of_owned)
            }
            _ => Self::Missing,
        }
    }

    /// The value one step below it, as [`Self::member`].
    #[must_use]
    pub fn step(self, step: &Step) -> Self {
        match (self, step) {
            (value, Step::Name(name)) => value.member(name),
            (Self::List(elements), Step::Index(place)) => {
                let Some(place) = index(*place, elements.len()) else { return Self::Missing };
                match elements {
                    Cow::Borrowed(elements) => Self::of_option(elements.get(place)),
                    Cow::Owned(elements) => {
                        elements.into_iter().nth(place).map_or(Self::Missing, Self::of_owned)
                    }
                }
            }
            _ => Self::Missing,
        }
    }

    /// The value, with nothing borrowed.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Missing => Value::Missing,
            Self::Null => Value::Null,
            Self::Boolean(value) => Value::Boolean(value),
            Self::Number(number) => Value::Number(number),
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Date(day) => Value::Date(day),
            Self::Time(moment) => Value::Time(moment),
            Self::List(elements) => Value::List(Cow::Owned(elements.into_owned())),
            Self::Object(members) => Value::Object(Cow::Owned(members.into_owned())),
        }
    }

    /// The same value, borrowed from this one.
    pub(crate) fn borrowed(&'a self) -> Self {
        match self {
            Self::Text(text) => Self::Text(Cow::Borrowed(text)),
            Self::List(elements) => Self::List(Cow::Borrowed(elements)),
            Self::Object(members) => Self::Object(Cow::Borrowed(members)),
            plain => plain.clone(),
        }
    }
}

impl<'a> From<&'a Json> for Value<'a> {
    fn from(json: &'a Json) -> Self {
        Self::of(json)
    }
}

/// A place of a list of this length, from either end.
pub(crate) fn index(place: i64, length: usize) -> Option<usize> {
    if place >= 0 {
        return usize::try_from(place).ok();
    }
    length.checked_sub(usize::try_from(place.unsigned_abs()).ok()?)
}
