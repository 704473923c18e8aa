//! Automations as objects: their rows, their settings, and how they are compiled.

pub(crate) mod compiled;
pub(crate) mod events;
pub(crate) mod model;
pub(crate) mod policy;
pub(crate) mod row;
pub(crate) mod set;
pub(crate) mod suspend;
pub(crate) mod uses;
