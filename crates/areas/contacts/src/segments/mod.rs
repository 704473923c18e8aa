//! Segments: named sets of contacts, by conditions or by hand.

pub(crate) mod operations;

pub(crate) use operations::{filter, users_of};
