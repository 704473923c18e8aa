//! Creating, changing and deleting tasks.

pub(crate) mod change;
pub(crate) mod operations;
pub(crate) mod sample;
pub(crate) mod write;
