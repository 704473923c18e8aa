//! The rows of new items and of what belongs to them, as both databases store them.

use super::row::ItemRow;
use crate::Author;
use crate::shape::Shape;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use fields::terms::Terms;
use model::{IndexId, ItemId, JsonText};

/// A value that no other item may have.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UniqueRow {
    pub(super) index_id: IndexId,
    pub(super) h: Vec<u8>,
    pub(super) item_id: ItemId,
}

/// A key of an item in an index.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyRow {
    pub(super) index_id: IndexId,
    pub(super) k: Vec<u8>,
    pub(super) item_id: ItemId,
}

/// The rows of new items of one set.
pub(super) struct NewRows<'a> {
    /// Who creates each of them, in their order.
    pub(super) authors: Vec<&'a Author>,
    pub(super) shape: &'a Shape,
    /// In the order of their ids.
    pub(super) items: Vec<ItemRow>,
    /// What the activity entry of each says.
    pub(super) entries: Vec<JsonText>,
    /// In the order of their index: neighbours share a page, and two transactions wait for each other in one order.
    pub(super) unique: Vec<UniqueRow>,
    /// In the order of their index.
    pub(super) keys: Vec<KeyRow>,
    /// The terms of those that have some.
    pub(super) terms: Vec<(ItemId, Terms)>,
}

/// How many rows were stored. Whoever loses a race for an external key or for a unique value finds fewer stored than it
/// gave.
#[derive(QueryableByName, PartialEq, Eq)]
pub(super) struct Stored {
    #[diesel(sql_type = BigInt)]
    pub(super) items: i64,
    #[diesel(sql_type = BigInt)]
    pub(super) digests: i64,
}
