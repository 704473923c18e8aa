//! Matching: which automations an occurrence fires, and what becomes of it.

mod consider;
pub(crate) mod consumer;
mod judge;
mod judgement;
pub(crate) mod marks;
pub(crate) mod rule_sets;

pub(crate) use consider::{Matching, consider, consider_locked, consider_rule, lock};
pub(crate) use judge::judge;
