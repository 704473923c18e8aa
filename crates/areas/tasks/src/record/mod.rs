//! Tasks as records: their kind and its fields, their events, and how they depend on each other.

pub(crate) mod events;
pub(crate) mod fields;
pub(crate) mod graph;
pub(crate) mod kind;
pub(crate) mod model;
pub(crate) mod task;
