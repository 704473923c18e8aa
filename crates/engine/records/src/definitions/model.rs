//! What a field is, as callers see and write it.

use super::rewrite::{self, Progress};
use super::survey::ConversionReport;
use crate::shape::{self, Index, IndexKind, IndexStatus, Shape, Shapes};
use fields::{Field, FieldOptions, FieldType};
use model::{CollectionId, Error, FieldId, Patch, Result, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::Read;
use utoipa::ToSchema;

/// A field of a collection.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "field_key": "price", "label": "Price", "type": "currency",
    "options": { "currency": "EUR", "precision": 2, "min": 0 }, "default": null,
    "position": 3, "version": 1,
}))]
pub struct CollectionField {
    /// The id of the field.
    pub id: FieldId,
    /// Always `field`.
    pub object: &'static str,
    /// The id of the collection.
    pub collection_id: CollectionId,
    /// The field's key in items. It never changes.
    pub field_key: String,
    /// The label for people.
    pub label: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// A description for people.
    pub description: Option<String>,
    /// Whether an item must have a value. Text that contains only white space is no value.
    pub required: bool,
    /// Whether the value must be unique among live items.
    pub unique: bool,
    /// For a unique field, the status of its index. Until it is `ready`, existing items may have duplicate values;
    /// `failed` means that some do.
    pub unique_status: Option<IndexStatus>,
    /// Whether an index speeds up filters and sorts by the field.
    pub indexed: bool,
    /// The value of new items that send none.
    #[schema(value_type = Option<Value>, required = true)]
    pub default: Option<Value>,
    /// The options of the field's type.
    pub options: FieldOptions,
    /// The position among the fields, from 0.
    pub position: i64,
    /// Whether the object is archived: existing values are kept, but it is not used for new ones.
    pub archived: bool,
    /// Whether the service sets the value.
    pub system: bool,
    /// Whether the value is computed from other values.
    pub computed: bool,
    /// The progress of a type change while existing values are converted.
    pub converting: Option<Progress>,
    /// The effect of a type change on items. Only in responses to such a change or its `dry_run`.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversion: Option<ConversionReport>,
    /// The version, incremented with every change.
    pub version: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
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

/// A field to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "label": "Weight", "type": "number", "options": { "precision": 2, "min": 0 } }))]
pub struct NewField {
    /// The field's key in items; derived from the label if not given. It can never be changed. `id`, `created_at`,
    /// `updated_at`, `created_by`, `version`, `position` and `external_key` are reserved.
    #[schema(pattern = "^[a-z][a-z0-9_]{0,62}$")]
    #[serde(default)]
    pub field_key: Option<String>,
    /// The label for people; the key if not given, or the name of the type, such as `Long text`, if neither is given.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    pub label: Option<String>,
    /// The type. `relation` requires `options.target_collection_id`, `formula` requires `options.expression`, `rollup`
    /// and `lookup` require `options.relation`, and `lookup` also `options.field`.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// A description for people.
    #[schema(max_length = 1000)]
    #[serde(default)]
    pub description: Option<String>,
    /// Whether an item must have a value. Text that contains only white space is no value.
    #[serde(default)]
    pub required: bool,
    /// Whether the value must be unique among live items.
    #[serde(default)]
    pub unique: bool,
    /// The value of new items that send none, in the form in which items store it.
    #[schema(value_type = Option<Value>)]
    #[serde(default)]
    pub default: Option<Value>,
    /// The options of the field's type.
    #[serde(default)]
    pub options: Option<FieldOptions>,
}

/// A change of a field. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "description": "Shown to customers." }))]
pub struct FieldPatch {
    /// The label for people.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    pub label: Option<String>,
    /// The new type. The values of all items are converted. If values would be lost, `force` is required.
    #[serde(default, rename = "type")]
    pub kind: Option<FieldType>,
    /// A description for people.
    #[schema(value_type = Option<String>, max_length = 1000)]
    #[serde(default)]
    pub description: Patch<String>,
    /// Whether an item must have a value. Text that contains only white space is no value. Items without a value get
    /// the default.
    #[serde(default)]
    pub required: Option<bool>,
    /// Whether the value must be unique among live items.
    #[serde(default)]
    pub unique: Option<bool>,
    /// The value of new items that send none. `null` removes it.
    #[schema(value_type = Option<Value>)]
    #[serde(default)]
    pub default: Patch<Value>,
    /// The options of the field's type. Options that are not sent stay unchanged, and `null` resets one. `choices`
    /// replaces the whole list; existing choices are identified by `id` or `key`.
    #[schema(value_type = Option<FieldOptions>)]
    #[serde(default)]
    pub options: Option<Map<String, Value>>,
    /// Whether the object is archived: existing values are kept, but it is not used for new ones.
    #[serde(default)]
    pub archived: Option<bool>,
    /// Whether to report the effect on items without changing anything.
    #[serde(default)]
    pub dry_run: bool,
    /// Whether to change the field even if values are lost.
    #[serde(default)]
    pub force: bool,
    /// The expected version. If the field has another version, the request is rejected with 409 `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}

/// The field of a shape, as callers see it.
///
/// # Errors
/// `not_found`.
pub(crate) fn seen_field(
    shape: &Shape,
    id: FieldId,
    converting: Option<Progress>,
) -> Result<CollectionField> {
    let field = shape.field_by_id(id).ok_or_else(|| Error::not_found("field"))?;
    Ok(CollectionField::of(shape, field, converting))
}
