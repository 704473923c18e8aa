//! Collections: their fields, indexes and views.
//!
//! A change of a schema locks the row of the collection ([`records::shape::for_change`]), writes, increments the
//! version of the shape, and records an activity entry and an event, all in one transaction. The module
//! [`records::definitions::rewrite`] then adapts existing items.

mod activity;
mod copy;
mod create;
mod events;
mod field_options;
mod fields;
mod groups;
pub mod indexes;
mod jobs;
mod lifecycle;
mod model;
mod operations;
mod ports;
mod purge;
mod queries;
mod rank;
mod schema;
mod stats;
pub mod views;

pub use create::create;
pub(crate) use events::CollectionEvent;
pub use jobs::jobs;
pub use model::{Collection, CollectionStatus, NewCollection, SettingsPatch};
pub use ports::CollectionNames;

use operation::Operations;

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
    all.push(Box::new(fields::ListFields));
    all.push(Box::new(fields::CreateField));
    all.push(Box::new(fields::ReorderFields));
    all.push(Box::new(fields::GetField));
    all.push(Box::new(fields::UpdateField));
    all.push(Box::new(fields::DeleteField));
    all.push(Box::new(field_options::CreateFieldOption));
    all.push(Box::new(field_options::UpdateFieldOption));
    all.push(Box::new(field_options::DeleteFieldOption));
    all.extend(views::operations());
    all.push(Box::new(indexes::ListIndexes));
    all.push(Box::new(indexes::CreateIndex));
    all.push(Box::new(indexes::DeleteIndex));
    all
}
