//! Query planning: the choice of the index or scan that finds the records of a query.

pub(crate) mod key_ranges;
pub(crate) mod plan;
pub(crate) mod planner;
