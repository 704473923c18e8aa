//! Links of items.
//!
//! Relation fields and free links share one table, `item_links`, so that both ends always agree. The values of an
//! item contain a copy of the first 25 ids of each relation field; the table is authoritative.

mod events;
mod list;
mod model;
mod operations;
mod replace;
mod targets;

pub(crate) use events::LinkEvent;
pub use model::ItemLink;

use operation::Operations;

pub(crate) fn operations() -> Operations {
    vec![
        Box::new(list::ListItemLinks),
        Box::new(operations::CreateItemLink),
        Box::new(replace::ReplaceItemLinks),
        Box::new(operations::DeleteItemLink),
        Box::new(list::ListItemLinkKinds),
    ]
}
