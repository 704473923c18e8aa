//! Lists of tasks, and their summary.

pub(crate) mod list;
pub(crate) mod summary;
