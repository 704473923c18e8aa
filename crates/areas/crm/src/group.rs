//! What contacts, the team and the work that they cause add to the service.

use crate::business::{Business, Calendar, Retention};
use crate::contact_fields::ContactFields;
use crate::contacts::{
    AssignedContacts, CONTACTS, ContactImports, ContactRecords, ContactTargets, Contacts, assign_job,
    count_up_to, forget_job, people, reassign_job, resume_job,
};
use crate::reminders::{self, Actions, ReminderFiles, Reminders};
use crate::tasks::{TASKS, TaskFileReferences, TaskTargets, TaskWork, Tasks};
use crate::team::{Team, TeamDirectory};
use auth::CountContacts;
use model::Result;
use operation::{Group, Parts, Services};
use ports::{
    BusinessCalendar, BusinessRetention, ContactReferences, ContactUses, FileReferences, LinkTargets,
    Members, OpenWork, TeamMembers,
};
use records::shape::{Kind, Shapes};
use std::sync::Arc;
use store::Db;
use transfer::imports::Target;

/// Contacts, the team and the business.
pub const CONTACTS_GROUP: Group = Group {
    declare: |declarations| {
        Ok(declarations
            .area::<ContactFields>()
            .area::<Contacts>()
            .area::<Team>()
            .area::<Business>()
            .one_of::<&'static Kind>(&CONTACTS)
            .one_of::<Arc<dyn Target>>(Arc::new(ContactImports))
            .service::<CountContacts>(count_up_to)
            .service::<Arc<dyn Members>>(Arc::new(TeamDirectory))
            .service::<Arc<dyn BusinessCalendar>>(Arc::new(Calendar))
            .service::<Arc<dyn BusinessRetention>>(Arc::new(Retention)))
    },
    start: start_contacts,
};

fn start_contacts(services: &Services) -> Result<Parts> {
    let (db, shapes) = (services.get::<Db>()?, services.get::<Shapes>()?);
    let assigned = services.cloned()?;
    let parts = Parts::default()
        .service(people(&shapes, &db, services.cloned()?))
        .service(TeamMembers::new(Arc::new(TeamDirectory)))
        .job(resume_job(&shapes))
        .job(assign_job(&shapes, &assigned))
        .job(reassign_job(&shapes, &assigned))
        .job(forget_job(&*services.get::<ContactUses>()?))
        .one_of::<Arc<dyn LinkTargets>>(Arc::new(ContactTargets { shapes: shapes.clone() }))
        .one_of::<Arc<dyn OpenWork>>(Arc::new(AssignedContacts { shapes }))
        .one_of::<Arc<dyn ContactReferences>>(Arc::new(ContactRecords));
    Ok(parts)
}

/// Tasks and reminders.
pub const TASKS_GROUP: Group = Group {
    declare: |declarations| {
        Ok(declarations.area::<Tasks>().area::<Reminders>().one_of::<&'static Kind>(&TASKS))
    },
    start: start_tasks,
};

fn start_tasks(services: &Services) -> Result<Parts> {
    let actions = Actions { agents: services.cloned()?, messenger: services.cloned()? };
    let parts = Parts::default()
        .jobs(reminders::jobs(&actions))
        .service(actions)
        .one_of::<Arc<dyn LinkTargets>>(Arc::new(TaskTargets(services.get()?)))
        .one_of::<Arc<dyn OpenWork>>(Arc::new(TaskWork))
        .one_of::<Arc<dyn FileReferences>>(Arc::new(TaskFileReferences))
        .one_of::<Arc<dyn FileReferences>>(Arc::new(ReminderFiles));
    Ok(parts)
}
