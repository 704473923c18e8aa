//! A field of a PATCH body.

use serde::{Deserialize, Deserializer};

/// What a PATCH says of a field that may be empty: nothing, `null`, or a new value.
///
/// Use it with `#[serde(default)]`; for a field that is never null an `Option` says enough.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// The field is not in the body: keep what is stored.
    #[default]
    Keep,
    /// The field is `null`: empty it.
    Clear,
    /// The new value.
    Set(T),
}

impl<T> Patch<T> {
    /// Applies it to what is stored.
    pub fn apply(self, stored: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *stored = None,
            Self::Set(value) => *stored = Some(value),
        }
    }

    /// Returns what becomes of the field. The outer `None` keeps what is stored.
    pub fn given(self) -> Option<Option<T>> {
        match self {
            Self::Keep => None,
            Self::Clear => Some(None),
            Self::Set(value) => Some(Some(value)),
        }
    }
}

impl<T> From<Option<T>> for Patch<T> {
    /// Nothing keeps what is stored.
    fn from(new: Option<T>) -> Self {
        new.map_or(Self::Keep, Self::Set)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Clear, Self::Set))
    }
}

impl<T: utoipa::ToSchema> utoipa::PartialSchema for Patch<T>
where
    Option<T>: utoipa::PartialSchema,
{
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        <Option<T> as utoipa::PartialSchema>::schema()
    }
}
impl<T: utoipa::ToSchema> utoipa::ToSchema for Patch<T>
where
    Option<T>: utoipa::PartialSchema,
{
    fn name() -> std::borrow::Cow<'static, str> {
        T::name()
    }
    fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
        T::schemas(schemas);
    }
}
