//! What this group adds to the service.

use crate::business::Business;
use crate::contact_fields::ContactFields;
use crate::contacts::{
    AssignedContacts, ContactImports, ContactRecords, ContactTargets, Contacts, assign_job, forget_job,
    reassign_job, resume_job,
};
use crate::reminders::{self, Actions, ReminderFiles, Reminders};
use crate::tasks::{TaskFileReferences, TaskTargets, TaskWork, Tasks};
use crate::team::{Team, TeamDirectory};
use model::Result;
use operation::ports::{AgentRuns, AutoAssignment, ContactUses, Messenger, People, TeamMembers};
use operation::{Group, Registry};
use records::shape::Shapes;
use std::sync::Arc;
use transfer::imports::Target;

/// Adds the areas.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn areas(registry: Registry) -> Result<Registry> {
    registry
        .with::<ContactFields>()?
        .with::<Contacts>()?
        .with::<Tasks>()?
        .with::<Reminders>()?
        .with::<Team>()?
        .with::<Business>()
}

/// What imports write contacts with.
pub fn import_targets() -> Vec<Arc<dyn Target>> {
    vec![Arc::new(ContactImports)]
}

/// What the areas need beside their operations.
pub fn group(
    shapes: &Arc<Shapes>,
    agents: Arc<dyn AgentRuns>,
    people: People,
    messenger: Messenger,
    assigned: AutoAssignment,
    contact_uses: ContactUses,
) -> Group {
    let actions = Actions { agents, messenger };
    Group::default()
        .jobs(reminders::jobs(&actions))
        .service(actions)
        .service(people)
        .service(TeamMembers::new(Arc::new(TeamDirectory)))
        .job(resume_job(shapes))
        .job(assign_job(shapes, &assigned))
        .job(reassign_job(shapes, &assigned))
        .job(forget_job(&contact_uses))
        .service(assigned)
        .link_target(TaskTargets(shapes.clone()))
        .link_target(ContactTargets { shapes: shapes.clone() })
        .open_work(TaskWork)
        .open_work(AssignedContacts { shapes: shapes.clone() })
        .contact_references(ContactRecords)
        .file_references(TaskFileReferences)
        .file_references(ReminderFiles)
}
