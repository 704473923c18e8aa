//! Checks of a broadcast before it is stored, started and sent.

pub(crate) mod check;
pub(crate) mod clock;
pub(crate) mod contact;
pub(crate) mod limit;
pub(crate) mod list_file;
