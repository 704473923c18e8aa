//! Collections: what shape items have, and how they are looked at.

pub(crate) mod index_jobs;
pub mod indexes;

pub use index_jobs::handle_index_jobs;

use operation::Operations;

pub(crate) fn operations() -> Operations {
    vec![Box::new(indexes::ListIndexes), Box::new(indexes::CreateIndex), Box::new(indexes::DeleteIndex)]
}
