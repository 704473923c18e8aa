//! Guards: what keeps automations from firing each other for ever, and much more often than usual.
//!
//! Guards count rows of firings. They hold nothing in memory, so they see the same in all processes and after a restart.

pub(crate) mod errors;
pub(crate) mod outcome;
pub(crate) mod outcomes;
mod rates;

pub(crate) use rates::{before, flood, stop_loop};
