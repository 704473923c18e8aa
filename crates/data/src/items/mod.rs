//! Items: the rows of collections.
//!
//! Whoever changes an item goes through [`Writer`], which keeps its row, its keys, its terms, its links, its activity and
//! its events in step.

pub mod activity;
mod keys;
mod row;
mod values;
mod write;

pub use keys::{Facts, creator, holder, reindex};
pub use row::{Data, Item, ItemRow, natural_place};
pub use values::{Missing, merge};
pub use write::{Draft, Writer, Written, expect_version, find, live, lock, locked, refuse_locked};

use operation::Operations;

pub(crate) fn operations() -> Operations {
    vec![]
}
