//! Runs of flows: their rows, and what requests do with them.

pub(crate) mod model;
pub(crate) mod operations;
mod port;
pub(crate) mod queries;
pub(crate) mod retention;
mod retry;
pub(crate) mod row;
pub(crate) mod start;
pub(crate) mod steps;
pub(crate) mod waits;
