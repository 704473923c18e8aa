//! Collections: what shape items have, and how they are looked at.
//!
//! Whoever changes a schema holds the collection's row ([`crate::shape::for_change`]), writes, raises the shape's version,
//! and tells of it: an activity entry and an event in the same transaction. What that means for items that are there
//! already is [`definitions::rewrite`]'s.

mod activity;
mod copy;
mod count;
mod create;
pub(crate) mod definitions;
mod groups;
pub(crate) mod index_jobs;
pub mod indexes;
mod indexing;
mod jobs;
mod lifecycle;
mod model;
mod operations;
mod purge;
mod queries;
mod rank;
mod schema;
mod stats;
mod tell;
mod uniques;
pub mod views;

pub use create::create;
pub use definitions::{CollectionField, NewField};
pub use index_jobs::handle_index_jobs;
pub use jobs::handle_jobs;
pub use model::{Collection, CollectionStatus, NewCollection, SettingsPatch};

use operation::Operations;

/// Up to so many items are counted whenever somebody asks for a collection.
const EXACT: i64 = 100_000;

/// Up to so many in lists of collections.
const EXACT_IN_LISTS: i64 = 10_000;

pub(crate) fn operations() -> Operations {
    let mut all: Operations = vec![
        Box::new(operations::ListCollections),
        Box::new(operations::CreateCollection),
        Box::new(groups::ListCollectionGroups),
        Box::new(groups::CreateCollectionGroup),
        Box::new(groups::UpdateCollectionGroup),
        Box::new(groups::DeleteCollectionGroup),
        Box::new(operations::GetCollection),
        Box::new(operations::UpdateCollection),
        Box::new(lifecycle::DeleteCollection),
        Box::new(copy::DuplicateCollection),
        Box::new(lifecycle::ArchiveCollection),
        Box::new(lifecycle::UnarchiveCollection),
        Box::new(schema::GetCollectionSchema),
        Box::new(stats::GetCollectionStats),
        Box::new(activity::ListCollectionActivity),
    ];
    all.extend(definitions::operations());
    all.extend(views::operations());
    all.push(Box::new(indexes::ListIndexes));
    all.push(Box::new(indexes::CreateIndex));
    all.push(Box::new(indexes::DeleteIndex));
    all
}
