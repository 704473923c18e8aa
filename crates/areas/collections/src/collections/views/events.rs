//! The events of views.

use super::model::CollectionView;
use model::CollectionId;
use operation::Event;
use records::activity::Changes;
use records::publish::plain_integer;
use serde::Serialize;
use utoipa::ToSchema;

/// An event of a view.
#[derive(Event)]
#[event(scope = "collections:read", subject = "collection", id = "collection_id")]
pub(crate) enum ViewEvent<'a> {
    /// A view was created.
    #[event(name = "view.created")]
    Created(ViewData<'a>),
    /// A view was changed.
    #[event(name = "view.updated")]
    Updated(ViewChanged<'a>),
    /// A view was deleted.
    #[event(name = "view.deleted")]
    Deleted(ViewData<'a>),
}

// A doc comment here would be published as the schema's description; the variants have the text that callers read.
#[derive(Serialize, ToSchema)]
pub(crate) struct ViewData<'a> {
    #[schema(inline)]
    pub(super) view: &'a CollectionView,
    #[schema(schema_with = plain_integer)]
    pub(super) collection_id: CollectionId,
}

// As above.
#[derive(Serialize, ToSchema)]
pub(crate) struct ViewChanged<'a> {
    #[schema(inline)]
    pub(super) view: &'a CollectionView,
    #[schema(schema_with = plain_integer)]
    pub(super) collection_id: CollectionId,
    /// The changes by name, each with `old` and `new`.
    #[schema(value_type = Object)]
    pub(super) changed: &'a Changes,
}
