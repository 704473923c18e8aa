//! The events of links.

use super::model::ItemLink;
use operation::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// An event of a link. Links that are written as values of items are published by `item.updated`.
#[derive(Event)]
#[event(scope = "items:read", subject = "item", id = "link.from.item_id")]
pub(crate) enum LinkEvent<'a> {
    /// An item was linked to an object.
    #[event(name = "item.link.created")]
    Created(LinkData<'a>),
    /// A link of an item was deleted.
    #[event(name = "item.link.deleted")]
    Deleted(LinkData<'a>),
}

/// A link was made or removed.
#[derive(Serialize, ToSchema)]
pub(crate) struct LinkData<'a> {
    /// The link.
    pub(super) link: &'a ItemLink,
}
