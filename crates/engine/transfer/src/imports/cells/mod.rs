//! Cells of imports: dates and numbers as people write them, and what a column probably holds.

pub(crate) mod dates;
pub(crate) mod decimals;
pub(crate) mod detect;
