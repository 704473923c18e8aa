//! Running a plan within its budget.

use super::pick::pick;
use super::plan::{self, PlanRequest, QueryPlan};
use super::planner::{Budget, Planner};
use super::scan::points_to;
use super::types::{Query, Report};
use crate::rows::ItemRow;
use crate::shape::{IndexKind, IndexStatus, Shape};
use fields::Data;
use fields::Filter;
use fields::Subject;
use fields::filter::name_of;
use fields::sort::Sort;
use model::{Code, Error, FieldId, Result};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Instant;
use store::Read;

/// The most items that are fetched at a time.
const MOST_FETCHED: usize = 1_000;

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

impl Query {
    /// The first `need` items behind a place.
    ///
    /// # Errors
    /// 400 `query_too_expensive`, or the database's.
    pub fn page(
        &self,
        read: &mut Read,
        planner: &Planner,
        shape: &Shape,
        after: Option<&[u8]>,
        need: usize,
    ) -> Result<Page> {
        let wanted =
            PlanRequest { shape, filter: &self.filter, sort: Some(&self.sort), trashed: self.trashed, need };
        let plan = plan::choose(read, planner, wanted)?;
        let mut fields = BTreeSet::new();
        self.sort.fields(&mut fields);
        let mut visit = Visit::new(planner, shape, &self.filter, Some(&self.sort), fields);
        if plan.ordered {
            let mut found = Vec::with_capacity(need);
            visit.run(read, &plan, after, need, |row, _, place| {
                found.push(PlacedRow { place, row });
                Ok(if found.len() < need { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            })?;
            return Ok(Page { found, report: visit.report(&plan) });
        }
        // The best so far, by place.
        let mut best: BTreeMap<Vec<u8>, ItemRow> = BTreeMap::new();
        visit.run(read, &plan, None, MOST_FETCHED, |row, _, place| {
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
        Ok(Page { found, report: visit.report(&plan) })
    }

    /// Hands all items to `each`, with the values of `fields`, until it has enough. They come by id where the plan does
    /// not say otherwise.
    ///
    /// # Errors
    /// 400 `query_too_expensive`, what `each` fails with, or the database's.
    pub fn for_each(
        &self,
        read: &mut Read,
        planner: &Planner,
        shape: &Shape,
        fields: BTreeSet<FieldId>,
        mut each: impl FnMut(ItemRow, Data) -> Result<ControlFlow<()>>,
    ) -> Result<Report> {
        let wanted =
            PlanRequest { shape, filter: &self.filter, sort: None, trashed: self.trashed, need: usize::MAX };
        let plan = plan::choose(read, planner, wanted)?;
        let mut visit = Visit::new(planner, shape, &self.filter, None, fields);
        visit.run(read, &plan, None, MOST_FETCHED, |row, data, _| each(row, data))?;
        Ok(visit.report(&plan))
    }
}

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
struct Visit<'a> {
    shape: &'a Shape,
    filter: &'a Filter,
    sort: Option<&'a Sort>,
    keys: Vec<&'a str>,
    spending: Spending,
}

impl<'a> Visit<'a> {
    fn new(
        planner: &Planner,
        shape: &'a Shape,
        filter: &'a Filter,
        sort: Option<&'a Sort>,
        mut fields: BTreeSet<FieldId>,
    ) -> Self {
        filter.subjects(shape, &mut fields);
        let keys = shape.fields.iter().filter(|field| fields.contains(&field.id));
        let keys = keys.map(|field| field.key.as_str()).collect();
        Self { shape, filter, sort, keys, spending: Spending::new(planner) }
    }

    fn report(&self, plan: &QueryPlan) -> Report {
        Report { plan: plan.name.clone(), uses: plan.uses.clone(), visited: self.spending.rows }
    }

    fn run(
        &mut self,
        read: &mut Read,
        plan: &QueryPlan,
        after: Option<&[u8]>,
        first: usize,
        mut each: impl FnMut(ItemRow, Data, Vec<u8>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.spending.rows += plan.visited;
        let mut scan = plan.scan(self.sort, after);
        let mut most = first.clamp(1, MOST_FETCHED);
        while !scan.is_over() {
            let (batch, visited) = scan.rows(read, self.shape, most, plan.only.as_ref())?;
            self.spending.rows += visited;
            for (scanned, row) in batch {
                let data = pick(row.data.as_str(), &self.keys)?;
                let record = row.record(&data);
                let item = row.id;
                self.spending.bytes += row.data.as_str().len();
                let spending = &mut self.spending;
                let fits = self.filter.fits(self.shape, record, &mut |field, to| {
                    spending.rows += to.len();
                    points_to(read, item, field, to)
                })?;
                if !fits {
                    continue;
                }
                let place = self.sort.map(|sort| sort.key(self.shape, record)).unwrap_or_default();
                // An item that was moved since its key was read stands elsewhere now.
                if plan.ordered && !plan.stands_at(self.sort, &place, &scanned) {
                    continue;
                }
                if each(row, data, place)?.is_break() {
                    return Ok(());
                }
            }
            if !scan.is_over() {
                self.refuse_beyond_budget()?;
            }
            most = (most * 2).min(MOST_FETCHED);
        }
        Ok(())
    }

    /// # Errors
    /// `query_too_expensive`, with what should be indexed.
    fn refuse_beyond_budget(&self) -> Result<()> {
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
                    && index.kind != IndexKind::Unique
                    && index.parts.first().is_some_and(|part| part.subject == *subject)
            })
        };
        let missing: Vec<Subject> = subjects.iter().copied().filter(|one| !is_served(one)).collect();
        let named = if missing.is_empty() { subjects } else { missing };
        named.into_iter().map(|subject| name_of(subject, self.shape)).collect()
    }
}
