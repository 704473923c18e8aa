//! Queries of runs and steps.

pub(crate) mod runs;
pub(crate) mod steps;

pub(crate) use runs::{LEASE_SECONDS, RunFilter};
