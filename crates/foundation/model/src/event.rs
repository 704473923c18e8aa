//! Events: what happened, published to whoever subscribed.

use crate::{Error, JsonText, Result, Scope};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use utoipa::ToSchema;

/// What is known of a type of event before one happens.
#[derive(Debug, Clone, Copy)]
pub struct EventMeta {
    /// Its name, such as `run.completed`. A name such as `custom.*` is that of a family: its events have names of their own that
    /// begin with what stands before the star.
    pub name: &'static str,
    /// What happened, in a sentence.
    pub description: &'static str,
    /// The scope that a key needs to subscribe to it.
    pub scope: Scope,
    /// What its order is kept by: the kind of object, and the path in the data to its id, such as `item.id`.
    pub subject: Option<(&'static str, &'static str)>,
    /// A JSON Schema (2020-12) of its data.
    pub schema: fn() -> Value,
}

/// Something that can be published. `#[derive(Event)]` implements it, for a struct that is the data of one type of event,
/// or for an enum with a type in each variant.
pub trait Event {
    /// The types that a value may be of, in the order of the documents.
    const TYPES: &'static [EventMeta];

    /// The type that this one is of.
    fn meta(&self) -> &'static EventMeta;

    /// Its name: that of its type, unless the type is a family.
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed(self.meta().name)
    }

    /// Its data as JSON.
    ///
    /// # Errors
    /// When the data cannot be JSON, as a map whose keys are no strings.
    fn data(&self) -> Result<JsonText>;

    /// The contact that it is about, by which the log is filtered.
    fn contact_id(&self) -> Option<i64> {
        None
    }
}

/// The data of an event as JSON, for `#[derive(Event)]`.
///
/// # Errors
/// When it cannot be JSON.
pub fn print_data(data: &impl Serialize) -> Result<JsonText> {
    Ok(JsonText::printed(serde_json::to_string(data).map_err(Error::internal)?))
}

/// A type's schema with all it refers to, as one document.
pub fn schema_of<T: ToSchema>() -> Value {
    let mut parts = Vec::new();
    T::schemas(&mut parts);
    let mut schema = as_json(&T::schema());
    let parts: serde_json::Map<String, Value> =
        parts.into_iter().map(|(name, part)| (name, as_json(&part))).collect();
    point_inside(&mut schema);
    if !parts.is_empty() {
        let mut parts = Value::Object(parts);
        point_inside(&mut parts);
        if let Value::Object(fields) = &mut schema {
            fields.insert("$defs".to_owned(), parts);
        }
    }
    schema
}

fn as_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// References of an OpenAPI document lead to its components; here they lead to `$defs`.
fn point_inside(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(target)) = fields.get_mut("$ref") {
                *target = target.replace("#/components/schemas/", "#/$defs/");
            }
            fields.values_mut().for_each(point_inside);
        }
        Value::Array(items) => items.iter_mut().for_each(point_inside),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(ToSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Outer {
        inner: Inner,
    }

    #[derive(ToSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Inner {
        name: String,
    }

    #[test]
    fn schemas_stand_alone() {
        let schema = schema_of::<Outer>();
        assert_eq!(schema["properties"]["inner"]["$ref"], "#/$defs/Inner");
        assert_eq!(schema["$defs"]["Inner"]["properties"]["name"]["type"], "string");
    }
}
