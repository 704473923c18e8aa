//! The events of fields.

use super::model::CollectionField;
use crate::activity::Changes;
use crate::publish::plain_integer;
use model::CollectionId;
use operation::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// An event of a field.
#[derive(Event)]
#[event(scope = "collections:read", subject = "collection", id = "collection_id")]
pub enum FieldEvent<'a> {
    /// A field was created.
    #[event(name = "field.created")]
    Created(FieldData<'a>),
    /// A field was changed. Values of items may be converted in the background.
    #[event(name = "field.updated")]
    Updated(FieldChanged<'a>),
    /// A field was deleted with its values.
    #[event(name = "field.deleted")]
    Deleted(FieldData<'a>),
}

// A doc comment here would be published as the schema's description; the variants have the text that callers read.
#[derive(Serialize, ToSchema)]
pub struct FieldData<'a> {
    #[schema(inline)]
    pub(super) field: &'a CollectionField,
    #[schema(schema_with = plain_integer)]
    pub(super) collection_id: CollectionId,
}

// As above.
#[derive(Serialize, ToSchema)]
pub struct FieldChanged<'a> {
    #[schema(inline)]
    pub(super) field: &'a CollectionField,
    #[schema(schema_with = plain_integer)]
    pub(super) collection_id: CollectionId,
    /// The changes by name, each with `old` and `new`.
    #[schema(value_type = Object)]
    pub(super) changed: &'a Changes,
}
