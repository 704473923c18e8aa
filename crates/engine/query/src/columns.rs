//! Queries on the columnar index of a collection: their cost and their execution.

use super::planning::plan::{self, QueryPlan};
use super::planning::planner::{Planner, Sample, Sampler};
use super::runs::{self, Placed, Runs};
use super::types::{Query, Report};
use super::visit::{Fitting, MOST_FETCHED, Page, PlacedRow, Visit};
use crate::column_scan::{Changed, ColumnCache, Columnar, SelectedRows};
use fields::Filter;
use fields::sort::Sort;
use model::Result;
use records::columnar::ROWS;
use records::shape::Shape;
use store::Read;

/// Reading this many bytes of columns costs as much as fetching one item.
const BYTES_PER_ITEM: i64 = 3_500;

/// The overhead of a segment in bytes: its lookup, its ids, and the tests of its items.
const SEGMENT_BYTES: i64 = 25_000;

/// The overhead of a cached segment in bytes, per column.
const CACHED_COLUMN_BYTES: i64 = 600;

/// Searching this many texts for a substring costs as much as fetching one item.
const TEXTS_PER_ITEM: i64 = 100;

/// The number of segments sampled to estimate how many items match.
const SAMPLED: i64 = 4;

/// The maximum number of candidates in one pass over the columns, if conditions cannot be decided there.
const MOST_CANDIDATES: usize = 65_536;

/// An aggregation of the items of a query.
pub(super) trait Summary {
    /// Adds an item.
    ///
    /// # Errors
    /// If there are too many groups.
    fn add(&mut self, fitting: &Fitting) -> Result<()>;

    /// Adds the matching rows of a segment. If a row's entries do not determine its values, its id goes to `unknown`.
    ///
    /// # Errors
    /// If there are too many groups.
    fn add_columns(&mut self, rows: &SelectedRows<'_>, unknown: &mut Vec<i64>) -> Result<()>;

    /// Removes all items.
    fn clear(&mut self);
}

/// A page that is being filled.
struct OrderedPage<'a> {
    runs: Runs<'a>,
    found: Vec<PlacedRow>,
    need: usize,
}

/// A query on columns, with its estimated cost.
pub(super) struct ColumnarQuery<'a> {
    scan: Columnar<'a>,
    sort: Option<&'a Sort>,
    /// The upper bound of its cost, in items fetched.
    pub cost: i64,
    /// The expected cost. In the order of ids the scan may stop early.
    pub expected: i64,
    /// The approximate number of segments.
    segments: i64,
    /// The cache and the cost of a cached scan, if the columns are not cached but would fit.
    uncached: Option<(&'a ColumnCache, i64)>,
}

impl<'a> ColumnarQuery<'a> {
    /// Prepares a query on the collection's columnar index. Returns `None` if no index can serve it.
    pub fn of(
        read: &mut Read,
        planner: &'a Planner,
        shape: &'a Shape,
        query: &'a Query,
        sort: Option<&'a Sort>,
        need: usize,
    ) -> Result<Option<Self>> {
        // Items in the trash are in no index.
        if query.trashed {
            return Ok(None);
        }
        let ids = plan::id_bounds(&query.filter);
        let Some(mut scan) = Columnar::of(shape, &query.filter, sort, ids) else { return Ok(None) };
        let segments = planner.count_segments(read, scan.index.id)?;
        let mut bytes = 0;
        for column in scan.columns() {
            bytes += planner.column_bytes(read, scan.index.id, column)?;
        }
        scan.expect(bytes);
        let need = i64::try_from(need).unwrap_or(i64::MAX);
        let costing = |bytes: i64| (segments.saturating_mul(bytes) / BYTES_PER_ITEM).saturating_add(need);
        let columns = i64::try_from(scan.columns().len()).unwrap_or(i64::MAX);
        let cached = costing(CACHED_COLUMN_BYTES.saturating_mul(columns));
        let cache = planner.columns().filter(|_| ColumnCache::has_room_for(segments, bytes));
        let is_cached = cache.is_some_and(|cache| scan.use_cache(cache));
        let cost = if is_cached { cached } else { costing(bytes.saturating_add(SEGMENT_BYTES)) };
        let uncached = cache.filter(|_| !is_cached).map(|cache| (cache, cached));
        Ok(Some(Self { scan, sort, cost, expected: cost, segments, uncached }))
    }
}

impl ColumnarQuery<'_> {
    /// Returns whether this query is cheaper than a plan.
    pub fn beats(&self, plan: &QueryPlan, filter: &Filter) -> bool {
        // A scan of items by id stops as early, but reads whole items.
        let scans_alike = plan.is_scan() && self.scan.is_by_id() && !filter.is_empty();
        scans_alike || plan.cost > self.expected || self.is_worth_loading(plan)
    }

    /// Returns whether loading the columns now pays off, given the cost of this plan and earlier ones.
    fn is_worth_loading(&self, plan: &QueryPlan) -> bool {
        let Some((cache, cached)) = self.uncached else { return false };
        plan.cost > cached && cache.is_worth_loading(self.scan.index.id, plan.cost - cached, self.cost)
    }
}

impl Sampler for ColumnarQuery<'_> {
    /// Samples segments across the collection, to estimate the cost of substring searches and how early a scan in the
    /// order of ids stops.
    fn sample(&mut self, read: &mut Read, planner: &Planner, all: i64, need: i64) -> Result<Sample> {
        let (first, last) = planner.segment_bounds(read, self.scan.index.id)?;
        let step = last.saturating_sub(first) / SAMPLED;
        let mut sample = Sample { fitting: 0, tested: 0 };
        let mut searched = 0;
        for place in 0..SAMPLED {
            let behind = first.saturating_sub(1).saturating_add(step / 2 + step.saturating_mul(place));
            let count = self.scan.count_segment(read, behind)?;
            sample.fitting += count.fitting;
            sample.tested += count.tested;
            searched += count.searched;
        }
        // Scale the number of searched texts from the sample to all segments.
        let mut searching = searched.saturating_mul(self.segments) / SAMPLED / TEXTS_PER_ITEM;
        if !self.scan.is_by_id() && all > 0 {
            // Only items that can be on the page are tested.
            searching = searching.saturating_mul(tested_of(all, sample.items_for(need))) / all;
        }
        self.cost = self.cost.saturating_add(searching);
        self.expected = self.cost;
        if let Some((_, cached)) = &mut self.uncached {
            *cached = cached.saturating_add(searching);
        }
        if self.scan.is_by_id() && all > 0 {
            // In the order of ids the scan stops once it has enough matches, at the end of a segment.
            let looked_at = sample.items_for(need).saturating_add(i64::try_from(ROWS).unwrap_or_default());
            let share = self.cost.saturating_mul(looked_at.min(all)) / all;
            self.expected = share.saturating_add(need).min(self.cost);
        }
        Ok(sample)
    }
}

/// Estimates how many items a scan tests to find the first `enough` items of an order. The fuller the heap, the more
/// items the first part of the order excludes before their test. So the number grows with the logarithm of `all /
/// enough`.
fn tested_of(all: i64, enough: i64) -> i64 {
    let enough = enough.saturating_add(i64::try_from(ROWS).unwrap_or_default());
    let times =
        all.checked_div(enough).and_then(i64::checked_ilog2).map_or(1, |halved| halved.saturating_add(1));
    enough.saturating_mul(times.into()).min(all)
}

impl Visit<'_> {
    pub(super) fn columnar_report(&self, columns: &ColumnarQuery<'_>) -> Report {
        self.reported("columnar".to_owned(), vec![columns.scan.index.id])
    }

    /// Returns the first `need` items after a position, or `None` if the index cannot answer the query.
    pub(super) fn columnar_page(
        &mut self,
        read: &mut Read,
        columns: &ColumnarQuery<'_>,
        after: Option<&[u8]>,
        need: usize,
    ) -> Result<Option<Page>> {
        let ColumnarQuery { scan, sort: Some(sort), .. } = columns else { return Ok(None) };
        let Some(ids) = scan.changed(read)? else { return Ok(None) };
        let mut changed = Changed { ids, places: Vec::new() };
        if !scan.is_by_id() {
            // The columns of changed items are out of date, so evaluate their records.
            changed.places = self.places(read, &changed.ids)?;
        }
        let shape = self.shape;
        for (place, _) in &mut changed.places {
            *place = runs::in_index(sort, shape, place);
        }
        let mut page = OrderedPage { runs: Runs::new(sort, shape, after, need), found: Vec::new(), need };
        let (mut after, mut count) = (after.map(|after| runs::start(sort, shape, after)), need);
        loop {
            let batch = if scan.is_by_id() {
                let after = after.as_deref().and_then(|after| Some(sort.split(after)?.1));
                scan.by_id(read, &changed.ids, after, count)?
            } else {
                scan.top(read, &changed, after.as_deref(), count)?
            };
            let Some(batch) = batch else { return Ok(None) };
            self.by_column += batch.visited;
            for some in batch.found.chunks(MOST_FETCHED.min(count.max(1))) {
                self.fetch(read, sort, some, &mut page)?;
                if page.found.len() >= need {
                    return Ok(Some(Page { found: page.found, report: self.columnar_report(columns) }));
                }
                self.refuse_beyond_budget()?;
            }
            if batch.is_last {
                let mut placed = Vec::new();
                page.runs.finish(&mut placed);
                self.take_up_to(read, need, &mut placed, &mut page.found)?;
                let is_short = page.runs.is_short && page.found.len() < need;
                let report = self.columnar_report(columns);
                return Ok((!is_short).then_some(Page { found: page.found, report }));
            }
            after = batch.found.into_iter().next_back().map(|(place, _)| place);
            // Too few candidates matched, so take more of them in the next pass.
            count = (count * 8).min(MOST_CANDIDATES);
        }
    }

    /// Returns the positions of the matching items among `ids`.
    fn places(&mut self, read: &mut Read, ids: &[i64]) -> Result<Vec<Placed>> {
        let mut places = Vec::new();
        for some in ids.chunks(MOST_FETCHED) {
            self.spending.rows += some.len();
            let fitting = self.fitting(read, some)?;
            places.extend(fitting.into_iter().map(|fitting| (fitting.place, fitting.row.id.0)));
            self.refuse_beyond_budget()?;
        }
        Ok(places)
    }

    /// Fetches candidates and adds those that still match at the same position, until the page is full.
    fn fetch(
        &mut self,
        read: &mut Read,
        sort: &Sort,
        candidates: &[Placed],
        page: &mut OrderedPage<'_>,
    ) -> Result<()> {
        self.spending.rows += candidates.len();
        let shape = self.shape;
        let mut placed = candidates.to_vec();
        // Few of many candidates may match, and the columns may contain truncated texts. Test these with the fields
        // only, before fetching whole items.
        if candidates.len() > page.need
            || candidates.iter().any(|(place, _)| runs::is_in_run(sort, shape, place))
        {
            let ids: Vec<i64> = candidates.iter().map(|(_, id)| *id).collect();
            let fitting = self.fitting(read, &ids)?;
            let mut fitting = fitting.into_iter().map(|fitting| (fitting.place, fitting.row.id.0)).peekable();
            placed.clear();
            for (place, id) in candidates {
                let now = fitting.next_if(|(_, other)| other == id);
                placed.extend(now.filter(|(now, _)| runs::in_index(sort, shape, now) == *place));
            }
        }
        let mut ordered = Vec::with_capacity(placed.len());
        placed.into_iter().for_each(|placed| page.runs.push(placed, &mut ordered));
        self.take_up_to(read, page.need, &mut ordered, &mut page.found)
    }

    /// Adds all matching items to a summary: by their columns, or by their records where the columns do not determine
    /// the values. Returns `false` if the index was dropped meanwhile.
    pub(super) fn columnar_summary(
        &mut self,
        read: &mut Read,
        columns: &ColumnarQuery<'_>,
        summary: &mut impl Summary,
    ) -> Result<bool> {
        let Some(mut rest) = columns.scan.changed(read)? else { return Ok(false) };
        let changed = rest.clone();
        let is_there = columns.scan.each_segment(read, &changed, |rows| {
            self.by_column += rows.count();
            rest.extend(rows.doubtful());
            summary.add_columns(rows, &mut rest)?;
            self.refuse_beyond_budget()
        })?;
        for some in rest.chunks(MOST_FETCHED).take_while(|_| is_there) {
            self.spending.rows += some.len();
            for fitting in self.fitting(read, some)? {
                summary.add(&fitting)?;
            }
            self.refuse_beyond_budget()?;
        }
        Ok(is_there)
    }

    /// Calls `each` with all matching items, by id. Returns the last id processed if an ordinary scan should continue
    /// after it: because the index was dropped, or because most items match.
    pub(super) fn columnar_each(
        &mut self,
        read: &mut Read,
        columns: &ColumnarQuery<'_>,
        each: &mut impl FnMut(Fitting) -> Result<()>,
    ) -> Result<Option<i64>> {
        let (scan, mut after) = (&columns.scan, None);
        loop {
            // Read the changes again for each batch, because items may have changed since the last one.
            let Some(changed) = scan.changed(read)? else { return Ok(Some(after.unwrap_or(0))) };
            let batch = scan.by_id(read, &changed, after, MOST_FETCHED)?;
            let Some(batch) = batch else { return Ok(Some(after.unwrap_or(0))) };
            self.by_column += batch.visited;
            for some in batch.found.chunks(MOST_FETCHED) {
                let ids: Vec<i64> = some.iter().map(|(_, id)| *id).collect();
                self.spending.rows += ids.len();
                for fitting in self.fitting(read, &ids)? {
                    each(fitting)?;
                }
                self.refuse_beyond_budget()?;
            }
            after = batch.found.last().map(|(_, id)| *id).or(after);
            if batch.is_last {
                return Ok(None);
            }
            // If most items match, reading them in sequence is cheaper than fetching each.
            if batch.found.len() * 2 > batch.visited {
                return Ok(after);
            }
        }
    }
}
