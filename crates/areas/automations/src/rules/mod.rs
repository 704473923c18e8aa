//! Automations as objects: their rows, their settings and the operations on them.

pub(crate) mod policy;
pub(crate) mod row;
pub(crate) mod set;
