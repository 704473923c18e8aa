//! Enrichment of contacts: an agent proposes values for their fields.

pub(crate) mod model;
pub(crate) mod operations;
pub(crate) mod proposals;
