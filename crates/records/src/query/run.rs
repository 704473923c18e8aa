//! Answering a query: by the plan that seems the cheapest, or by columns.

use super::columns::ColumnarQuery;
use super::plan::{self, PlanRequest, QueryPlan};
use super::planner::{MOST_COUNTED, Planner};
use super::types::{Query, Report};
use super::visit::{Fitting, MOST_FETCHED, Page, Visit};
use crate::shape::Shape;
use fields::Subject;
use model::Result;
use std::ops::ControlFlow;
use store::Read;

/// A plan is gone through with that looks at so many times the items that reading columns costs, at the most.
const WORTH_ENDING: i64 = 2;

/// Keys are counted up to here: a plan with more loses against columns.
fn most_counted(columns: Option<&ColumnarQuery<'_>>) -> i64 {
    let most = columns.map_or(i64::MAX, |columns| columns.cost.saturating_mul(WORTH_ENDING));
    most.saturating_add(1).min(MOST_COUNTED)
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
        let mut visit = Visit::new(planner, shape, self, Some(&self.sort), []);
        let mut columns = ColumnarQuery::of(read, planner, shape, self, Some(&self.sort), need)?;
        let (filter, trashed) = (&self.filter, self.trashed);
        let most_counted = most_counted(columns.as_ref());
        let wanted = PlanRequest { shape, filter, sort: Some(&self.sort), trashed, need, most_counted };
        let plan = plan::choose(read, planner, wanted, columns.as_mut())?;
        let Some(columns) = columns else { return visit.page(read, &plan, after, need) };
        if !columns.beats(&plan, filter) {
            // What a plan in the order of the list costs is a guess. One that was wrong is given up, except where what
            // it has left costs less than beginning anew.
            if plan.most > columns.cost.saturating_mul(WORTH_ENDING) {
                visit.give_up_at = usize::try_from(columns.cost).unwrap_or(usize::MAX);
            }
            if let Some(page) = visit.page_within(read, &plan, after, need)? {
                return Ok(page);
            }
            visit.give_up_at = usize::MAX;
        }
        match visit.columnar_page(read, &columns, after, need)? {
            Some(page) => Ok(page),
            None => visit.page(read, &plan, after, need),
        }
    }

    /// Hands all items to `each`, with the values of `subjects`, until it has enough. They come by id where the plan does
    /// not say otherwise.
    ///
    /// # Errors
    /// 400 `query_too_expensive`, what `each` fails with, or the database's.
    pub(super) fn for_each(
        &self,
        read: &mut Read,
        planner: &Planner,
        shape: &Shape,
        subjects: impl IntoIterator<Item = Subject>,
        mut each: impl FnMut(Fitting) -> Result<ControlFlow<()>>,
    ) -> Result<Report> {
        let mut visit = Visit::new(planner, shape, self, None, subjects);
        let mut columns = ColumnarQuery::of(read, planner, shape, self, None, 0)?;
        let most_counted = most_counted(columns.as_ref());
        let (filter, trashed) = (&self.filter, self.trashed);
        let wanted = PlanRequest { shape, filter, sort: None, trashed, need: usize::MAX, most_counted };
        let mut plan = plan::choose(read, planner, wanted, columns.as_mut())?;
        if let Some(columns) = columns.filter(|columns| !filter.is_empty() && columns.beats(&plan, filter)) {
            let Some(last) = visit.columnar_each(read, &columns, &mut each)? else {
                return Ok(visit.columnar_report(&columns));
            };
            let (_, to) = plan::id_bounds(filter);
            plan = QueryPlan::of_items(wanted, (last.saturating_add(1), to), "scan");
        }
        visit.run(read, &plan, None, MOST_FETCHED, |_, _, fitting| each(fitting))?;
        Ok(visit.report(&plan))
    }
}
