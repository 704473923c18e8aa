//! Scans of a columnar index segment by segment, and selection of the first items of an order.

use super::cache::{CachedColumns, ColumnCache};
use super::filter::{ColumnFilter, slot};
use super::selected::{CAN, SURE, Segment, SelectedRows, can_any, candidates};
use super::top::Top;
use fields::sort::Sort;
use fields::{Filter, Part, Subject, key};
use model::Result;
use records::columnar::table::{self, Place, StoredSegment, column_id};
use records::shape::{Index, IndexStatus, Shape};
use store::Read;

/// The maximum number of segments per read.
const SEGMENTS: usize = 32;
/// Segments of the first read of a scan that may stop early.
const FIRST_SEGMENTS: usize = 2;
/// The maximum bytes of columns per read, where their size is known.
const MOST_READ: i64 = 4 << 20;
/// The maximum number of items changed since their segment was written that a query evaluates itself. With more, it
/// does not use the index.
const MOST_CHANGES: i64 = 20_000;

/// The number of rows tested for an estimate.
const SAMPLED_ROWS: usize = 256;

/// A query on a columnar index.
pub(crate) struct Columnar<'a> {
    /// The index.
    pub index: &'a Index,
    filter: ColumnFilter<'a>,
    /// The parts of the order, each with the position of its column.
    sort: Vec<(Part, usize)>,
    newest_first: bool,
    /// The columns to read.
    columns: Vec<Subject>,
    /// The first and the last id of the result.
    ids: (i64, i64),
    /// Segments per read.
    segments: usize,
    /// The cache, if the columns fit into it.
    cache: Option<&'a ColumnCache>,
}

/// Candidates of a scan, in order. An item may still be rejected by its record.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The position in the order and the id of each item.
    pub found: Vec<(Vec<u8>, i64)>,
    /// Whether the scan is complete.
    pub is_last: bool,
    /// The number of items examined.
    pub visited: usize,
}

/// Statistics from the test of a segment.
#[derive(Debug, Default)]
pub(crate) struct SegmentCount {
    /// The tested items that may match.
    pub fitting: i64,
    /// The number of tested items, taken from the start of the segment.
    pub tested: i64,
    /// The number of texts that must be searched for substrings, for all items of the segment.
    pub searched: i64,
}

/// The items changed since their segment was written. Their columns are out of date.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    /// The ids, in ascending order.
    pub ids: Vec<i64>,
    /// The position in the order and the id of those that match.
    pub places: Vec<(Vec<u8>, i64)>,
}

impl<'a> Columnar<'a> {
    /// Prepares a query on the collection's columnar index. Returns `None` if there is no ready index that contains
    /// the order's columns, or if no condition can use a column.
    pub fn of(shape: &'a Shape, filter: &'a Filter, sort: Option<&'a Sort>, ids: (i64, i64)) -> Option<Self> {
        let index = records::columnar::of(shape).filter(|index| index.status == IndexStatus::Ready)?;
        let mut columns = Vec::new();
        let parts = sort.map(|sort| sort.parts.as_slice()).unwrap_or_default();
        let mut placed = |part: &Part| Some((*part, slot(index, &mut columns, part.subject)?));
        let sort_columns = parts.iter().map(&mut placed).collect::<Option<_>>()?;
        let filter = ColumnFilter::of(index, &mut columns, filter);
        if columns.is_empty() {
            return None;
        }
        let newest_first = sort.is_some_and(|sort| sort.newest_first);
        Some(Self {
            index,
            filter,
            sort: sort_columns,
            newest_first,
            columns,
            ids,
            segments: SEGMENTS,
            cache: None,
        })
    }

    /// Sets the approximate size of a segment, to limit the memory for a read.
    pub fn expect(&mut self, bytes_of_segment: i64) {
        let segments = usize::try_from(MOST_READ / bytes_of_segment.max(1)).unwrap_or(SEGMENTS);
        self.segments = segments.clamp(1, SEGMENTS);
    }

    /// Returns whether the result is ordered by id, so that a scan can stop early.
    pub fn is_by_id(&self) -> bool {
        self.sort.is_empty()
    }

    /// Returns the ids of the columns to read.
    pub fn columns(&self) -> Vec<i64> {
        self.columns.iter().map(|subject| column_id(*subject)).collect()
    }

    /// Lets the query use the cache. Returns whether the cache has its columns.
    pub fn use_cache(&mut self, cache: &'a ColumnCache) -> bool {
        self.cache = Some(cache);
        cache.peek(self.index.id, &self.columns()).is_some()
    }

    fn read(
        &self,
        read: &mut Read,
        cached: Option<&CachedColumns>,
        place: Place,
        most: usize,
    ) -> Result<Vec<StoredSegment>> {
        match cached {
            Some(cached) => Ok(cached.segments(place, most)),
            None => table::segments(read, self.index.id, &self.columns(), place, most),
        }
    }

    /// Returns the cached columns, if they are current. With `may_load`, loads them first.
    fn cached(&self, read: &mut Read, may_load: bool) -> Result<Option<CachedColumns>> {
        let Some(cache) = self.cache else { return Ok(None) };
        let (index, columns) = (self.index.id, self.columns());
        let Some(revision) = table::revision(read, index)? else { return Ok(None) };
        match cache.get(index, revision, &columns) {
            None if may_load => cache.load(read, index, revision, &columns, self.segments),
            cached => Ok(cached),
        }
    }

    /// Returns the items changed since their segment was written, or `None` if there are too many.
    pub fn changed(&self, read: &mut Read) -> Result<Option<Vec<i64>>> {
        table::changed(read, self.index.id, MOST_CHANGES)
    }

    /// Returns the first `count` items of the order after a position. `changed` replaces the rows of changed items.
    /// Returns `None` if the index has been dropped.
    pub fn top(
        &self,
        read: &mut Read,
        changed: &Changed,
        after: Option<&[u8]>,
        count: usize,
    ) -> Result<Option<Batch>> {
        let (parts, newest_first) = (self.sort.as_slice(), self.newest_first);
        let mut top = Top::new(parts, newest_first, after, count);
        for (place, id) in &changed.places {
            top.offer(place, *id);
        }
        let visited = match self.cached(read, true)? {
            Some(cached) => self.collect_cached(&cached, &changed.ids, &mut top)?,
            None => match self.collect_stored(read, &changed.ids, &mut top)? {
                Some(visited) => visited,
                None => return Ok(None),
            },
        };
        let found = top.into_items();
        Ok(Some(Batch { is_last: found.len() < count, found, visited }))
    }

    /// Collects matches of cached segments. Begins with the segments that have the first values of the order, and
    /// stops when no further segment can contain an item before the last one collected. Returns the number of items
    /// examined.
    fn collect_cached(&self, cached: &CachedColumns, changed: &[i64], top: &mut Top<'_>) -> Result<usize> {
        let stored = cached.segments(Place::Behind(i64::MIN), usize::MAX);
        let segments: Vec<Segment<'_>> = stored.iter().map(Segment::of).collect::<Result<_>>()?;
        let mut by_first: Vec<_> = segments.iter().map(|segment| (top.first_of(segment), segment)).collect();
        by_first.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut visited = 0;
        for (first, segment) in by_first {
            if top.is_full_before(&first) {
                break;
            }
            visited += segment.ids.count();
            self.collect(segment, i64::MIN, changed, top);
        }
        Ok(visited)
    }

    /// Collects matches of stored segments. Returns the number of items examined, or `None` if the index has been
    /// dropped.
    fn collect_stored(&self, read: &mut Read, changed: &[i64], top: &mut Top<'_>) -> Result<Option<usize>> {
        let (mut visited, mut behind) = (0, i64::MIN);
        loop {
            let stored = self.read(read, None, Place::Behind(behind), self.segments)?;
            for stored in &stored {
                let segment = Segment::of(stored)?;
                visited += segment.ids.count();
                self.collect(&segment, behind, changed, top);
                behind = stored.last_id;
            }
            if stored.len() < self.segments {
                break;
            }
        }
        // If the index was dropped during the scan, segments may be missing.
        Ok(table::revision(read, self.index.id)?.map(|_| visited))
    }

    fn collect(&self, segment: &Segment<'_>, behind: i64, changed: &[i64], top: &mut Top<'_>) {
        let mut rows = self.rows(segment, behind, changed);
        top.narrow(segment, &mut rows);
        if can_any(&rows) {
            self.filter.narrow(segment, &mut rows);
            top.collect(segment, &rows);
        }
    }

    /// Returns the next items by id after `after`, at least `count` if there are as many. Returns `None` if the index
    /// has been dropped.
    pub fn by_id(
        &self,
        read: &mut Read,
        changed: &[i64],
        after: Option<i64>,
        count: usize,
    ) -> Result<Option<Batch>> {
        let (first, last) = self.ids;
        let (mut above, mut below) = (first.saturating_sub(1), last.saturating_add(1));
        if let Some(after) = after {
            if self.newest_first { below = below.min(after) } else { above = above.max(after) }
        }
        let mut cached = self.cached(read, false)?;
        let mut place = if self.newest_first {
            let end = match &cached {
                Some(cached) => cached.end_of(below),
                None => table::end_of(read, self.index.id, below)?,
            };
            Place::Before(end.map_or(i64::MAX, |end| end.saturating_add(1)))
        } else {
            Place::Behind(above)
        };
        let mut by_id = ById { newest_first: self.newest_first, above, below, changed, found: Vec::new() };
        // Begin with few segments, because the first matches may be enough.
        let (mut visited, mut most) = (0, FIRST_SEGMENTS.min(self.segments));
        'segments: loop {
            let stored = self.read(read, cached.as_ref(), place, most)?;
            for stored in &stored {
                let segment = Segment::of(stored)?;
                visited += segment.ids.count();
                by_id.collect(&segment, stored.last_id, &self.select(&segment, by_id.above, changed));
                let last = stored.last_id;
                place = if self.newest_first { Place::Before(last) } else { Place::Behind(last) };
                if by_id.found.len() >= count {
                    break 'segments;
                }
            }
            if stored.len() < most || by_id.above.saturating_add(1) >= by_id.below {
                break;
            }
            most = self.segments;
            if cached.is_none() {
                // The first segments were not enough, so loading the columns now may pay off.
                cached = self.cached(read, true)?;
            }
        }
        let is_last = by_id.found.len() < count;
        if is_last {
            by_id.finish();
        }
        let is_ready = cached.is_some() || table::revision(read, self.index.id)?.is_some();
        Ok(is_ready.then_some(Batch { found: by_id.found, is_last, visited }))
    }

    /// Calls `each` with the selected rows of each segment, by id. Returns `false` if the index has been dropped.
    ///
    /// # Errors
    /// Errors of `each`.
    pub fn each_segment(
        &self,
        read: &mut Read,
        changed: &[i64],
        mut each: impl FnMut(&SelectedRows<'_>) -> Result<()>,
    ) -> Result<bool> {
        let (first, last) = self.ids;
        let cached = self.cached(read, true)?;
        let mut behind = first.saturating_sub(1);
        while behind < last {
            let stored = self.read(read, cached.as_ref(), Place::Behind(behind), self.segments)?;
            for stored in &stored {
                let segment = Segment::of(stored)?;
                let masks = self.select(&segment, behind, changed);
                each(&SelectedRows { segment: &segment, masks: &masks, sort: &self.sort })?;
                behind = stored.last_id;
            }
            if stored.len() < self.segments {
                break;
            }
        }
        Ok(cached.is_some() || table::revision(read, self.index.id)?.is_some())
    }

    /// Returns the statistics of testing the segment after an id.
    pub fn count_segment(&self, read: &mut Read, behind: i64) -> Result<SegmentCount> {
        // Cached columns of an old revision are good enough for an estimate.
        let cached = self.cache.and_then(|cache| cache.peek(self.index.id, &self.columns()));
        let stored = self.read(read, cached.as_ref(), Place::Behind(behind), 1)?;
        let Some(stored) = stored.first() else { return Ok(SegmentCount::default()) };
        let segment = Segment::of(stored)?;
        let mut rows = self.rows(&segment, i64::MIN, &[]);
        let searched = self.filter.searched(&segment, &rows);
        let tested = rows.len().min(SAMPLED_ROWS);
        rows.iter_mut().skip(tested).for_each(|row| *row = 0);
        self.filter.narrow(&segment, &mut rows);
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let fitting = candidates(&rows).count();
        Ok(SegmentCount { fitting: count(fitting), tested: count(tested), searched: count(searched) })
    }

    /// Returns the masks of a segment's rows. Rows up to `behind` are done and have no mask, nor have changed items,
    /// whose columns are out of date.
    fn select(&self, segment: &Segment<'_>, behind: i64, changed: &[i64]) -> Vec<u8> {
        let mut rows = self.rows(segment, behind, changed);
        self.filter.narrow(segment, &mut rows);
        rows
    }

    /// Returns the initial masks, before the filter: set for all rows except those up to `behind` and changed items.
    fn rows(&self, segment: &Segment<'_>, behind: i64, changed: &[i64]) -> Vec<u8> {
        let mut rows = vec![CAN | SURE; segment.ids.count()];
        let (first, last) = self.ids;
        let passed = segment.ids.before(first.max(behind.saturating_add(1)));
        let until = segment.ids.before(last.saturating_add(1));
        rows.iter_mut().take(passed).for_each(|row| *row = 0);
        rows.iter_mut().skip(until).for_each(|row| *row = 0);
        if let (Some(from), Some(to)) = (segment.ids.first(), segment.ids.last()) {
            for id in between(changed, from, to.saturating_add(1)) {
                if let Some(row) = segment.ids.row_of(id)
                    && let Some(row) = rows.get_mut(row)
                {
                    *row = 0;
                }
            }
        }
        rows
    }
}

/// Collects items in the order of their ids.
struct ById<'a> {
    newest_first: bool,
    /// Items up to this id are done.
    above: i64,
    /// Items from this id on are done.
    below: i64,
    changed: &'a [i64],
    found: Vec<(Vec<u8>, i64)>,
}

impl ById<'_> {
    /// Collects the matches of a segment, and the changed items before its end.
    fn collect(&mut self, segment: &Segment<'_>, last_id: i64, fitting: &[u8]) {
        let fits = |row: usize| segment.ids.get(row).filter(|id| *id < self.below);
        let mut ids: Vec<i64> = candidates(fitting).filter_map(fits).collect();
        let next = self.above.saturating_add(1);
        let (from, to) = if self.newest_first {
            (segment.ids.first().unwrap_or(self.below).max(next), self.below)
        } else {
            (next, last_id.saturating_add(1).min(self.below))
        };
        ids.extend(between(self.changed, from, to));
        self.take(ids);
        if self.newest_first {
            self.below = self.below.min(from);
        } else {
            self.above = self.above.max(last_id);
        }
    }

    /// Collects the changed items after the last segment.
    fn finish(&mut self) {
        let rest = between(self.changed, self.above.saturating_add(1), self.below).collect();
        self.take(rest);
    }

    fn take(&mut self, mut ids: Vec<i64>) {
        ids.sort_unstable();
        ids.dedup();
        if self.newest_first {
            ids.reverse();
        }
        let newest_first = self.newest_first;
        self.found.extend(ids.into_iter().map(|id| {
            let mut place = Vec::with_capacity(8);
            key::push_id(&mut place, id, newest_first);
            (place, id)
        }));
    }
}

/// Returns the ids in a half-open range. `ids` is sorted.
fn between(ids: &[i64], from: i64, to: i64) -> impl Iterator<Item = i64> {
    let start = ids.partition_point(|id| *id < from);
    ids.get(start..).unwrap_or_default().iter().copied().take_while(move |id| *id < to)
}
