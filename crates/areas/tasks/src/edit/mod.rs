//! Creating, changing and deleting tasks.

mod change;
mod editor;
mod fill;
pub(crate) mod operations;
pub(crate) mod sample;
mod status;
