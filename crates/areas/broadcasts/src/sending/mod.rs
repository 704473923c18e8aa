//! The background job of broadcasts, which prepares recipients and writes messages.

pub(crate) mod prepare;
pub(crate) mod progress;
pub(crate) mod run;
pub(crate) mod send;
