//! Request bodies, responses and rows of variables.

use crate::schema::variables;
use diesel::prelude::*;
use model::{JsonText, Metadata, Patch, Result, Timestamp, VariableId, WorkspaceId, text_enum};
use ports::VariableReference;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

text_enum! {
    /// The type of a variable's value.
    pub enum VariableType {
        /// Text.
        String = "string",
        /// A number.
        Number = "number",
        /// `true` or `false`.
        Boolean = "boolean",
        /// Any JSON.
        Json = "json",
        /// Text that is stored encrypted and never returned.
        Secret = "secret",
    }
}

text_enum! {
    /// With which keys a variable applies.
    #[derive(Default)]
    pub enum VariableEnv {
        /// With all keys, unless there is a variable of the same key for the key's environment.
        #[default]
        All = "all",
        /// With live keys.
        Live = "live",
        /// With test keys.
        Test = "test",
    }
}

/// A variable.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "key": "shop.phone", "type": "string", "value": "+34911234567", "has_value": true,
    "description": "The number that customers call.", "group": "Shop", "env": "all", "used_by_count": 1, "version": 1,
}))]
pub struct Variable {
    /// The id of the variable.
    pub id: VariableId,
    /// Always `variable`.
    pub object: &'static str,
    /// The key, unique in the workspace for each `env`.
    pub key: String,
    /// The type of the value.
    #[serde(rename = "type")]
    pub kind: VariableType,
    /// The value. `null` for a `secret`.
    #[schema(value_type = Value)]
    pub value: Option<JsonText>,
    /// Whether there is a value. For a `secret`, this is all that is shown of it.
    pub has_value: bool,
    /// What the variable is for.
    pub description: Option<String>,
    /// A name by which user interfaces group variables.
    pub group: Option<String>,
    /// With which keys the variable applies.
    pub env: VariableEnv,
    /// The number of objects that refer to the variable.
    pub used_by_count: i64,
    /// Your own key-value data.
    pub metadata: Metadata,
    /// The version, incremented with every change.
    pub version: i64,
    /// When the value was last set.
    pub last_set_at: Timestamp,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// A variable to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "key": "shop.phone", "type": "string", "value": "+34911234567", "group": "Shop" }))]
pub struct NewVariable {
    /// The key: up to 63 lower-case letters, digits, `_` and `.`, beginning with a letter. It cannot be changed later.
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z][a-z0-9_.]{0,62}$")]
    pub(super) key: String,
    /// The type of the value. It cannot be changed later.
    #[serde(rename = "type")]
    pub(super) kind: VariableType,
    /// The value, of the variable's type: up to 64 KB. A `secret` is a text that is not empty.
    #[schema(value_type = Value)]
    #[serde(deserialize_with = "any")]
    pub(super) value: Value,
    /// What the variable is for.
    #[schema(max_length = 1000)]
    #[serde(default)]
    pub(super) description: Option<String>,
    /// A name by which user interfaces group variables.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    pub(super) group: Option<String>,
    /// With which keys the variable applies; `all` if not given. It cannot be changed later.
    #[serde(default)]
    pub(super) env: VariableEnv,
    /// Your own key-value data.
    #[serde(default)]
    pub(super) metadata: Option<Metadata>,
}

/// A change of a variable. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "value": "+34917654321" }))]
pub struct VariablePatch {
    /// The value, of the variable's type: up to 64 KB. Only a variable of the type `json` can be `null`.
    #[schema(value_type = Value)]
    #[serde(default)]
    pub(super) value: Patch<Value>,
    /// What the variable is for. `null` removes it.
    #[schema(value_type = Option<String>, max_length = 1000)]
    #[serde(default)]
    pub(super) description: Patch<String>,
    /// A name by which user interfaces group variables. `null` removes it.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    pub(super) group: Patch<String>,
    /// Your own key-value data, which replaces what is stored.
    #[serde(default)]
    pub(super) metadata: Option<Metadata>,
    /// The expected version. If the variable has another version, the request is rejected with 409 `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub(super) version: Option<i64>,
}

/// How to delete a variable.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct DeleteVariableQuery {
    /// Whether to delete the variable although something refers to it.
    #[serde(default)]
    pub(super) force: Option<bool>,
}

/// An object that refers to a variable.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "type": "agent", "id": "1", "name": "Sales", "field": "instructions" }))]
pub struct VariableUsage {
    /// Always `variable_usage`.
    pub object: &'static str,
    /// The type of the object, such as `agent`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The id of the object.
    pub id: String,
    /// The name of the object.
    pub name: String,
    /// The field of the object that refers to the variable.
    pub field: String,
}

impl From<VariableReference> for VariableUsage {
    fn from(reference: VariableReference) -> Self {
        Self {
            object: "variable_usage",
            kind: reference.object,
            id: reference.id,
            name: reference.name,
            field: reference.field.into_owned(),
        }
    }
}

/// Deserializes a required value that may be `null`. Without this function, serde would treat a missing member as
/// `null`.
fn any<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Value, D::Error> {
    Value::deserialize(deserializer)
}

/// A row of `variables`.
#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = variables, treat_none_as_null = true)]
pub(super) struct VariableRow {
    #[diesel(skip_insertion)]
    pub(super) id: VariableId,
    pub(super) workspace_id: WorkspaceId,
    pub(super) key: String,
    pub(super) env: VariableEnv,
    pub(super) kind: VariableType,
    pub(super) value: Option<JsonText>,
    pub(super) sealed_value: Option<String>,
    pub(super) description: Option<String>,
    pub(super) group_name: Option<String>,
    pub(super) metadata: JsonText,
    pub(super) version: i64,
    pub(super) last_set_at: Timestamp,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
}

operation::resource! {
    VariableRow, variables, VariableId, "variable";
    unique "key": key, env;
    at most 300 "variables per workspace";
}

impl VariableRow {
    /// Builds the response. `references` are those of all variables of the workspace.
    pub(super) fn variable(self, references: &[VariableReference]) -> Result<Variable> {
        let mut users: Vec<(&str, &str)> = references
            .iter()
            .filter(|reference| reference.key == self.key)
            .map(|reference| (reference.object, reference.id.as_str()))
            .collect();
        users.sort_unstable();
        users.dedup();
        Ok(Variable {
            id: self.id,
            object: "variable",
            used_by_count: i64::try_from(users.len()).unwrap_or(i64::MAX),
            has_value: self.value.is_some() || self.sealed_value.is_some(),
            key: self.key,
            kind: self.kind,
            value: self.value,
            description: self.description,
            group: self.group_name,
            env: self.env,
            metadata: self.metadata.parse()?,
            version: self.version,
            last_set_at: self.last_set_at,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}
