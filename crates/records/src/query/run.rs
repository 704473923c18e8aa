//! Answering a query: by the plan that seems the cheapest, or by columns.

use super::columns::ColumnarQuery;
use super::plan::{self, PlanRequest, QueryPlan};
use super::planner::{MOST_COUNTED, Planner};
use super::types::{Query, Report};
use super::visit::{MOST_FETCHED, Page, Visit};
use crate::rows::ItemRow;
use crate::shape::Shape;
use fields::Data;
use model::{FieldId, Result};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use store::Read;

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
        let mut fields = BTreeSet::new();
        self.sort.fields(&mut fields);
        let mut visit = Visit::new(planner, shape, &self.filter, Some(&self.sort), fields);
        let columns = ColumnarQuery::of(read, planner, shape, self, Some(&self.sort), need)?;
        let most_counted = columns.as_ref().map_or(MOST_COUNTED, |columns| columns.cost.min(MOST_COUNTED));
        let (filter, trashed) = (&self.filter, self.trashed);
        let wanted = PlanRequest { shape, filter, sort: Some(&self.sort), trashed, need, most_counted };
        let plan = plan::choose(read, planner, wanted)?;
        let Some(columns) = columns else { return visit.page(read, &plan, after, need) };
        if !columns.beats(&plan, filter) {
            // What a plan in the order of the list costs is a guess. One that was wrong is given up.
            visit.give_up_at = usize::try_from(columns.cost).unwrap_or(usize::MAX);
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
        let mut visit = Visit::new(planner, shape, &self.filter, None, fields);
        let columns = ColumnarQuery::of(read, planner, shape, self, None, 0)?;
        let most_counted = columns.as_ref().map_or(MOST_COUNTED, |columns| columns.cost.min(MOST_COUNTED));
        let (filter, trashed) = (&self.filter, self.trashed);
        let wanted = PlanRequest { shape, filter, sort: None, trashed, need: usize::MAX, most_counted };
        let mut plan = plan::choose(read, planner, wanted)?;
        if let Some(columns) = columns.filter(|columns| !filter.is_empty() && columns.beats(&plan, filter)) {
            let Some(last) = visit.columnar_each(read, &columns, &mut each)? else {
                return Ok(visit.columnar_report(&columns));
            };
            let (_, to) = plan::id_bounds(filter);
            plan = QueryPlan::of_items(wanted, (last.saturating_add(1), to), "scan");
        }
        visit.run(read, &plan, None, MOST_FETCHED, |row, data, _| each(row, data))?;
        Ok(visit.report(&plan))
    }
}
