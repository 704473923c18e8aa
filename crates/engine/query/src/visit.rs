//! Execution of a plan: fetching and testing items within a budget.

use super::planning::plan::QueryPlan;
use super::planning::planner::{Budget, Planner};
use super::runs::{self, Placed, Runs};
use super::scan::points_to;
use super::types::{Query, Report};
use fields::filter::name_of;
use fields::sort::Sort;
use fields::value::MOST_RELATED;
use fields::{Data, Filter, Record, Subject, SystemColumn};
use model::{Code, Error, IndexId, ItemId, Result};
use records::indexes::IndexEntry;
use records::rows::{ItemRow, TestedRow, by_ids, pick, tested_rows};
use records::shape::{IndexKind, IndexStatus, Shape};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Instant;
use store::Read;

/// The maximum number of items fetched at a time.
pub(super) const MOST_FETCHED: usize = 1_000;

/// The minimum number of items fetched at a time, after the first batch.
const LEAST_FETCHED: usize = 8;

/// When to retry a query that timed out.
const RETRY_AFTER_SECONDS: i64 = 10;

/// An item of a page.
#[derive(Debug, Clone)]
pub struct PlacedRow {
    /// The position in the order.
    pub place: Vec<u8>,
    /// The item.
    pub row: ItemRow,
}

/// The result of a query, with its cost.
#[derive(Debug)]
pub struct Page {
    /// The items, in order.
    pub found: Vec<PlacedRow>,
    /// The report.
    pub report: Report,
}

/// Reading columns of this many items costs about as much as fetching one.
const COLUMNS_PER_ITEM: usize = 1_024;

/// The consumed part of a query's budget.
#[derive(Debug)]
pub struct Spending {
    budget: Budget,
    began: Instant,
    /// Items, keys and links so far.
    pub rows: usize,
    /// Bytes of items' values so far.
    pub bytes: usize,
}

impl Spending {
    /// Starts with nothing consumed.
    pub fn new(planner: &Planner) -> Self {
        Self { budget: planner.budget(), began: Instant::now(), rows: 0, bytes: 0 }
    }

    /// Returns whether the query may continue.
    ///
    /// # Errors
    /// 503 `service_unavailable` if the query has exceeded its timeout, because the machine is overloaded.
    pub(crate) fn is_within_budget(&self) -> Result<bool> {
        if self.began.elapsed() >= self.budget.timeout {
            let message = "The service is too busy to execute this query. Retry it later.";
            return Err(Error::new(Code::ServiceUnavailable, message).retry_after(RETRY_AFTER_SECONDS));
        }
        Ok(self.rows < self.budget.rows && self.bytes < self.budget.bytes)
    }
}

/// The progress of a run that stops when enough items match.
#[derive(Debug, Clone, Copy)]
struct Progress {
    /// The number of matches needed, or `None` for all.
    need: Option<usize>,
    fetched: usize,
    fitting: usize,
}

impl Progress {
    /// Returns how many items to fetch next, at most `most`. Estimates the number from the share of items that
    /// matched, but at most doubles the total.
    fn next(self, most: usize) -> usize {
        let most = most.clamp(1, MOST_FETCHED);
        let Some(need) = self.need else { return most };
        let grown = self.fetched.saturating_add(need).clamp(1, most);
        let missing = need.saturating_sub(self.fitting);
        match missing.saturating_mul(self.fetched).checked_div(self.fitting) {
            // Add an eighth, because the share is only an estimate.
            Some(expected) => (expected + expected / 8).max(LEAST_FETCHED).min(grown),
            None => grown,
        }
    }
}

/// An execution of a query over items.
pub(super) struct Visit<'a> {
    pub(super) shape: &'a Shape,
    filter: &'a Filter,
    sort: Option<&'a Sort>,
    trashed: bool,
    keys: Vec<&'a str>,
    /// Whether the conditions or the order need system columns.
    with_system_columns: bool,
    pub(super) spending: Spending,
    /// The number of items whose columns were read.
    pub(super) by_column: usize,
    /// The run gives up after examining this many items.
    pub(super) give_up_at: usize,
}

/// An item that matches.
pub(super) struct Fitting {
    pub row: TestedRow,
    /// The values that the query needs.
    pub data: Data,
    /// The position in the order; empty without one.
    pub place: Vec<u8>,
}

/// The result of a scan in list order.
enum Met {
    /// The first items, or `None` if the scan gave up.
    Found(Option<Vec<PlacedRow>>),
    /// Some items have texts that the index truncates, so their order is not known.
    LongTexts,
}

impl<'a> Visit<'a> {
    /// Creates an execution. `subjects` are needed in addition to those of the filter and the order.
    pub(super) fn new(
        planner: &Planner,
        shape: &'a Shape,
        query: &'a Query,
        sort: Option<&'a Sort>,
        subjects: impl IntoIterator<Item = Subject>,
    ) -> Self {
        let mut fields = BTreeSet::new();
        let mut with_system_columns = goes_by_system_columns(&query.filter);
        let sorted = sort.into_iter().flat_map(|sort| sort.parts.iter().map(|part| part.subject));
        for subject in subjects.into_iter().chain(sorted) {
            match subject {
                Subject::Field(id) => drop(fields.insert(id)),
                Subject::System(column) => with_system_columns |= column != SystemColumn::Id,
            }
        }
        query.filter.subjects(shape, &mut fields);
        let keys = shape.fields.iter().filter(|field| fields.contains(&field.id));
        let keys = keys.map(|field| field.key.as_str()).collect();
        let (filter, trashed, spending) = (&query.filter, query.trashed, Spending::new(planner));
        let (by_column, give_up_at) = (0, usize::MAX);
        Self { shape, filter, sort, trashed, keys, with_system_columns, spending, by_column, give_up_at }
    }

    pub(super) fn reported(&self, plan: String, uses: Vec<IndexId>) -> Report {
        let visited = self.spending.rows + self.by_column;
        let cost = self.spending.rows + self.by_column / COLUMNS_PER_ITEM;
        Report { plan, uses, visited, cost }
    }

    pub(super) fn report(&self, plan: &QueryPlan) -> Report {
        self.reported(plan.name.clone(), plan.uses.clone())
    }

    pub(super) fn page(
        &mut self,
        read: &mut Read,
        plan: &QueryPlan,
        after: Option<&[u8]>,
        need: usize,
    ) -> Result<Page> {
        let page = self.page_within(read, plan, after, need)?;
        page.ok_or_else(|| Error::internal("a query without a limit was given up"))
    }

    /// Returns the page, or `None` if the run gave up.
    pub(super) fn page_within(
        &mut self,
        read: &mut Read,
        plan: &QueryPlan,
        after: Option<&[u8]>,
        need: usize,
    ) -> Result<Option<Page>> {
        let found = if plan.ordered {
            self.first_met(read, plan, after, need)?
        } else {
            self.best_of_all(read, plan, after, need)?
        };
        Ok(found.map(|found| Page { found, report: self.report(plan) }))
    }

    /// Returns the first items of a scan in list order.
    fn first_met(
        &mut self,
        read: &mut Read,
        plan: &QueryPlan,
        after: Option<&[u8]>,
        need: usize,
    ) -> Result<Option<Vec<PlacedRow>>> {
        if plan.is_all_of(self.filter)
            && let Met::Found(found) = self.first_of_all(read, plan, after, need)?
        {
            return Ok(found);
        }
        let Some(sort) = self.sort else { return Ok(None) };
        let mut runs = Runs::new(sort, self.shape, after, need);
        let (mut found, mut placed) = (Vec::with_capacity(need), Vec::with_capacity(need));
        let is_through = self.run(read, plan, after, Some(need), |visit, read, fitting| {
            runs.push((fitting.place, fitting.row.id.0), &mut placed);
            if found.len() + placed.len() >= need {
                visit.take_up_to(read, need, &mut placed, &mut found)?;
            }
            Ok(if found.len() < need { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        if !is_through {
            return Ok(None);
        }
        runs.finish(&mut placed);
        self.take_up_to(read, need, &mut placed, &mut found)?;
        if runs.is_short && found.len() < need {
            // Items of a long run were dropped and are missing now, so collect the first items from a complete scan.
            return self.best_of_all(read, plan, after, need);
        }
        Ok(Some(found))
    }

    /// Fetches items in order until `need` are found.
    pub(super) fn take_up_to(
        &mut self,
        read: &mut Read,
        need: usize,
        placed: &mut Vec<Placed>,
        found: &mut Vec<PlacedRow>,
    ) -> Result<()> {
        let mut rest = std::mem::take(placed);
        while found.len() < need && !rest.is_empty() {
            let behind = rest.split_off(rest.len().min(need - found.len()));
            self.take(read, &mut rest, found)?;
            rest = behind;
        }
        Ok(())
    }

    /// Returns the first items of a scan in list order whose ranges cover all conditions. Because every item matches,
    /// they are fetched whole, without a test beforehand.
    fn first_of_all(
        &mut self,
        read: &mut Read,
        plan: &QueryPlan,
        after: Option<&[u8]>,
        need: usize,
    ) -> Result<Met> {
        let mut scan = plan.scan(self.shape, self.sort, after);
        let mut found = Vec::with_capacity(need);
        loop {
            let places = scan.next(read, self.shape, (need - found.len()).clamp(1, MOST_FETCHED))?;
            self.spending.rows += places.len();
            let ids: Vec<i64> = places.iter().map(|place| place.id).collect();
            let mut places = places.iter();
            for row in by_ids(read, self.shape, &ids, self.trashed)? {
                let met = places.find(|place| place.id == row.id.0);
                let data = pick(row.data.as_str(), &self.keys)?;
                self.spending.bytes += row.data.as_str().len();
                // An item may have changed since its key was read: it may no longer match, or have moved.
                let Some(place) = self.fits(read, row.record(&data))? else { continue };
                if self.sort.is_some_and(|sort| runs::is_in_run(sort, self.shape, &place)) {
                    return Ok(Met::LongTexts);
                }
                if met.is_some_and(|met| plan.stands_at(self.shape, self.sort, &place, met)) {
                    found.push(PlacedRow { place, row });
                }
            }
            if scan.is_over() || found.len() >= need {
                return Ok(Met::Found(Some(found)));
            }
            if self.spending.rows >= self.give_up_at {
                return Ok(Met::Found(None));
            }
            self.refuse_beyond_budget()?;
        }
    }

    /// Returns the first items in list order, from a scan in another order.
    fn best_of_all(
        &mut self,
        read: &mut Read,
        plan: &QueryPlan,
        after: Option<&[u8]>,
        need: usize,
    ) -> Result<Option<Vec<PlacedRow>>> {
        loop {
            let mut best: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
            let is_through = self.run(read, plan, None, None, |_, _, Fitting { row, place, .. }| {
                let is_behind = after.is_none_or(|after| place.as_slice() > after);
                let last = best.last_key_value();
                if is_behind && (best.len() < need || last.is_some_and(|(last, _)| place < *last)) {
                    best.insert(place, row.id.0);
                    if best.len() > need {
                        best.pop_last();
                    }
                }
                Ok(ControlFlow::Continue(()))
            })?;
            if !is_through {
                return Ok(None);
            }
            let (mut placed, mut found): (Vec<Placed>, _) = (best.into_iter().collect(), Vec::new());
            let expected = placed.len();
            self.take(read, &mut placed, &mut found)?;
            // If one of the items has changed meanwhile, another may belong on the page, so scan again.
            if found.len() == expected {
                return Ok(Some(found));
            }
            self.refuse_beyond_budget()?;
        }
    }

    /// Fetches items and keeps those that still match at the same position.
    pub(super) fn take(
        &mut self,
        read: &mut Read,
        placed: &mut Vec<Placed>,
        found: &mut Vec<PlacedRow>,
    ) -> Result<()> {
        let ids: Vec<i64> = placed.iter().map(|(_, id)| *id).collect();
        let mut placed = placed.drain(..);
        for row in by_ids(read, self.shape, &ids, self.trashed)? {
            let Some((place, _)) = placed.find(|(_, id)| *id == row.id.0) else { continue };
            let data = pick(row.data.as_str(), &self.keys)?;
            if self.fits(read, row.record(&data))?.is_some_and(|now| now == place) {
                found.push(PlacedRow { place, row });
            }
        }
        Ok(())
    }

    /// Returns the position of an item that matches, or `None` if it does not match.
    fn fits(&mut self, read: &mut Read, record: Record<'_>) -> Result<Option<Vec<u8>>> {
        let spending = &mut self.spending;
        let fits = self.filter.fits(self.shape, record, &mut |field, to| {
            spending.rows += to.len().min(MOST_RELATED);
            points_to(read, ItemId(record.id()), field, to)
        })?;
        Ok(fits.then(|| self.sort.map(|sort| sort.key(self.shape, record)).unwrap_or_default()))
    }

    /// Returns the matching items among `ids`.
    pub(super) fn fitting(&mut self, read: &mut Read, ids: &[i64]) -> Result<Vec<Fitting>> {
        let rows = tested_rows(read, self.shape, ids, self.trashed, self.with_system_columns)?;
        let mut fitting = Vec::new();
        for row in rows {
            fitting.extend(self.test(read, row)?);
        }
        Ok(fitting)
    }

    fn test(&mut self, read: &mut Read, row: TestedRow) -> Result<Option<Fitting>> {
        let data = pick(row.data.as_str(), &self.keys)?;
        self.spending.bytes += row.data.as_str().len();
        let place = self.fits(read, row.record(&data))?;
        Ok(place.map(|place| Fitting { row, data, place }))
    }

    /// Calls `each` with the matching items until it stops. `need` is the number of matches it is expected to want.
    /// Returns `false` if the run gave up.
    pub(super) fn run(
        &mut self,
        read: &mut Read,
        plan: &QueryPlan,
        after: Option<&[u8]>,
        need: Option<usize>,
        mut each: impl FnMut(&mut Self, &mut Read, Fitting) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        self.spending.rows += plan.visited;
        let mut scan = plan.scan(self.shape, self.sort, after);
        let mut progress = Progress { need, fetched: 0, fitting: 0 };
        let mut most = progress.next(MOST_FETCHED);
        while !scan.is_over() {
            let mut places = scan.next(read, self.shape, most)?;
            self.spending.rows += places.len();
            progress.fetched += places.len();
            places.retain(|place| plan.only.as_ref().is_none_or(|only| only.contains(&place.id)));
            let ids: Vec<i64> = places.iter().map(|place| place.id).collect();
            let mut places = places.iter();
            for row in tested_rows(read, self.shape, &ids, self.trashed, self.with_system_columns)? {
                let met = places.find(|place| place.id == row.id.0);
                let Some(fitting) = self.test(read, row)? else { continue };
                // If an item has moved since its key was read, the scan finds it at its new position.
                let stays = |met: &IndexEntry| plan.stands_at(self.shape, self.sort, &fitting.place, met);
                if plan.ordered && !met.is_some_and(stays) {
                    continue;
                }
                progress.fitting += 1;
                if each(self, read, fitting)?.is_break() {
                    return Ok(true);
                }
            }
            if !scan.is_over() {
                if self.spending.rows >= self.give_up_at {
                    return Ok(false);
                }
                self.refuse_beyond_budget()?;
            }
            let left = self.give_up_at.saturating_sub(self.spending.rows).max(1);
            most = progress.next(left);
        }
        Ok(true)
    }

    /// # Errors
    /// `query_too_expensive`, naming the fields to index.
    pub(super) fn refuse_beyond_budget(&self) -> Result<()> {
        if self.spending.is_within_budget()? {
            return Ok(());
        }
        let fields = self.worth_indexing();
        let named: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
        let advice = if named.is_empty() {
            "narrow it with a filter on an indexed field".to_owned()
        } else {
            format!("index {}", named.join(" and "))
        };
        let message = format!("The query would read too many items: {advice}.");
        let details = json!({ "fields": fields, "visited": self.spending.rows });
        Err(Error::new(Code::QueryTooExpensive, message).with("details", details))
    }

    /// Returns the fields of the filter and the order that have no index. If all have one, returns all of them,
    /// because an index over their combination would help.
    fn worth_indexing(&self) -> Vec<String> {
        let sorted = self.sort.iter().flat_map(|sort| sort.parts.iter().map(|part| part.subject));
        let mut subjects: Vec<Subject> = Vec::new();
        for subject in self.filter.musts().into_iter().map(|condition| condition.subject).chain(sorted) {
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
        let is_served = |subject: &Subject| {
            self.shape.indexes.iter().any(|index| {
                index.status == IndexStatus::Ready
                    && !matches!(index.kind, IndexKind::Unique | IndexKind::Columnar)
                    && index.parts.first().is_some_and(|part| part.subject == *subject)
            })
        };
        let missing: Vec<Subject> = subjects.iter().copied().filter(|one| !is_served(one)).collect();
        let named = if missing.is_empty() { subjects } else { missing };
        named.into_iter().map(|subject| name_of(subject, self.shape)).collect()
    }
}

/// Returns whether a filter needs a system column other than the id.
fn goes_by_system_columns(filter: &Filter) -> bool {
    match filter {
        Filter::All(filters) | Filter::Any(filters) => filters.iter().any(goes_by_system_columns),
        Filter::Not(filter) => goes_by_system_columns(filter),
        Filter::Finds(_) => false,
        Filter::One(condition) => {
            matches!(condition.subject, Subject::System(column) if column != SystemColumn::Id)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_fetched_as_are_missing() {
        let next = |need, fetched, fitting| Progress { need, fetched, fitting }.next(MOST_FETCHED);
        assert_eq!([next(None, 0, 0), next(None, 50, 7)], [MOST_FETCHED; 2]);
        assert_eq!(
            [next(Some(1), 0, 0), next(Some(21), 0, 0), next(Some(5_000), 0, 0)],
            [1, 21, MOST_FETCHED]
        );
        // Without matches, the batch doubles each time.
        assert_eq!(
            [next(Some(21), 21, 0), next(Some(21), 63, 0), next(Some(21), 2_000, 0)],
            [42, 84, MOST_FETCHED]
        );
        // With matches, the batch follows their share.
        assert_eq!(
            [next(Some(21), 63, 9), next(Some(21), 63, 20), next(Some(21), 63, 1)],
            [84, LEAST_FETCHED, 84]
        );
        assert_eq!(next(Some(21), 500, 16), 175);
        assert_eq!(Progress { need: Some(21), fetched: 63, fitting: 1 }.next(3), 3);
    }
}
