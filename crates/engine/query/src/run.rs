//! Execution of a query, by the cheapest plan or by columns.

use super::columns::{ColumnarQuery, Summary};
use super::cursor::{shorten, whole_place};
use super::ordered;
use super::planning::plan::{self, PlanRequest, QueryPlan};
use super::planning::planner::{MOST_COUNTED, Planner, Sampler};
use super::types::{Query, Report};
use super::visit::{Fitting, Page, Visit};
use fields::key;
use fields::sort::Sort;
use fields::{Part, Subject};
use model::{ItemId, Result};
use records::rows::ItemRow;
use records::shape::Shape;
use std::ops::ControlFlow;
use store::Read;

/// A plan continues until its cost exceeds that of the columns by this factor.
const WORTH_ENDING: i64 = 2;

/// The minimum bound for counting keys. The count improves the estimate for plans in list order.
const LEAST_COUNTED: i64 = 2_000;

/// Returns the bound for counting keys. A plan with more keys is more expensive than columns.
fn most_counted(columns: Option<&ColumnarQuery<'_>>) -> i64 {
    let most = columns.map_or(i64::MAX, |columns| columns.cost.saturating_mul(WORTH_ENDING));
    most.saturating_add(1).clamp(LEAST_COUNTED, MOST_COUNTED)
}

impl Query {
    /// Returns the first `need` items after a position.
    ///
    /// # Errors
    /// 400 `query_too_expensive`.
    pub fn page(
        &self,
        read: &mut Read,
        planner: &Planner,
        shape: &Shape,
        after: Option<&[u8]>,
        need: usize,
    ) -> Result<Page> {
        let after = after.map(|after| whole_place(read, shape, self, after)).transpose()?;
        let mut page = self.whole_page(read, planner, shape, after.as_deref(), need)?;
        for found in &mut page.found {
            shorten(&self.sort, shape, &mut found.place);
        }
        Ok(page)
    }

    fn whole_page(
        &self,
        read: &mut Read,
        planner: &Planner,
        shape: &Shape,
        after: Option<&[u8]>,
        need: usize,
    ) -> Result<Page> {
        let mut visit = Visit::new(planner, shape, self, Some(&self.sort), []);
        let mut columns = ColumnarQuery::of(read, planner, shape, self, Some(&self.sort), need)?;
        let (filter, trashed) = (&self.filter, self.trashed);
        let most_counted = most_counted(columns.as_ref());
        let wanted = PlanRequest { shape, filter, sort: Some(&self.sort), trashed, need, most_counted };
        let plan =
            plan::choose(read, planner, wanted, columns.as_mut().map(|columns| columns as &mut dyn Sampler))?;
        let Some(columns) = columns else { return visit.page(read, &plan, after, need) };
        if !columns.beats(&plan, filter) {
            // The cost of a plan in list order is a guess. Stop it when it turns out wrong, unless the rest of it
            // costs less than a scan of the columns.
            if plan.most > columns.cost.saturating_mul(WORTH_ENDING) {
                visit.give_up_at = usize::try_from(columns.cost).unwrap_or(usize::MAX);
            }
            if let Some(page) = visit.page_within(read, &plan, after, need)? {
                return Ok(page);
            }
            // The plan gave up, so use the columns. If they fail too, the plan runs again without a limit.
            visit.give_up_at = usize::MAX;
        }
        match visit.columnar_page(read, &columns, after, need)? {
            Some(page) => Ok(page),
            // The index was dropped or cannot tell the order.
            None => visit.page(read, &plan, after, need),
        }
    }

    /// Returns the first `need` items after an id, by id. For jobs that visit all matches in batches: all batches
    /// together examine no item twice, although a single one may examine all.
    ///
    /// # Errors
    /// 400 `query_too_expensive`.
    pub fn behind(
        &self,
        read: &mut Read,
        planner: &Planner,
        shape: &Shape,
        after: Option<ItemId>,
        need: usize,
    ) -> Result<Vec<ItemRow>> {
        let sort = Sort { parts: Vec::new(), newest_first: false };
        let mut visit = Visit::new(planner, shape, self, Some(&sort), []);
        let (filter, trashed, most_counted) = (&self.filter, self.trashed, MOST_COUNTED);
        let wanted = PlanRequest { shape, filter, sort: Some(&sort), trashed, need, most_counted };
        let plan = ordered::choose(read, planner, wanted)?;
        let after = after.map(|after| {
            let mut place = Vec::with_capacity(8);
            key::push_id(&mut place, after.0, false);
            place
        });
        let page = visit.page(read, &plan, after.as_deref(), need)?;
        Ok(page.found.into_iter().map(|found| found.row).collect())
    }

    /// Adds all matching items to a summary of `subjects`. Uses columns if `by_columns` is set and they are cheaper.
    ///
    /// # Errors
    /// 400 `query_too_expensive`; errors of the summary.
    pub(super) fn summarize(
        &self,
        read: &mut Read,
        planner: &Planner,
        shape: &Shape,
        subjects: &[Subject],
        by_columns: bool,
        summary: &mut impl Summary,
    ) -> Result<Report> {
        let part = |subject: &Subject| Part { subject: *subject, desc: false };
        let read_too = Sort { parts: subjects.iter().map(part).collect(), newest_first: false };
        if by_columns
            && let Some(mut columns) = ColumnarQuery::of(read, planner, shape, self, Some(&read_too), 0)?
        {
            let plan = self.unordered_plan(read, planner, shape, Some(&mut columns))?;
            let mut visit = Visit::new(planner, shape, self, None, subjects.iter().copied());
            if columns.beats(&plan, &self.filter) {
                if visit.columnar_summary(read, &columns, summary)? {
                    return Ok(visit.columnar_report(&columns));
                }
                summary.clear();
            }
        }
        self.for_each(read, planner, shape, subjects, |fitting| summary.add(&fitting))
    }

    fn unordered_plan(
        &self,
        read: &mut Read,
        planner: &Planner,
        shape: &Shape,
        columns: Option<&mut ColumnarQuery<'_>>,
    ) -> Result<QueryPlan> {
        let (filter, trashed, need) = (&self.filter, self.trashed, usize::MAX);
        let most_counted = most_counted(columns.as_deref());
        let wanted = PlanRequest { shape, filter, sort: None, trashed, need, most_counted };
        plan::choose(read, planner, wanted, columns.map(|columns| columns as &mut dyn Sampler))
    }

    /// Calls `each` with all matching items and their values of `subjects`.
    pub(super) fn for_each(
        &self,
        read: &mut Read,
        planner: &Planner,
        shape: &Shape,
        subjects: &[Subject],
        mut each: impl FnMut(Fitting) -> Result<()>,
    ) -> Result<Report> {
        let mut visit = Visit::new(planner, shape, self, None, subjects.iter().copied());
        let mut columns = ColumnarQuery::of(read, planner, shape, self, None, 0)?;
        let mut plan = self.unordered_plan(read, planner, shape, columns.as_mut())?;
        let is_narrowed = !self.filter.is_empty();
        if let Some(columns) = columns.filter(|columns| is_narrowed && columns.beats(&plan, &self.filter)) {
            let Some(last) = visit.columnar_each(read, &columns, &mut each)? else {
                return Ok(visit.columnar_report(&columns));
            };
            let (_, to) = plan::id_bounds(&self.filter);
            plan = QueryPlan::of_items_behind(last, to);
        }
        visit.run(read, &plan, None, None, |_, _, fitting| {
            each(fitting)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(visit.report(&plan))
    }
}
