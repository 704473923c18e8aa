//! Dates and numbers in the local formats of spreadsheets.

pub(crate) mod dates;
pub(crate) mod decimals;
