//! Items: the rows of collections.
//!
//! Whoever changes an item goes through [`Writer`], which keeps its row, its keys, its terms, its links, its activity and
//! its events in step.

pub mod activity;
mod bulk;
mod choices;
mod comments;
mod desk;
mod duplicate;
mod field_values;
mod files;
mod find;
mod keys;
mod leave;
mod lock;
pub mod matching;
mod model;
mod moving;
mod operations;
mod place;
mod position;
pub mod purge;
mod reshape;
mod row;
mod trash;
mod values;
mod write;

pub use comments::ItemComment;
pub(crate) use desk::Desk;
pub use files::ItemFile;
pub use find::{expect_version, find, find_locked, holder_of_key, live, lock, locked, refuse_locked};
pub use keys::{digest, holder, index_keys, reindex};
pub use row::{Item, ItemRow, creator, natural_place};
pub use values::{Missing, merge};
pub use write::{Draft, Writer, Written};

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
        Box::new(purge::EmptyItemTrash),
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
