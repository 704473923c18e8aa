//! Automations: when something happens, and conditions hold, something is started.

mod group;

pub use group::GROUP;
