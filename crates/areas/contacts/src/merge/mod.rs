//! Merging contacts, and finding possible duplicates.

pub(crate) mod duplicates;
pub(crate) mod operations;
