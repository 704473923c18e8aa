//! Matching: which automations an occurrence fires, and what becomes of it.

mod consider;

pub(crate) use consider::{Matching, Occurrence, consider};
