//! The events of collections.

use super::model::Collection;
use operation::Event;
use records::activity::Changes;
use serde::Serialize;
use utoipa::ToSchema;

/// An event of a collection.
#[derive(Event)]
#[event(scope = "collections:read", subject = "collection", id = "collection.id")]
pub(crate) enum CollectionEvent<'a> {
    /// A collection was created.
    #[event(name = "collection.created")]
    Created(CollectionData<'a>),
    /// A collection or the order of its fields was changed.
    #[event(name = "collection.updated")]
    Updated(CollectionChanged<'a>),
    /// A collection was deleted with its items.
    #[event(name = "collection.deleted")]
    Deleted(CollectionData<'a>),
    /// A collection was archived.
    #[event(name = "collection.archived")]
    Archived(CollectionChanged<'a>),
    /// A collection was unarchived.
    #[event(name = "collection.unarchived")]
    Unarchived(CollectionChanged<'a>),
}

// A doc comment here would be published as the schema's description; the variants have the text that callers read.
#[derive(Serialize, ToSchema)]
pub(crate) struct CollectionData<'a> {
    #[schema(inline)]
    pub(super) collection: &'a Collection,
}

// As above.
#[derive(Serialize, ToSchema)]
pub(crate) struct CollectionChanged<'a> {
    #[schema(inline)]
    pub(super) collection: &'a Collection,
    /// The changes by name, each with `old` and `new`.
    #[schema(value_type = Object)]
    pub(super) changed: &'a Changes,
}
