//! Handoff: whether the autopilot or a member of the team answers a contact, and which member.

pub(crate) mod assigning;
pub(crate) mod open_work;
pub(crate) mod operations;
pub(crate) mod reassigning;
pub(crate) mod waiting;
