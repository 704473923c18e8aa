//! What planning remembers between queries, and the bounds within which queries run.

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

/// How long a count is good for.
const FRESH: Duration = Duration::from_secs(10);
/// Keys are counted up to here.
pub const MOST_COUNTED: i64 = 10_000;
/// More counts than this are not kept.
const MOST_KEPT: usize = 10_000;
/// Items of a collection are counted up to here, for guesses.
const MOST_ITEMS: i64 = 100_000;

/// How much a query may look at. It is counted, not timed, so that a query is answered or refused however busy the
/// machine is.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Items, keys and links. Items of which only columns are read do not count.
    pub rows: usize,
    /// Bytes of items' values.
    pub bytes: usize,
    /// How long a query may take at the most: a safety net for the service, which answers 503 when it tears.
    pub timeout: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self { rows: 300_000, bytes: 1 << 30, timeout: Duration::from_secs(60) }
    }
}

/// Some items of a collection that were tested.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// Those that fit, or may.
    pub fitting: i64,
    /// All of them.
    pub tested: i64,
}

impl Sample {
    /// About how many items must be looked at to find so many that fit.
    pub fn items_for(self, need: i64) -> i64 {
        // Where none fits, one half is taken to do.
        let doubled = self.fitting.saturating_mul(2).saturating_add(1);
        need.saturating_mul(2).saturating_mul(self.tested.saturating_add(1)) / doubled
    }
}

/// What can test some items of a collection.
pub(crate) trait Sampler {
    /// Tests some, of `all`, for a query that needs so many.
    ///
    /// # Errors
    /// When the database fails.
    fn sample(&mut self, read: &mut Read, planner: &Planner, all: i64, need: i64) -> Result<Sample>;
}

/// What planning remembers, per process.
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
    /// A planner that knows nothing yet.
    pub fn new(db: Db) -> Self {
        Self {
            db: db.background(),
            usage: Usage::default(),
            budget: Mutex::default(),
            counts: Mutex::default(),
            columns: None,
        }
    }

    /// A planner for queries that are waited for, which keeps columns in memory.
    pub fn with_cache(db: Db) -> Self {
        Self { columns: Some(ColumnCache::default()), ..Self::new(db) }
    }

    /// Where columns are kept.
    pub(crate) fn columns(&self) -> Option<&ColumnCache> {
        self.columns.as_ref()
    }

    /// Counts a query, and says what it calls for.
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

    /// The connections that work beside queries may take.
    pub fn background(&self) -> &Db {
        &self.db
    }

    /// How much a query may look at.
    pub fn budget(&self) -> Budget {
        *self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes how much a query may look at.
    pub fn set_budget(&self, budget: Budget) {
        *self.budget.lock().unwrap_or_else(PoisonError::into_inner) = budget;
    }

    /// About how many live items a collection has, at most 100,000.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) fn count_items(&self, read: &mut Read, shape: &Shape) -> Result<i64> {
        self.remembered(CountKey::Items(shape.collection), || scan::count_items(read, shape, MOST_ITEMS))
    }

    /// About how many keys an index has in some ranges, at most `most`.
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

    /// About how many segments a columnar index has.
    pub(crate) fn count_segments(&self, read: &mut Read, index: IndexId) -> Result<i64> {
        self.remembered(CountKey::Segments(index), || columnar::table::count(read, index))
    }

    /// About how many bytes a column has in each segment of a columnar index.
    pub(crate) fn column_bytes(&self, read: &mut Read, index: IndexId, column: i64) -> Result<i64> {
        self.remembered(CountKey::ColumnBytes(index, column), || {
            columnar::table::bytes_of(read, index, column)
        })
    }

    /// About where the first and the last segment of a columnar index end.
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
