//! Items: the records of collections.
//!
//! All changes of items go through [`records::rows::Writer`].

mod activity;
mod answer;
mod bulk;
mod comments;
mod duplicate;
mod empty_trash;
mod events;
mod field_values;
mod file_references;
mod files;
mod item;
mod kind;
mod lock;
mod model;
mod moving;
mod operations;
mod position;
mod together;
mod trash;

pub(crate) use events::{CommentEvent, FileEvent};
pub use file_references::ItemReferences;
pub use item::Item;
pub use kind::ITEMS;
pub(crate) use kind::ItemEvent;
pub use model::{ItemComment, ItemFile};

use operation::Operations;

pub(crate) fn operations() -> Operations {
    vec![
        Box::new(operations::CreateItem),
        Box::new(bulk::BulkCreateItems),
        Box::new(bulk::BulkUpdateItems),
        Box::new(bulk::BulkUpsertItems),
        Box::new(bulk::BulkDeleteItems),
        Box::new(operations::GetItem),
        Box::new(operations::UpdateItem),
        Box::new(operations::ReplaceItem),
        Box::new(trash::DeleteItem),
        Box::new(trash::RestoreItem),
        Box::new(empty_trash::EmptyItemTrash),
        Box::new(duplicate::DuplicateItem),
        Box::new(moving::MoveItem),
        Box::new(position::SetItemPosition),
        Box::new(field_values::SetItemField),
        Box::new(field_values::ClearItemField),
        Box::new(field_values::IncrementItemField),
        Box::new(lock::LockItem),
        Box::new(lock::UnlockItem),
        Box::new(comments::ListItemComments),
        Box::new(comments::CreateItemComment),
        Box::new(comments::UpdateItemComment),
        Box::new(comments::DeleteItemComment),
        Box::new(activity::ListItemActivity),
        Box::new(files::ListItemFiles),
        Box::new(files::AttachItemFile),
        Box::new(files::DetachItemFile),
    ]
}
