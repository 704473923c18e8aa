//! The events of comments and files of items.

use super::model::{ItemComment, ItemFile};
use model::{CollectionId, ItemId};
use operation::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// An event of a comment.
#[derive(Event)]
#[event(scope = "items:read", subject = "item", id = "item_id")]
pub(crate) enum CommentEvent {
    /// A comment was added to an item.
    #[event(name = "item.comment.created")]
    Created(CommentData),
    /// A comment was changed, or its thread resolved or reopened.
    #[event(name = "item.comment.updated")]
    Updated(CommentData),
    /// A comment was deleted.
    #[event(name = "item.comment.deleted")]
    Deleted(CommentData),
}

/// A comment on an item was written, changed or deleted.
#[derive(Serialize, ToSchema)]
pub(crate) struct CommentData {
    /// The comment after the change.
    pub(super) comment: ItemComment,
    /// The id of the item.
    pub(super) item_id: ItemId,
    /// The id of its collection.
    pub(super) collection_id: CollectionId,
}

/// An event of an item's file.
#[derive(Event)]
#[event(scope = "items:read", subject = "item", id = "item_id")]
pub(crate) enum FileEvent<'a> {
    /// A file was attached to an item.
    #[event(name = "item.file.attached")]
    Attached(FileData<'a>),
    /// A file was detached from an item.
    #[event(name = "item.file.detached")]
    Detached(FileData<'a>),
}

/// A file was attached to an item, or detached.
#[derive(Serialize, ToSchema)]
pub(crate) struct FileData<'a> {
    /// The file.
    pub(super) file: &'a ItemFile,
    /// The id of the item.
    pub(super) item_id: ItemId,
    /// The id of its collection.
    pub(super) collection_id: CollectionId,
}
