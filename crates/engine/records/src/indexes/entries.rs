//! Reading the entries of an index in the order of their keys.
//!
//! A condition on `(k, item_id)` as a pair would be no seek on SQLite, so going on behind an entry is two statements: the
//! rest of the run of equal keys, and the keys behind.

use crate::schema::item_keys;
use diesel::prelude::*;
use fields::filter::{Range, behind};
use model::{IndexId, Result};
use store::Read;

/// An entry of an index, which is also where a scan stands: behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// The key; empty where a scan goes by the ids of items.
    pub k: Vec<u8>,
    /// The id of the item.
    pub id: i64,
}

/// The entries of a range of keys, behind one of them: at most `most`.
///
/// # Errors
/// When the database fails.
pub fn in_range(
    read: &mut Read,
    index: IndexId,
    range: &Range,
    after: Option<&IndexEntry>,
    reverse: bool,
    most: usize,
) -> Result<Vec<IndexEntry>> {
    let mut rest = range.clone();
    let mut found = Vec::new();
    if let Some(place) = after {
        let run = item_keys::table
            .filter(item_keys::index_id.eq(index))
            .filter(item_keys::k.eq(&place.k))
            .select((item_keys::k, item_keys::item_id));
        found = if reverse {
            run.filter(item_keys::item_id.lt(place.id))
                .order(item_keys::item_id.desc())
                .limit(limit(most))
                .load(read.connection())?
        } else {
            run.filter(item_keys::item_id.gt(place.id))
                .order(item_keys::item_id)
                .limit(limit(most))
                .load(read.connection())?
        };
        if reverse {
            rest.to = rest.to.min(place.k.clone());
        } else {
            rest.from = rest.from.max(behind(&place.k));
        }
    }
    let left = most - found.len();
    if left > 0 && !rest.is_empty() {
        let keys = item_keys::table
            .filter(item_keys::index_id.eq(index))
            .filter(item_keys::k.ge(&rest.from))
            .filter(item_keys::k.lt(&rest.to))
            .select((item_keys::k, item_keys::item_id));
        let behind: Vec<(Vec<u8>, i64)> = if reverse {
            keys.order((item_keys::k.desc(), item_keys::item_id.desc()))
                .limit(limit(left))
                .load(read.connection())?
        } else {
            keys.order((item_keys::k, item_keys::item_id)).limit(limit(left)).load(read.connection())?
        };
        found.extend(behind);
    }
    Ok(found.into_iter().map(|(k, id): (Vec<u8>, i64)| IndexEntry { k, id }).collect())
}

fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}
