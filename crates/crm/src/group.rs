//! What this group adds to the service.

use crate::business::Business;
use crate::contact_fields::ContactFields;
use crate::contacts::Contacts;
use crate::reminders::{self, Agents, Reminders};
use crate::team::Team;
use model::Result;
use operation::ports::AgentRuns;
use operation::{Group, Registry};
use std::sync::Arc;

/// Adds the areas.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn areas(registry: Registry) -> Result<Registry> {
    registry
        .with::<ContactFields>()?
        .with::<Contacts>()?
        .with::<Reminders>()?
        .with::<Team>()?
        .with::<Business>()
}

/// What the areas need beside their operations.
pub fn group(agents: Arc<dyn AgentRuns>) -> Group {
    let agents = Agents(agents);
    Group::default().jobs(reminders::jobs(&agents)).service(agents)
}
