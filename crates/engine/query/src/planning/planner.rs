//! State of the planner between queries: cached counts, statistics and the budget.

use crate::column_scan::ColumnCache;
use crate::scan;
use crate::types::{Query, Report};
use crate::usage::{Needs, Usage};
use fields::filter::Range;
use model::{CollectionId, IndexId, Result, Timestamp};
use records::columnar;
use records::shape::Shape;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::{Db, Read};

/// How long a cached count is used.
const FRESH: Duration = Duration::from_secs(10);
/// The bound for counting keys.
pub const MOST_COUNTED: i64 = 10_000;
/// The maximum number of cached counts.
const MOST_KEPT: usize = 10_000;
/// The bound for counting items of a collection, for estimates.
const MOST_ITEMS: i64 = 100_000;

/// The limits of a query. They count work instead of time, so that the same query is accepted or refused regardless
/// of the load.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// The maximum number of items, keys and links. Items whose columns alone are read do not count.
    pub rows: usize,
    /// The maximum number of bytes of items' values.
    pub bytes: usize,
    /// The maximum duration. A safety net for an overloaded machine; exceeding it gives a 503.
    pub timeout: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self { rows: 300_000, bytes: 1 << 30, timeout: Duration::from_secs(60) }
    }
}

/// The result of testing a sample of items.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// The items that match, or may match.
    pub fitting: i64,
    /// The number of tested items.
    pub tested: i64,
}

impl Sample {
    /// Estimates how many items must be examined to find `need` matches.
    pub fn items_for(self, need: i64) -> i64 {
        // Counting half a match extra avoids a division by zero.
        let doubled = self.fitting.saturating_mul(2).saturating_add(1);
        need.saturating_mul(2).saturating_mul(self.tested.saturating_add(1)) / doubled
    }
}

/// A way to test a sample of items.
pub(crate) trait Sampler {
    /// Tests some of `all` items for a query that needs `need` matches.
    fn sample(&mut self, read: &mut Read, planner: &Planner, all: i64, need: i64) -> Result<Sample>;
}

/// The state of the planner. One per process.
pub struct Planner {
    db: Db,
    usage: Usage,
    budget: Mutex<Budget>,
    counts: Mutex<HashMap<CountKey, (Instant, i64)>>,
    columns: Option<ColumnCache>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum CountKey {
    Items(CollectionId),
    Keys(IndexId, Vec<Range>, i64),
    Segments(IndexId),
    ColumnBytes(IndexId, i64),
    FirstSegment(IndexId),
    LastSegment(IndexId),
}

impl Planner {
    /// Creates a planner with an empty state.
    pub fn new(db: Db) -> Self {
        Self {
            db: db.background(),
            usage: Usage::default(),
            budget: Mutex::default(),
            counts: Mutex::default(),
            columns: None,
        }
    }

    /// Creates a planner for interactive queries, with a cache of columns.
    pub fn with_cache(db: Db) -> Self {
        Self { columns: Some(ColumnCache::default()), ..Self::new(db) }
    }

    /// Returns the cache of columns.
    pub(crate) fn columns(&self) -> Option<&ColumnCache> {
        self.columns.as_ref()
    }

    /// Counts a query and returns the resulting needs.
    pub fn count(
        &self,
        shape: &Shape,
        query: &Query,
        report: &Report,
        shown: usize,
        now: Timestamp,
    ) -> Needs {
        self.usage.note(shape, query, report, shown, now)
    }

    /// Returns the connections for background work.
    pub fn background(&self) -> &Db {
        &self.db
    }

    /// Returns the limits of a query.
    pub fn budget(&self) -> Budget {
        *self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the limits of a query.
    pub fn set_budget(&self, budget: Budget) {
        *self.budget.lock().unwrap_or_else(PoisonError::into_inner) = budget;
    }

    /// Returns the approximate number of live items of a collection, at most 100,000.
    pub(crate) fn count_items(&self, read: &mut Read, shape: &Shape) -> Result<i64> {
        self.remembered(CountKey::Items(shape.collection), || scan::count_items(read, shape, MOST_ITEMS))
    }

    /// Returns the approximate number of keys in some ranges of an index, at most `most`.
    pub(crate) fn count_keys(
        &self,
        read: &mut Read,
        index: IndexId,
        ranges: &[Range],
        most: i64,
    ) -> Result<i64> {
        self.remembered(CountKey::Keys(index, ranges.to_vec(), most), || {
            scan::count_keys(read, index, ranges, most)
        })
    }

    /// Returns the approximate number of segments of a columnar index.
    pub(crate) fn count_segments(&self, read: &mut Read, index: IndexId) -> Result<i64> {
        self.remembered(CountKey::Segments(index), || columnar::table::count(read, index))
    }

    /// Returns the approximate size of a column per segment, in bytes.
    pub(crate) fn column_bytes(&self, read: &mut Read, index: IndexId, column: i64) -> Result<i64> {
        self.remembered(CountKey::ColumnBytes(index, column), || {
            columnar::table::bytes_of(read, index, column)
        })
    }

    /// Returns the approximate ends of the first and the last segment.
    pub(crate) fn segment_bounds(&self, read: &mut Read, index: IndexId) -> Result<(i64, i64)> {
        let first = self.remembered(CountKey::FirstSegment(index), || {
            Ok(columnar::table::end_of(read, index, i64::MIN)?.unwrap_or_default())
        })?;
        let last = self.remembered(CountKey::LastSegment(index), || {
            Ok(columnar::table::last_end(read, index)?.unwrap_or_default())
        })?;
        Ok((first, last))
    }

    fn remembered(&self, what: CountKey, count: impl FnOnce() -> Result<i64>) -> Result<i64> {
        let kept = || self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = kept().get(&what).filter(|(at, _)| at.elapsed() < FRESH).map(|(_, count)| *count);
        if let Some(count) = fresh {
            return Ok(count);
        }
        let count = count()?;
        let mut kept = kept();
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(what, (Instant::now(), count));
        Ok(count)
    }
}
