//! Running a plan over items, within a budget.

use super::pick::pick;
use super::plan::QueryPlan;
use super::planner::{Budget, Planner};
use super::scan::points_to;
use super::types::Report;
use crate::rows::ItemRow;
use crate::shape::{IndexKind, IndexStatus, Shape};
use fields::Data;
use fields::Filter;
use fields::Subject;
use fields::filter::name_of;
use fields::sort::Sort;
use model::{Code, Error, FieldId, IndexId, Result};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Instant;
use store::Read;

/// The most items that are fetched at a time.
pub(super) const MOST_FETCHED: usize = 1_000;

/// When to ask again what took too long.
const RETRY_AFTER_SECONDS: i64 = 10;

/// An item of a page.
#[derive(Debug, Clone)]
pub struct PlacedRow {
    /// Its place in the order.
    pub place: Vec<u8>,
    /// The item.
    pub row: ItemRow,
}

/// What a query found, and at what price.
#[derive(Debug)]
pub struct Page {
    /// The items, in order.
    pub found: Vec<PlacedRow>,
    /// How they were found.
    pub report: Report,
}

/// Reading some columns of so many items costs about as much as fetching one.
const COLUMNS_PER_ITEM: usize = 1_024;

/// What a query has looked at, and how much it may.
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
    /// Nothing yet.
    pub fn new(planner: &Planner) -> Self {
        Self { budget: planner.budget(), began: Instant::now(), rows: 0, bytes: 0 }
    }

    /// Whether the query may look at more.
    ///
    /// # Errors
    /// 503 `service_unavailable` where it has taken longer than any query should: the machine has too much to do.
    pub(crate) fn is_within_budget(&self) -> Result<bool> {
        if self.began.elapsed() >= self.budget.timeout {
            let message = "The service is too busy to execute this query. Retry it later.";
            return Err(Error::new(Code::ServiceUnavailable, message).retry_after(RETRY_AFTER_SECONDS));
        }
        Ok(self.rows < self.budget.rows && self.bytes < self.budget.bytes)
    }
}

/// One run over items.
pub(super) struct Visit<'a> {
    pub(super) shape: &'a Shape,
    filter: &'a Filter,
    sort: Option<&'a Sort>,
    keys: Vec<&'a str>,
    pub(super) spending: Spending,
    /// Items of which columns were read.
    pub(super) by_column: usize,
    /// The run ends without a result where it has looked at so many.
    pub(super) give_up_at: usize,
}

impl<'a> Visit<'a> {
    pub(super) fn new(
        planner: &Planner,
        shape: &'a Shape,
        filter: &'a Filter,
        sort: Option<&'a Sort>,
        mut fields: BTreeSet<FieldId>,
    ) -> Self {
        filter.subjects(shape, &mut fields);
        let keys = shape.fields.iter().filter(|field| fields.contains(&field.id));
        let keys = keys.map(|field| field.key.as_str()).collect();
        let spending = Spending::new(planner);
        Self { shape, filter, sort, keys, spending, by_column: 0, give_up_at: usize::MAX }
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

    /// The page; `None` where it was given up.
    pub(super) fn page_within(
        &mut self,
        read: &mut Read,
        plan: &QueryPlan,
        after: Option<&[u8]>,
        need: usize,
    ) -> Result<Option<Page>> {
        if plan.ordered {
            let mut found = Vec::with_capacity(need);
            let is_through = self.run(read, plan, after, need, |row, _, place| {
                found.push(PlacedRow { place, row });
                Ok(if found.len() < need { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            })?;
            return Ok(is_through.then(|| Page { found, report: self.report(plan) }));
        }
        // The best so far, by place.
        let mut best: BTreeMap<Vec<u8>, ItemRow> = BTreeMap::new();
        let is_through = self.run(read, plan, None, MOST_FETCHED, |row, _, place| {
            let is_behind = after.is_none_or(|after| place.as_slice() > after);
            let is_better = best.len() < need || best.last_key_value().is_some_and(|(last, _)| place < *last);
            if is_behind && is_better {
                best.insert(place, row);
                if best.len() > need {
                    best.pop_last();
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let found = best.into_iter().map(|(place, row)| PlacedRow { place, row }).collect();
        Ok(is_through.then(|| Page { found, report: self.report(plan) }))
    }

    /// The values of an item that fits, and its place.
    pub(super) fn test(&mut self, read: &mut Read, row: &ItemRow) -> Result<Option<(Data, Vec<u8>)>> {
        let data = pick(row.data.as_str(), &self.keys)?;
        let (record, item) = (row.record(&data), row.id);
        self.spending.bytes += row.data.as_str().len();
        let spending = &mut self.spending;
        let fits = self.filter.fits(self.shape, record, &mut |field, to| {
            spending.rows += to.len();
            points_to(read, item, field, to)
        })?;
        let place = self.sort.filter(|_| fits).map(|sort| sort.key(self.shape, record)).unwrap_or_default();
        Ok(fits.then_some((data, place)))
    }

    /// Whether it went through, to the end or until `each` had enough.
    pub(super) fn run(
        &mut self,
        read: &mut Read,
        plan: &QueryPlan,
        after: Option<&[u8]>,
        first: usize,
        mut each: impl FnMut(ItemRow, Data, Vec<u8>) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        self.spending.rows += plan.visited;
        let mut scan = plan.scan(self.sort, after);
        let mut most = first.clamp(1, MOST_FETCHED);
        while !scan.is_over() {
            let (batch, visited) = scan.rows(read, self.shape, most, plan.only.as_ref())?;
            self.spending.rows += visited;
            for (scanned, row) in batch {
                let Some((data, place)) = self.test(read, &row)? else { continue };
                // An item that was moved since its key was read stands elsewhere now.
                if plan.ordered && !plan.stands_at(self.sort, &place, &scanned) {
                    continue;
                }
                if each(row, data, place)?.is_break() {
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
            most = (most * 2).min(MOST_FETCHED).min(left);
        }
        Ok(true)
    }

    /// # Errors
    /// `query_too_expensive`, with what should be indexed.
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

    /// The fields that filters and order go by and no index serves; all of them where each has one, because then one
    /// index over all would help.
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
