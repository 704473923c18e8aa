//! Firings: what became of each occurrence that fits a trigger.

pub(crate) mod log;
pub(crate) mod model;
pub(crate) mod once;
pub(crate) mod row;
