//! Runs of flows: their rows, and what requests do with them.

pub(crate) mod row;
pub(crate) mod steps;
pub(crate) mod waits;
