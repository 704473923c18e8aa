//! Answers of operations: JSON, lists, and streams of events.

pub(crate) mod answer;
pub(crate) mod disposition;
pub(crate) mod json_rpc;
pub(crate) mod lists;
pub(crate) mod raw;
pub(crate) mod stream;
