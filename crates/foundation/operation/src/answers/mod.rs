//! Answers of operations: bodies, lists, streams, and bytes.

pub(crate) mod answer;
pub(crate) mod disposition;
pub(crate) mod lists;
pub(crate) mod raw;
pub(crate) mod stream;
