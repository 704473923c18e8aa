//! Who answers a contact: the autopilot or a member of the team, and who of the team.

pub(crate) mod assigning;
pub(crate) mod open_work;
pub(crate) mod operations;
pub(crate) mod reassigning;
pub(crate) mod waiting;
