//! Links of items.
//!
//! Relation fields and free links are one table, `item_links`, so that both ends always agree. An item's own values hold
//! a copy of the first 25 ids of each relation field; the table is the truth.

mod copies;
pub(crate) mod hold;
mod list;
mod model;
mod operations;
mod relation;
mod replace;
pub(crate) mod table;
mod targets;
mod trash;

pub(crate) use copies::inline;
pub(crate) use hold::{Grip, Grips, hold};
pub use model::ItemLink;
pub(crate) use operations::{CREATED, DELETED};
pub(crate) use relation::{differences, foresee, point, take_references};
pub use trash::{CASCADE, cascade};
pub(crate) use trash::{
    Fallout, fallout, forget, hold_leaving, hold_purged, hold_returning, let_go, return_to, take_back,
};

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
