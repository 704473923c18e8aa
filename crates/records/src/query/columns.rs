//! Running a query over the columnar index of a collection.

use super::plan::{self, QueryPlan};
use super::planner::Planner;

use super::scan::rows;
use super::types::{Query, Report};
use super::visit::{MOST_FETCHED, Page, PlacedRow, Visit};
use crate::columnar::{Changed, Columnar};
use crate::rows::ItemRow;
use crate::shape::Shape;
use fields::Data;
use fields::Filter;
use fields::sort::Sort;
use model::Result;
use std::ops::ControlFlow;
use store::Read;

/// Reading so many bytes of columns takes as long as fetching an item.
const BYTES_PER_ITEM: i64 = 5_000;

/// What a segment costs beside its columns, in bytes: its ids, and that it is another row.
const SEGMENT_BYTES: i64 = 2_000;

/// The most candidates that one pass over the columns gives, where conditions cannot be decided there.
const MOST_CANDIDATES: usize = 65_536;

/// A query over columns, and what it costs.
pub(super) struct ColumnarQuery<'a> {
    scan: Columnar<'a>,
    sort: Option<&'a Sort>,
    /// As items that a plan looks at.
    pub cost: i64,
}

impl<'a> ColumnarQuery<'a> {
    /// The query over the collection's columnar index, if it has one that can serve it.
    ///
    /// # Errors
    /// When the database fails.
    pub fn of(
        read: &mut Read,
        planner: &Planner,
        shape: &'a Shape,
        query: &'a Query,
        sort: Option<&'a Sort>,
        need: usize,
    ) -> Result<Option<Self>> {
        if query.trashed {
            return Ok(None);
        }
        let ids = plan::id_bounds(&query.filter);
        let Some(mut scan) = Columnar::of(shape, &query.filter, sort, ids) else { return Ok(None) };
        let segments = planner.count_segments(read, scan.index.id)?;
        let mut bytes = SEGMENT_BYTES;
        for column in scan.columns() {
            bytes += planner.column_bytes(read, scan.index.id, column)?;
        }
        scan.expect(bytes);
        let need = i64::try_from(need).unwrap_or(i64::MAX);
        let cost = (segments.saturating_mul(bytes) / BYTES_PER_ITEM).saturating_add(need);
        Ok(Some(Self { scan, sort, cost }))
    }
}

impl ColumnarQuery<'_> {
    /// Whether reading columns is cheaper than a plan.
    pub fn beats(&self, plan: &QueryPlan, filter: &Filter) -> bool {
        // Scanning items in the order of their ids stops as early, and reads all of them.
        let scans_alike = plan.is_scan() && self.scan.is_by_id() && !filter.is_empty();
        scans_alike || plan.cost > self.cost
    }
}

impl Visit<'_> {
    pub(super) fn columnar_report(&self, columns: &ColumnarQuery<'_>) -> Report {
        self.reported("columnar".to_owned(), vec![columns.scan.index.id])
    }

    /// The first `need` items behind a place; `None` where the index cannot tell.
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
            changed.places = self.places(read, &changed.ids)?;
        }
        let mut found = Vec::with_capacity(need);
        let (mut after, mut count) = (after.map(<[u8]>::to_vec), need);
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
                self.fetch(read, some, &mut found, need)?;
                if found.len() >= need {
                    return Ok(Some(Page { found, report: self.columnar_report(columns) }));
                }
                self.refuse_beyond_budget()?;
            }
            if batch.is_last {
                return Ok(Some(Page { found, report: self.columnar_report(columns) }));
            }
            after = batch.found.into_iter().next_back().map(|(place, _)| place);
            count = (count * 8).min(MOST_CANDIDATES);
        }
    }

    /// The places of those of some items that fit.
    fn places(&mut self, read: &mut Read, ids: &[i64]) -> Result<Vec<(Vec<u8>, i64)>> {
        let mut places = Vec::new();
        for some in ids.chunks(MOST_FETCHED) {
            self.spending.rows += some.len();
            for row in rows(read, self.shape, some)? {
                places.extend(self.test(read, &row)?.map(|(_, place)| (place, row.id.0)));
            }
            self.refuse_beyond_budget()?;
        }
        Ok(places)
    }

    /// Fetches candidates and takes in those that fit and still stand where they were found.
    fn fetch(
        &mut self,
        read: &mut Read,
        candidates: &[(Vec<u8>, i64)],
        found: &mut Vec<PlacedRow>,
        need: usize,
    ) -> Result<()> {
        let ids: Vec<i64> = candidates.iter().map(|(_, id)| *id).collect();
        self.spending.rows += ids.len();
        let mut candidates = candidates.iter();
        for row in rows(read, self.shape, &ids)? {
            let candidate = candidates.find(|(_, id)| *id == row.id.0);
            let Some((_, place)) = self.test(read, &row)? else { continue };
            if candidate.is_some_and(|(expected, _)| *expected == place) {
                found.push(PlacedRow { place, row });
            }
            if found.len() >= need {
                break;
            }
        }
        Ok(())
    }

    /// Hands all items that fit to `each`, by id, until it has enough. Gives the last id that was dealt with where those behind
    /// it are for a scan: the index is gone, or most items fit.
    pub(super) fn columnar_each(
        &mut self,
        read: &mut Read,
        columns: &ColumnarQuery<'_>,
        each: &mut impl FnMut(ItemRow, Data) -> Result<ControlFlow<()>>,
    ) -> Result<Option<i64>> {
        let (scan, mut after) = (&columns.scan, None);
        loop {
            // Asked anew with each batch, because time passes between two.
            let Some(changed) = scan.changed(read)? else { return Ok(Some(after.unwrap_or(0))) };
            let batch = scan.by_id(read, &changed, after, MOST_FETCHED)?;
            let Some(batch) = batch else { return Ok(Some(after.unwrap_or(0))) };
            self.by_column += batch.visited;
            for some in batch.found.chunks(MOST_FETCHED) {
                let ids: Vec<i64> = some.iter().map(|(_, id)| *id).collect();
                self.spending.rows += ids.len();
                for row in rows(read, self.shape, &ids)? {
                    let Some((data, _)) = self.test(read, &row)? else { continue };
                    if each(row, data)?.is_break() {
                        return Ok(None);
                    }
                }
                self.refuse_beyond_budget()?;
            }
            after = batch.found.last().map(|(_, id)| *id).or(after);
            if batch.is_last {
                return Ok(None);
            }
            // Where most items fit, reading all of them in their order is cheaper than fetching each.
            if batch.found.len() * 2 > batch.visited {
                return Ok(after);
            }
        }
    }
}
