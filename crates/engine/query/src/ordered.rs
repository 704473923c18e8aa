//! The choice of a plan for work that visits everything a query finds, in batches.

use super::planning::plan::{PlanRequest, QueryPlan, id_bounds, over_indexes};
use super::planning::planner::Planner;
use model::Result;
use store::Read;

/// Chooses among the plans in the order of the list. Each batch continues where the last one ended, so all batches
/// together examine no item twice.
pub(super) fn choose(read: &mut Read, planner: &Planner, wanted: PlanRequest<'_>) -> Result<QueryPlan> {
    let mut best = QueryPlan::of_items(wanted, id_bounds(wanted.filter), "scan");
    let mut cost = planner.count_items(read, wanted.shape)?;
    for plan in over_indexes(wanted).into_iter().filter(|plan| plan.ordered) {
        let (Some(ranges), Some(index)) = (&plan.kept, plan.uses.first()) else { continue };
        let count = planner.count_keys(read, *index, ranges, wanted.most_counted)?;
        if count < cost {
            (best, cost) = (plan, count);
        }
    }
    Ok(best)
}
