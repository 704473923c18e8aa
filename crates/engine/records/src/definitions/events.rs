//! The events of fields.

use super::model::{CollectionField, seen_field};
use crate::Author;
use crate::activity::Changes;
use crate::publish::{changed_at, differences, plain_integer, publish};
use crate::shape::{self, Shapes};
use model::{CollectionId, Result};
use operation::Event;
use serde::Serialize;
use store::Tx;
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

/// The event and the activity of a field that was just changed, as it was `before`.
pub(crate) fn publish_change(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    collection: CollectionId,
    before: &CollectionField,
) -> Result<()> {
    let shape = shape::within_change(tx, shapes, author.workspace, collection)?;
    let after = seen_field(&shape, before.id, None)?;
    let path = format!("fields.{}", after.field_key);
    let changed = differences(before, &after)?;
    let data = FieldChanged { field: &after, collection_id: collection, changed: &changed };
    publish(tx, author, collection, &changed_at(&path, &changed), &FieldEvent::Updated(data))
}
