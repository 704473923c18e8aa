//! The types of events: a row for each, contributed by the area that emits it.

use model::Scope;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// A type of event: what documents, subscriptions and deliveries need to know of it.
#[derive(Debug, Clone)]
pub struct EventType {
    /// Its name, such as `run.completed`.
    pub name: &'static str,
    /// What happened, in a sentence.
    pub description: &'static str,
    /// The scope that a key needs to subscribe to it. `None`: any key may.
    pub scope: Option<Scope>,
    /// What its order is kept by: the kind of object, and the path in `data` to its id, such as `item.id`.
    pub entity: Option<(&'static str, &'static str)>,
    /// A JSON Schema (2020-12) of `data`.
    pub schema: Value,
}

impl EventType {
    /// A type whose data is a `T`.
    pub fn of<T: ToSchema>(name: &'static str, description: &'static str, scope: &str) -> Self {
        Self::with_schema(name, description, scope, schema_of::<T>())
    }

    /// A type whose data fits a schema that was written out. A scope that does not exist leaves none.
    pub fn with_schema(name: &'static str, description: &'static str, scope: &str, schema: Value) -> Self {
        Self { name, description, scope: Scope::parse(scope), entity: None, schema }
    }

    /// Keeps the order of events about one object where a subscriber asks for that: `kind` is a word for the object,
    /// `path` leads to its id in `data`, such as `run_id` or `item.id`.
    #[must_use]
    pub fn about(mut self, kind: &'static str, path: &'static str) -> Self {
        self.entity = Some((kind, path));
        self
    }
}

/// A type's schema with all it refers to, as one document.
pub fn schema_of<T: ToSchema>() -> Value {
    let mut parts = Vec::new();
    T::schemas(&mut parts);
    let mut schema = crate::describe::as_json(&T::schema());
    let parts: serde_json::Map<String, Value> =
        parts.into_iter().map(|(name, part)| (name, crate::describe::as_json(&part))).collect();
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

/// A schema of an object: its required fields, and others that may be there.
pub fn object_schema(required: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    let fields: serde_json::Map<String, Value> =
        required.iter().chain(optional).map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "required": names, "properties": fields })
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
        let validator = jsonschema::validator_for(&schema).unwrap();
        assert!(validator.is_valid(&json!({ "inner": { "name": "a" } })));
        assert!(!validator.is_valid(&json!({ "inner": { "name": 1 } })));
    }
}
