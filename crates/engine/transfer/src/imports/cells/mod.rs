//! Cells of imports: dates and numbers as people write them.

pub(crate) mod dates;
pub(crate) mod decimals;
