//! What planning remembers between queries, and the bounds within which queries run.

use super::filter::Range;
use super::plan::MOST_COUNTED;
use super::walk;
use crate::shape::Shape;
use model::{CollectionId, IndexId, Result};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::Read;

/// How long a count is good for.
const FRESH: Duration = Duration::from_secs(10);
/// More counts than this are not kept.
const MOST_KEPT: usize = 10_000;
/// Items of a collection are counted up to here, for guesses.
const MOST_ITEMS: i64 = 100_000;

/// How much a query may look at.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Items and keys.
    pub rows: usize,
    /// How long.
    pub time: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self { rows: 200_000, time: Duration::from_secs(2) }
    }
}

/// What planning remembers, per process.
#[derive(Debug, Default)]
pub struct Planner {
    budget: Mutex<Budget>,
    counts: Mutex<HashMap<Counted, (Instant, i64)>>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Counted {
    Items(CollectionId),
    Keys(IndexId, Vec<Range>),
}

impl Planner {
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
        self.remembered(Counted::Items(shape.collection), || walk::count_items(read, shape, MOST_ITEMS))
    }

    /// About how many keys an index has in some ranges, at most 10,000.
    pub(crate) fn count_keys(&self, read: &mut Read, index: IndexId, ranges: &[Range]) -> Result<i64> {
        self.remembered(Counted::Keys(index, ranges.to_vec()), || {
            walk::count_keys(read, index, ranges, MOST_COUNTED)
        })
    }

    fn remembered(&self, what: Counted, count: impl FnOnce() -> Result<i64>) -> Result<i64> {
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
