//! What a field is, as callers see and write it.

use super::rewrite::{self, Progress};
use super::survey::ConversionReport;
use crate::shape::{self, Index, IndexKind, IndexStatus, Shape, Shapes};
use fields::{Field, FieldOptions, FieldType};
use model::{CollectionId, Error, FieldId, Patch, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::Read;
use utoipa::ToSchema;

/// A field of a collection.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CollectionField {
    /// The field.
    pub id: FieldId,
    /// Always `field`.
    pub object: &'static str,
    /// The collection it belongs to.
    pub collection_id: CollectionId,
    /// What items call it. It never changes.
    pub field_key: String,
    /// What people read.
    pub label: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// What it is for.
    pub description: Option<String>,
    /// Whether an item must have a value. Of a text, white space alone is none.
    pub required: bool,
    /// Whether no two live items may have the same value.
    pub unique: bool,
    /// For a unique field, how far its index is: until it is `ready`, items that were there before may clash; `failed`
    /// says that some do.
    pub unique_status: Option<IndexStatus>,
    /// Whether an index makes filters and sorts by it fast.
    pub indexed: bool,
    /// What a new item gets that says nothing.
    #[schema(value_type = Option<Value>)]
    pub default: Option<Value>,
    /// What its type was told.
    pub options: FieldOptions,
    /// Its place among the fields, from 0.
    pub position: i64,
    /// Whether it is kept for what it holds only.
    pub archived: bool,
    /// Whether the service sets it from the item itself.
    pub system: bool,
    /// Whether the service computes it from other values.
    pub computed: bool,
    /// While the values of items that were there before are being changed to fit: how far that is.
    pub converting: Option<Progress>,
    /// In answers to a change of type, and to a `dry_run`: what the change does to items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversion: Option<ConversionReport>,
    /// Raised with every change.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl CollectionField {
    /// A field of `shape` as callers see it.
    pub fn of(shape: &Shape, field: &Field, converting: Option<Progress>) -> Self {
        let alone = |index: &&Index| index.parts.len() == 1 && index.has_field(field.id);
        let unique = shape.indexes.iter().filter(alone).find(|index| index.kind == IndexKind::Unique);
        let serves =
            |index: &Index| matches!(index.kind, IndexKind::Single | IndexKind::Set) && index.is_maintained();
        Self {
            id: field.id,
            object: "field",
            collection_id: shape.collection,
            field_key: field.key.clone(),
            label: field.label.clone(),
            kind: field.kind,
            description: field.description.clone(),
            required: field.required,
            unique: field.unique,
            unique_status: unique.filter(|_| field.unique).map(|index| index.status),
            indexed: shape.indexes.iter().filter(alone).any(serves),
            default: field.default.clone(),
            options: field.options.clone(),
            position: field.position,
            archived: field.archived,
            system: field.kind.is_read_only() && !field.kind.is_computed(),
            computed: field.kind.is_computed(),
            converting,
            conversion: None,
            version: field.version,
            created_at: field.created_at,
            updated_at: field.updated_at,
        }
    }
}

/// A field as it is now.
///
/// # Errors
/// `not_found`.
pub fn read_field(
    read: &mut Read,
    shapes: &Shapes,
    workspace: WorkspaceId,
    collection: CollectionId,
    id: FieldId,
) -> model::Result<CollectionField> {
    let shape = shape::for_read(read, shapes, workspace, collection)?;
    let field = shape.field_by_id(id).ok_or_else(|| Error::not_found("field"))?;
    let progress = rewrite::progress(read, collection)?;
    Ok(CollectionField::of(&shape, field, progress.get(&id).copied()))
}

/// A field to be created.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewField {
    /// What items are to call it; made of the label if not given. It can never be changed. `id`, `created_at`,
    /// `updated_at`, `created_by`, `version`, `position` and `external_key` are taken.
    #[schema(pattern = "^[a-z][a-z0-9_]{0,62}$")]
    #[serde(default)]
    pub field_key: Option<String>,
    /// What people read; if not given the key, or where that is not given either the name of the type, such as `Long text`.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    pub label: Option<String>,
    /// Its type. `relation` needs `options.target_collection_id`, `formula` `options.expression`, `rollup` and `lookup`
    /// `options.relation`, and the latter `options.field`.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// What it is for.
    #[schema(max_length = 1000)]
    #[serde(default)]
    pub description: Option<String>,
    /// Whether an item must have a value. Of a text, white space alone is none.
    #[serde(default)]
    pub required: bool,
    /// Whether no two live items may have the same value.
    #[serde(default)]
    pub unique: bool,
    /// What a new item gets that says nothing, in the form in which items hold it.
    #[schema(value_type = Option<Value>)]
    #[serde(default)]
    pub default: Option<Value>,
    /// What its type is told.
    #[serde(default)]
    pub options: Option<FieldOptions>,
}

/// A change of a field. What is not sent stays as it is.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldPatch {
    /// What people read.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    pub label: Option<String>,
    /// Another type. The values of all items are converted; those that cannot be are lost, which needs `force`.
    #[serde(default, rename = "type")]
    pub kind: Option<FieldType>,
    /// What it is for.
    #[schema(value_type = Option<String>, max_length = 1000)]
    #[serde(default)]
    pub description: Patch<String>,
    /// Whether an item must have a value; of a text, white space alone is none. Items that have none get the default.
    #[serde(default)]
    pub required: Option<bool>,
    /// Whether no two live items may have the same value.
    #[serde(default)]
    pub unique: Option<bool>,
    /// What a new item gets that says nothing; `null` is nothing.
    #[schema(value_type = Option<Value>)]
    #[serde(default)]
    pub default: Patch<Value>,
    /// What its type is told. An option that is not sent stays as it is, `null` takes it back; `choices` is the whole
    /// list, in which a choice is known by its `id` or `key`.
    #[schema(value_type = Option<FieldOptions>)]
    #[serde(default)]
    pub options: Option<Map<String, Value>>,
    /// Whether it is kept for what it holds only.
    #[serde(default)]
    pub archived: Option<bool>,
    /// Only tell what a change of type or choices would do to the items.
    #[serde(default)]
    pub dry_run: bool,
    /// Change it although values are lost.
    #[serde(default)]
    pub force: bool,
    /// The version that the change was made for: 409 `version_conflict` where the field has another by now.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}
