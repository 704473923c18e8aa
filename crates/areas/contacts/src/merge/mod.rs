//! Merging contacts, and finding those that may be merged.

pub(crate) mod duplicates;
pub(crate) mod operations;
