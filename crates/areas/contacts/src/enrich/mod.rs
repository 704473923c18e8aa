//! Enrichment: an agent proposes values of a contact.

pub(crate) mod model;
pub(crate) mod operations;
pub(crate) mod proposals;
