//! The job of broadcasts: it prepares recipients and writes messages.

pub(crate) mod prepare;
pub(crate) mod progress;
pub(crate) mod run;
pub(crate) mod send;
