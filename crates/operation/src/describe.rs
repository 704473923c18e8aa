//! What an operation takes and gives, collected from its types.

use serde_json::{Value, json};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{RefOr, Required, Schema};
use utoipa::{IntoParams, ToSchema};

/// The description of one operation, from which come its part of the contract and the check of its input.
#[derive(Default)]
pub struct Describe {
    pub(crate) path: Vec<Parameter>,
    pub(crate) query: Vec<Parameter>,
    pub(crate) body: Option<RefOr<Schema>>,
    pub(crate) success_status: u16,
    pub(crate) success: Option<Value>,
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

    /// The body.
    pub fn body<T: ToSchema>(&mut self) {
        self.body = Some(self.schema::<T>());
    }

    /// The answer: its status, and the envelope's fields beside `success`.
    pub fn success(&mut self, status: u16, fields: Value) {
        self.success_status = status;
        self.success = Some(fields);
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
