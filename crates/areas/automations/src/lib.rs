//! Automations: when something happens, and conditions hold, something is started.

mod group;
mod timers;

pub use group::GROUP;
