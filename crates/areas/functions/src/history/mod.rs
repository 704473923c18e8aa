//! The history of calls: a log that is bounded by age and size.

pub(crate) mod interrupted;
pub(crate) mod log;
pub(crate) mod model;
pub(crate) mod operations;
pub(crate) mod rows;
