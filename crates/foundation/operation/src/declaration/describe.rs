//! What an operation takes and gives, collected from its types.

use serde_json::{Value, json};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{RefOr, Required, Schema};
use utoipa::{IntoParams, ToSchema};

/// An answer that is no error.
pub(crate) struct Success {
    pub(crate) status: u16,
    /// The envelope's fields beside `success`.
    pub(crate) fields: Value,
    /// What its example has instead of what the types state.
    pub(crate) differs: Option<Value>,
}

/// The description of one operation, from which come its part of the contract and the check of its input.
#[derive(Default)]
pub struct Describe {
    pub(crate) path: Vec<Parameter>,
    pub(crate) query: Vec<Parameter>,
    pub(crate) body: Option<RefOr<Schema>>,
    /// The media type of a body that is read while it arrives; `None` for JSON.
    pub(crate) streamed: Option<&'static str>,
    pub(crate) documented: Vec<Parameter>,
    pub(crate) successes: Vec<Success>,
    pub(crate) failures: Vec<u16>,
    pub(crate) events: Option<&'static str>,
    pub(crate) schemas: Vec<(String, RefOr<Schema>)>,
}

impl Describe {
    /// A parameter in the path.
    pub fn path_parameter<T: ToSchema>(&mut self, name: &str) {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .schema(Some(T::schema()));
        self.path.push(parameter.build());
    }

    /// The parameters of a query type.
    pub fn query_parameters<T: IntoParams>(&mut self) {
        self.query.extend(T::into_params(|| Some(ParameterIn::Query)));
    }

    /// A parameter of query or header that the argument's own code reads and checks: the contract shows it, and that
    /// is all.
    pub fn parameter(&mut self, parameter: Parameter) {
        self.documented.push(parameter);
    }

    /// The body.
    pub fn body<T: ToSchema>(&mut self) {
        self.body = Some(self.schema::<T>());
    }

    /// A body of another media type than JSON, which the operation reads while it arrives.
    pub fn streamed_body<T: ToSchema>(&mut self, media_type: &'static str) {
        self.body::<T>();
        self.streamed = Some(media_type);
    }

    /// An answer: its status, and the envelope's fields beside `success`; optional ones in an object called
    /// `$optional`.
    pub fn success(&mut self, status: u16, fields: Value) {
        self.successes.push(Success { status, fields, differs: None });
    }

    /// A further status under which the last answer is given, and what its example then has instead.
    pub fn also(&mut self, status: u16, differs: Value) {
        if let Some(Success { fields, .. }) = self.successes.last() {
            let fields = fields.clone();
            self.successes.push(Success { status, fields, differs: Some(differs) });
        }
    }

    /// Says that a 200 may be a stream of server-sent events instead, and which.
    pub fn events(&mut self, description: &'static str) {
        self.events = Some(description);
    }

    /// Whether `{}` may be a body, as far as it depends on fields that must be there.
    pub(crate) fn takes_empty_object(&self) -> bool {
        self.body.as_ref().is_some_and(|schema| !self.demands_fields(&as_json(schema), 0))
    }

    fn demands_fields(&self, schema: &Value, depth: usize) -> bool {
        let part = |name: &str| schema.get(name).and_then(Value::as_array);
        if let Some(name) =
            schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next())
        {
            let named = self.schemas.iter().find(|(other, _)| other == name);
            // Bodies are a few levels deep; what goes deeper refers to itself.
            return depth > 8
                || named.is_none_or(|(_, schema)| self.demands_fields(&as_json(schema), depth + 1));
        }
        part("required").is_some_and(|names| !names.is_empty())
            || part("allOf")
                .is_some_and(|parts| parts.iter().any(|part| self.demands_fields(part, depth + 1)))
            || ["oneOf", "anyOf", "minProperties"].iter().any(|word| schema.get(word).is_some())
    }

    /// A status that the operation may fail with beside those that follow from its declaration.
    pub fn may_fail(&mut self, status: u16) {
        self.failures.push(status);
    }

    /// A reference to `T`, whose definition joins the document's components; types without a name of their own
    /// (numbers, lists, maps) are written out.
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

    /// `T`'s schema as JSON.
    pub fn schema_json<T: ToSchema>(&mut self) -> Value {
        let schema = self.schema::<T>();
        as_json(&schema)
    }

    /// The components as a JSON object, for schemas that refer to them.
    pub(crate) fn components(&self) -> Value {
        let schemas: serde_json::Map<String, Value> =
            self.schemas.iter().map(|(name, schema)| (name.clone(), as_json(schema))).collect();
        json!({ "schemas": schemas })
    }
}

pub(crate) fn as_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
