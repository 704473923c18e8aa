//! The settings of all types of nodes, as the contract shows them.

use super::NodeType;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::schema::{AdditionalProperties, Type};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The settings of a node of any type, as the contract shows them. A draft may have settings that do not fit their type, so the
/// contract names the schema of each type without demanding it.
#[derive(Debug)]
pub struct NodeConfig;

impl PartialSchema for NodeConfig {
    fn schema() -> RefOr<Schema> {
        let reference =
            |kind: &NodeType| json!({ "$ref": format!("#/components/schemas/{}", kind.schemas().0) });
        let by_type: Map<String, Value> =
            NodeType::ALL.iter().map(|kind| (kind.as_str().to_owned(), reference(kind))).collect();
        let description = "The settings of a node. `x-schema-by-type` has the schema for each type of node. A draft is stored \
                           even if its settings do not fit: its validation says what is wrong.";
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some(description))
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .extensions(Some(Extensions::from_iter([("x-schema-by-type", by_type)])))
            .into()
    }
}

impl ToSchema for NodeConfig {
    fn name() -> Cow<'static, str> {
        "FlowNodeConfig".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        for kind in NodeType::ALL {
            let (name, schema, used) = kind.schemas();
            schemas.push((name, schema));
            schemas.extend(used);
        }
    }
}
