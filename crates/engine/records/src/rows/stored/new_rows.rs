//! The rows of new items and of what belongs to them, as both databases store them.

use crate::Author;
use crate::rows::row::ItemRow;
use crate::shape::Shape;
use fields::terms::Terms;
use model::{IndexId, ItemId, JsonText};

/// A value that no other item may have.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UniqueRow {
    pub(crate) index_id: IndexId,
    pub(crate) h: Vec<u8>,
    pub(crate) item_id: ItemId,
}

/// A key of an item in an index.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyRow {
    pub(crate) index_id: IndexId,
    pub(crate) k: Vec<u8>,
    pub(crate) item_id: ItemId,
}

/// The rows of new items of one set.
pub(crate) struct NewRows<'a> {
    /// Who creates each of them, in their order.
    pub(crate) authors: Vec<&'a Author>,
    pub(crate) shape: &'a Shape,
    /// In the order of their ids.
    pub(crate) items: Vec<ItemRow>,
    /// What the activity entry of each says.
    pub(crate) entries: Vec<JsonText>,
    /// In the order of their index: neighbours share a page, and two transactions wait for each other in one order.
    pub(crate) unique: Vec<UniqueRow>,
    /// In the order of their index.
    pub(crate) keys: Vec<KeyRow>,
    /// The terms of those that have some.
    pub(crate) terms: Vec<(ItemId, Terms)>,
}

/// How many rows were stored. Whoever loses a race for an external key or for a unique value finds fewer stored than it
/// gave.
#[derive(PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) items: usize,
    pub(crate) digests: usize,
}
