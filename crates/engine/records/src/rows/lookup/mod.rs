//! Lookup: the records that have the values that a caller names.

pub(crate) mod lookahead;
pub(crate) mod match_table;
pub mod matching;
