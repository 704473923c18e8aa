//! Declares the group of tasks and reminders.

use crate::Tasks;
use crate::dates::DatedTasks;
use crate::record::kind::TASKS;
use crate::references::{TaskFileReferences, TaskTargets, TaskWork};
use crate::reminders::{self, Actions, FlowReminders, ReminderFiles, ReminderReferences, Reminders};
use model::Result;
use operation::{Group, Parts, Services};
use ports::{ContactReferences, DatedRecords, FileReferences, LinkTargets, ObjectUsers, OpenWork};
use records::shape::Kind;
use std::sync::Arc;

/// The group of tasks and reminders.
pub const GROUP: Group = Group {
    declare: |declarations| {
        Ok(declarations.area::<Tasks>().area::<Reminders>().one_of::<&'static Kind>(&TASKS))
    },
    start,
};

fn start(services: &Services) -> Result<Parts> {
    let actions =
        Actions { agents: services.cloned()?, messenger: services.cloned()?, flows: services.cloned()? };
    let parts = Parts::default()
        .jobs(reminders::jobs(&actions))
        .service(actions)
        .one_of::<Arc<dyn DatedRecords>>(Arc::new(DatedTasks {
            shapes: services.get()?,
            planner: services.get()?,
        }))
        .one_of::<Arc<dyn LinkTargets>>(Arc::new(TaskTargets(services.get()?)))
        .one_of::<Arc<dyn OpenWork>>(Arc::new(TaskWork))
        .one_of::<Arc<dyn ContactReferences>>(Arc::new(ReminderReferences))
        .one_of::<Arc<dyn ObjectUsers>>(Arc::new(FlowReminders))
        .one_of::<Arc<dyn FileReferences>>(Arc::new(TaskFileReferences))
        .one_of::<Arc<dyn FileReferences>>(Arc::new(ReminderFiles));
    Ok(parts)
}
