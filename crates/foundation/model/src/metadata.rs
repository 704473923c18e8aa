//! A caller's own notes on a resource.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Deref;
use utoipa::openapi::schema::{AdditionalProperties, Type};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};

/// A map of a caller's own notes on a resource: at most 16 pairs, keys up to 64 and values up to 512 characters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metadata(pub BTreeMap<String, String>);

impl Metadata {
    /// No notes.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Deref for Metadata {
    type Target = BTreeMap<String, String>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Metadata {
    type Item = (&'a String, &'a String);
    type IntoIter = std::collections::btree_map::Iter<'a, String, String>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl utoipa::PartialSchema for Metadata {
    fn schema() -> RefOr<Schema> {
        let text = |longest| ObjectBuilder::new().schema_type(Type::String).max_length(Some(longest));
        ObjectBuilder::new()
            .description(Some("Your own key-value data. Keys have 1 to 64 characters, values up to 512."))
            .examples([serde_json::json!({ "order": "A-1042" })])
            .max_properties(Some(16))
            .property_names(Some(Schema::Object(text(64).min_length(Some(1)).build())))
            .additional_properties(Some(AdditionalProperties::RefOr(text(512).into())))
            .into()
    }
}

impl utoipa::ToSchema for Metadata {}
