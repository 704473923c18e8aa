//! Segments: saved groups of contacts, defined by a filter or as a list.

pub(crate) mod model;
pub(crate) mod operations;
mod rows;

pub(crate) use rows::{filter, users_of};
