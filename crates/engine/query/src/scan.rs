//! Scans: by id, by index keys, and by links. Each can be continued after any position. Each statement here has a
//! fixed text, so that it is prepared only once.

use diesel::prelude::*;
use fields::filter::Range;
use model::{FieldId, IndexId, ItemId, Result};
use records::indexes::{IndexEntry, in_range};
use records::schema::{item_links, item_unique, items};
use records::shape::Shape;
use std::collections::{HashSet, VecDeque};
use store::Read;

/// Loads at most `most` rows of a query.
macro_rules! first {
    ($read:expr, $most:expr, $query:expr) => {{
        let most: usize = $most;
        $query.limit(i64::try_from(most).unwrap_or(i64::MAX)).load($read.connection())?
    }};
}

/// The source of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScanSource {
    /// The items of the collection, by id, within a range.
    Items {
        /// Whether to read items in the trash instead of live ones.
        trashed: bool,
        /// The first and the last id.
        ids: (i64, i64),
    },
    /// The items with keys in these ranges of an index, one range after another.
    Keys {
        /// The id of the index.
        index: IndexId,
        /// The ranges, in scan order.
        ranges: VecDeque<Range>,
        /// The start of the keys without a value, which come last in both directions.
        nothing: Vec<u8>,
    },
    /// The items that link to one of these targets by a relation field.
    Links {
        /// The id of the field.
        field: FieldId,
        /// The ids of the targets, as text.
        to: VecDeque<String>,
    },
    /// The item with this digest in a unique index.
    Unique {
        /// The id of the index.
        index: IndexId,
        /// The digest.
        digest: Vec<u8>,
    },
    /// The item with this external key.
    External(String),
    /// The items with these ids.
    Ids(VecDeque<i64>),
}

/// The start of a scan.
#[derive(Debug, Clone)]
pub(crate) enum Start {
    /// After an entry.
    Behind(IndexEntry),
    /// At the first key with this prefix.
    At(Vec<u8>),
}

/// A scan in progress.
#[derive(Debug, Clone)]
pub(crate) struct KeyScan {
    source: ScanSource,
    reverse: bool,
    after: Option<IndexEntry>,
    over: bool,
    /// The ids returned so far, if an item can occur more than once.
    seen: Option<HashSet<i64>>,
}

impl KeyScan {
    /// Creates a scan, backwards if `reverse`, from the beginning or from `start`.
    pub fn new(source: ScanSource, reverse: bool, start: Option<Start>) -> Self {
        let twice = match &source {
            ScanSource::Keys { ranges, .. } => ranges.len() > 1,
            ScanSource::Links { to, .. } => to.len() > 1,
            _ => false,
        };
        let mut scan = Self { source, reverse, after: None, over: false, seen: twice.then(HashSet::new) };
        match start {
            Some(Start::Behind(place)) => scan.go_behind(place),
            Some(Start::At(keys)) => scan.go_to(keys),
            None => {}
        }
        scan
    }

    /// Skips the ranges before the keys with a prefix.
    fn go_to(&mut self, keys: Vec<u8>) {
        let ScanSource::Keys { ranges, nothing, .. } = &mut self.source else { return };
        let (reverse, start) = (self.reverse, Range::under(keys));
        let is_passed = |range: &Range| {
            let is_before = if reverse { range.from >= start.to } else { range.to <= start.from };
            is_before && range.from < *nothing
        };
        while ranges.front().is_some_and(is_passed) {
            ranges.pop_front();
        }
        self.over = ranges.is_empty();
        match ranges.front_mut().filter(|range| range.from < *nothing) {
            Some(range) if reverse => range.to = range.to.clone().min(start.to),
            Some(range) => range.from = range.from.clone().max(start.from),
            None => {}
        }
    }

    /// Skips the ranges before a position.
    fn go_behind(&mut self, place: IndexEntry) {
        if let ScanSource::Items { ids: (from, to), .. } = &mut self.source {
            if self.reverse {
                *to = (*to).min(place.id.saturating_sub(1));
            } else {
                *from = (*from).max(place.id.saturating_add(1));
            }
            return;
        }
        if let ScanSource::Keys { ranges, nothing, .. } = &mut self.source {
            let (k, nothing) = (place.k.as_slice(), nothing.as_slice());
            // Keys without a value come last in both directions, so they are compared separately.
            let is_passed = |range: &Range| match (range.from.as_slice() >= nothing, k >= nothing) {
                (true, false) => false,
                (false, true) => true,
                (false, false) if self.reverse => range.from.as_slice() > k,
                _ => range.to.as_slice() <= k,
            };
            while ranges.front().is_some_and(is_passed) {
                ranges.pop_front();
            }
            self.over = ranges.is_empty();
            if !ranges.front().is_some_and(|range| range.has(k)) {
                return;
            }
        }
        self.after = Some(place);
    }

    /// Returns whether the scan is complete.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Returns the next items, at most `most`. Empty only at the end.
    pub fn next(&mut self, read: &mut Read, shape: &Shape, most: usize) -> Result<Vec<IndexEntry>> {
        let mut found = Vec::new();
        while !self.over && found.len() < most {
            let left = most - found.len();
            let mut places = self.step(read, shape, left)?;
            let is_through = places.len() < left;
            self.after = places.last().filter(|_| !is_through).cloned();
            if is_through {
                self.leave_range();
            }
            if let Some(seen) = &mut self.seen {
                places.retain(|place| seen.insert(place.id));
            }
            found.append(&mut places);
        }
        Ok(found)
    }

    /// Advances to the next range or target.
    fn leave_range(&mut self) {
        self.over = match &mut self.source {
            ScanSource::Keys { ranges, .. } => {
                ranges.pop_front();
                ranges.is_empty()
            }
            ScanSource::Links { to, .. } => {
                to.pop_front();
                to.is_empty()
            }
            _ => true,
        };
    }

    /// Returns the next items of the current range. Fewer than `most` means that the range is complete.
    fn step(&mut self, read: &mut Read, shape: &Shape, most: usize) -> Result<Vec<IndexEntry>> {
        let reverse = self.reverse;
        let after = self.after.as_ref();
        let ids = match &mut self.source {
            ScanSource::Items { trashed, ids: (from, to) } => {
                let found = items_between(read, shape, *trashed, (*from, *to), reverse, most)?;
                if let Some(last) = found.last() {
                    if reverse {
                        *to = last.saturating_sub(1);
                    } else {
                        *from = last.saturating_add(1);
                    }
                }
                found
            }
            ScanSource::Keys { index, ranges, .. } => {
                let Some(range) = ranges.front() else { return Ok(Vec::new()) };
                return in_range(read, *index, range, after, reverse, most);
            }
            ScanSource::Links { field, to } => {
                let Some(target) = to.front() else { return Ok(Vec::new()) };
                linking(read, shape, *field, target, after.map(|place| place.id), reverse, most)?
            }
            ScanSource::Unique { index, digest } => item_unique::table
                .filter(item_unique::index_id.eq(*index))
                .filter(item_unique::h.eq(&*digest))
                .select(item_unique::item_id)
                .get_results(read.connection())?,
            ScanSource::External(key) => items::table
                .filter(items::collection_id.eq(shape.collection))
                .filter(items::external_key.eq(&*key))
                .filter(items::external_key.is_not_null())
                .filter(items::trashed_at.is_null())
                .select(items::id)
                .get_results(read.connection())?,
            ScanSource::Ids(ids) => ids.drain(..most.min(ids.len())).collect(),
        };
        Ok(ids.into_iter().map(|id| IndexEntry { k: Vec::new(), id }).collect())
    }
}

/// Returns the ids of the collection's items in a range.
fn items_between(
    read: &mut Read,
    shape: &Shape,
    trashed: bool,
    (from, to): (i64, i64),
    reverse: bool,
    most: usize,
) -> Result<Vec<i64>> {
    let all = items::table
        .filter(items::collection_id.eq(shape.collection))
        .filter(items::id.ge(from))
        .filter(items::id.le(to))
        .select(items::id);
    Ok(match (trashed, reverse) {
        (false, false) => first!(read, most, all.filter(items::trashed_at.is_null()).order(items::id)),
        (false, true) => first!(read, most, all.filter(items::trashed_at.is_null()).order(items::id.desc())),
        (true, false) => first!(read, most, all.filter(items::trashed_at.is_not_null()).order(items::id)),
        (true, true) => {
            first!(read, most, all.filter(items::trashed_at.is_not_null()).order(items::id.desc()))
        }
    })
}

/// Returns the items that link to a target, after a given one.
fn linking(
    read: &mut Read,
    shape: &Shape,
    field: FieldId,
    target: &str,
    after: Option<i64>,
    reverse: bool,
    most: usize,
) -> Result<Vec<i64>> {
    let links = item_links::table
        .filter(item_links::to_kind.eq("item"))
        .filter(item_links::to_id.eq(target))
        .filter(item_links::workspace_id.eq(shape.workspace))
        .filter(item_links::field_id.eq(field))
        .select(item_links::item_id);
    Ok(if reverse {
        let before = after.unwrap_or(i64::MAX);
        first!(read, most, links.filter(item_links::item_id.lt(before)).order(item_links::item_id.desc()))
    } else {
        let behind = after.unwrap_or(0);
        first!(read, most, links.filter(item_links::item_id.gt(behind)).order(item_links::item_id))
    })
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    n: i64,
}

/// Counts the keys in some ranges of an index, up to `most`.
pub(crate) fn count_keys(read: &mut Read, index: IndexId, ranges: &[Range], most: i64) -> Result<i64> {
    use diesel::sql_types::{BigInt, Binary};
    let mut total = 0;
    for range in ranges {
        let query = store::Cached(
            diesel::sql_query(
                "SELECT count(*) AS n FROM (SELECT 1 FROM item_keys WHERE index_id = $1 AND k >= $2 AND k < $3 LIMIT $4) AS counted",
            )
            .bind::<BigInt, _>(index.0)
            .bind::<Binary, _>(range.from.as_slice())
            .bind::<Binary, _>(range.to.as_slice())
            .bind::<BigInt, _>(most - total),
        );
        let count: Count = store::each!(read.connection(), |connection| query.get_result(connection))?;
        total += count.n;
        if total >= most {
            break;
        }
    }
    Ok(total)
}

/// Counts the live items of a collection, up to `most`.
pub(crate) fn count_items(read: &mut Read, shape: &Shape, most: i64) -> Result<i64> {
    use diesel::sql_types::BigInt;
    let query = store::Cached(
        diesel::sql_query(
            "SELECT count(*) AS n FROM (SELECT 1 FROM items WHERE collection_id = $1 AND trashed_at IS NULL LIMIT $2) AS counted",
        )
        .bind::<BigInt, _>(shape.collection.0)
        .bind::<BigInt, _>(most),
    );
    Ok(store::each!(read.connection(), |connection| query.get_result::<Count>(connection))?.n)
}

/// Returns whether an item links to one of some live items by a relation field.
pub(crate) fn points_to(
    read: &mut Read,
    item: ItemId,
    field: FieldId,
    to: &[serde_json::Value],
) -> Result<bool> {
    let linked: Vec<String> = item_links::table
        .filter(item_links::item_id.eq(item))
        .filter(item_links::field_id.eq(field))
        .filter(item_links::to_kind.eq("item"))
        .select(item_links::to_id)
        .load(read.connection())?;
    let linked: HashSet<i64> = linked.iter().filter_map(|id| id.parse().ok()).collect();
    let named = to.iter().filter_map(serde_json::Value::as_i64);
    for target in named.filter(|target| linked.contains(target)) {
        // Links of trashed items remain, in case the items are restored, but do not count.
        let live: Option<i64> = items::table
            .filter(items::id.eq(target))
            .filter(items::trashed_at.is_null())
            .select(items::id)
            .get_result(read.connection())
            .optional()?;
        if live.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
