//! Operations that create, read, change and delete tasks.

mod change;
mod editor;
mod fill;
pub(crate) mod operations;
pub(crate) mod sample;
mod status;
