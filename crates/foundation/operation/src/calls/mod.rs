//! Calls of operations: the gates, the pipeline, and calls from within the service.

pub(crate) mod embedded;
pub(crate) mod gate;
pub(crate) mod local;
pub(crate) mod panics;
pub(crate) mod pipeline;
pub(crate) mod progress;
pub(crate) mod redirected;
pub(crate) mod spans;
