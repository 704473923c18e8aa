//! Tasks as records: their kind, fields, events and dependencies.

pub(crate) mod events;
pub(crate) mod fields;
pub(crate) mod graph;
pub(crate) mod kind;
pub(crate) mod model;
pub(crate) mod task;
