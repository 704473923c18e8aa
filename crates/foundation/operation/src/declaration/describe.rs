//! The inputs and answers of an operation, collected from its types.

use serde_json::{Value, json};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{RefOr, Required, Schema};
use utoipa::{IntoParams, ToSchema};

/// A successful answer.
pub(crate) struct Success {
    pub(crate) status: u16,
    /// The fields of the envelope other than `success`.
    pub(crate) fields: Value,
    /// The values in which its example differs from the examples of the types.
    pub(crate) differs: Option<Value>,
    /// Whether `fields` is the schema of the whole body, or `null` for an answer without one.
    pub(crate) is_bare: bool,
}

/// The description of one operation. Its part of the contract and the validation of its input are made from it.
#[derive(Default)]
pub struct Describe {
    pub(crate) path: Vec<Parameter>,
    pub(crate) query: Vec<Parameter>,
    pub(crate) body: Option<RefOr<Schema>>,
    /// The media type of a body that is read while it arrives. `None` for JSON.
    pub(crate) streamed: Option<&'static str>,
    pub(crate) documented: Vec<Parameter>,
    pub(crate) successes: Vec<Success>,
    pub(crate) failures: Vec<u16>,
    pub(crate) events: Option<&'static str>,
    pub(crate) schemas: Vec<(String, RefOr<Schema>)>,
}

impl Describe {
    /// Adds a parameter of the path.
    pub fn path_parameter<T: ToSchema>(&mut self, name: &str) {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .schema(Some(T::schema()));
        self.path.push(parameter.build());
    }

    /// Adds the parameters of a query type.
    pub fn query_parameters<T: IntoParams>(&mut self) {
        self.query.extend(T::into_params(|| Some(ParameterIn::Query)));
    }

    /// Adds a parameter of the query or a header that the argument's own code reads and validates. It is published in
    /// the contract, but not validated against its schema.
    pub fn parameter(&mut self, parameter: Parameter) {
        self.documented.push(parameter);
    }

    /// Sets the JSON body.
    pub fn body<T: ToSchema>(&mut self) {
        self.body = Some(self.schema::<T>());
    }

    /// Sets a body of a media type other than JSON, which the operation reads while it arrives.
    pub fn streamed_body<T: ToSchema>(&mut self, media_type: &'static str) {
        self.body::<T>();
        self.streamed = Some(media_type);
    }

    /// Adds a successful answer: its status and the fields of the envelope other than `success`. Optional fields are
    /// in an object called `$optional`.
    pub fn success(&mut self, status: u16, fields: Value) {
        self.successes.push(Success { status, fields, differs: None, is_bare: false });
    }

    /// Adds a successful answer outside the envelope: the schema of its body, or `null` for none.
    pub fn bare_success(&mut self, status: u16, schema: Value) {
        self.successes.push(Success { status, fields: schema, differs: None, is_bare: true });
    }

    /// Adds another status of the last answer, and the values in which its example differs.
    pub fn also(&mut self, status: u16, differs: Value) {
        if let Some(Success { fields, .. }) = self.successes.last() {
            let fields = fields.clone();
            self.successes.push(Success { status, fields, differs: Some(differs), is_bare: false });
        }
    }

    /// Declares that a 200 answer may be a stream of server-sent events, and describes them.
    pub fn events(&mut self, description: &'static str) {
        self.events = Some(description);
    }

    /// Returns whether no field of the body is required, so that `{}` may be a body.
    pub(crate) fn takes_empty_object(&self) -> bool {
        self.body.as_ref().is_some_and(|schema| !self.demands_fields(&as_json(schema), 0))
    }

    fn demands_fields(&self, schema: &Value, depth: usize) -> bool {
        let part = |name: &str| schema.get(name).and_then(Value::as_array);
        if let Some(name) =
            schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next())
        {
            let named = self.schemas.iter().find(|(other, _)| other == name);
            // Bodies are a few levels deep. A deeper schema refers to itself.
            return depth > 8
                || named.is_none_or(|(_, schema)| self.demands_fields(&as_json(schema), depth + 1));
        }
        part("required").is_some_and(|names| !names.is_empty())
            || part("allOf")
                .is_some_and(|parts| parts.iter().any(|part| self.demands_fields(part, depth + 1)))
            || ["oneOf", "anyOf", "minProperties"].iter().any(|word| schema.get(word).is_some())
    }

    /// Adds an error status, in addition to those that follow from the declaration.
    pub fn may_fail(&mut self, status: u16) {
        self.failures.push(status);
    }

    /// Returns a reference to `T` and adds its definition to the components. A type without a name of its own (a
    /// number, list or map) is returned inline.
    pub fn schema<T: ToSchema>(&mut self) -> RefOr<Schema> {
        let schema = T::schema();
        T::schemas(&mut self.schemas);
        let is_object = matches!(&schema, RefOr::T(Schema::Object(object)) if !object.properties.is_empty())
            || matches!(&schema, RefOr::T(Schema::OneOf(_) | Schema::AllOf(_)));
        if is_object {
            let name = T::name().into_owned();
            self.schemas.push((name.clone(), schema));
            return RefOr::Ref(utoipa::openapi::Ref::from_schema_name(name));
        }
        schema
    }

    /// Returns the schema of `T` as JSON.
    pub fn schema_json<T: ToSchema>(&mut self) -> Value {
        let schema = self.schema::<T>();
        as_json(&schema)
    }

    /// Returns the components as a JSON object, for schemas that refer to them.
    pub(crate) fn components(&self) -> Value {
        let schemas: serde_json::Map<String, Value> =
            self.schemas.iter().map(|(name, schema)| (name.clone(), as_json(schema))).collect();
        json!({ "schemas": schemas })
    }
}

pub(crate) fn as_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
