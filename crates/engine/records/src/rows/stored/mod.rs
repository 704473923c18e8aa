//! New records as rows, many at a time.

pub(crate) mod new_rows;
pub(crate) mod store;
