//! Planning: which index or scan reads the records of a query.

pub(crate) mod key_ranges;
pub(crate) mod plan;
pub(crate) mod planner;
