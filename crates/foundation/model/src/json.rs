//! JSON that travels as text.

use crate::{Error, Result};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;

/// Valid JSON kept as text: stored so, and sent out without being parsed and printed again.
#[derive(Debug, Clone, PartialEq, Eq, diesel_derive_newtype::DieselNewType)]
pub struct JsonText(String);

impl JsonText {
    /// Prints `value`. A value that cannot be JSON (a map with keys that are no strings) becomes `null`.
    pub fn of(value: &impl Serialize) -> Self {
        Self(serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()))
    }

    /// Takes text that was printed as JSON. Text that is none spoils the answers that it becomes part of.
    pub fn printed(text: String) -> Self {
        debug_assert!(serde_json::from_str::<&RawValue>(&text).is_ok(), "{text}");
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text as a value that is not parsed.
    ///
    /// # Errors
    /// `internal_error` where it is no JSON: what is stored was written by us.
    pub fn raw(&self) -> Result<&RawValue> {
        serde_json::from_str(&self.0).map_err(Error::internal)
    }

    /// Reads it as `T`.
    ///
    /// # Errors
    /// `internal_error` where it has another shape: what is stored was written by us.
    pub fn parse<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.0).map_err(Error::internal)
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl utoipa::PartialSchema for JsonText {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        serde_json::Value::schema()
    }
}
impl utoipa::ToSchema for JsonText {}
