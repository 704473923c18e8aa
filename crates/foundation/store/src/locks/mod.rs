//! Who may do what: the order of locks within a transaction, and leases between processes.

pub(crate) mod leases;
pub(crate) mod order;
