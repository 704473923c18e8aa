//! The operations of the area.

pub(crate) mod automations;
mod check;
pub(crate) mod executions;
pub(crate) mod fire;
pub(crate) mod trial;
pub(crate) mod trigger_types;
