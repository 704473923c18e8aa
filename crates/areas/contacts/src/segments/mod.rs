//! Segments: saved groups of contacts, by a filter or by hand.

pub(crate) mod model;
pub(crate) mod operations;
mod rows;

pub(crate) use rows::{filter, users_of};
