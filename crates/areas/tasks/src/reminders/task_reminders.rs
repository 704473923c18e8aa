//! The reminders of tasks, which are created and changed together with the task.

use super::add::{Owner, insert};
use super::model::{LONGEST_TITLE, NewReminder, ReminderStatus};
use crate::schema::reminders;
use diesel::prelude::*;
use model::{ContactId, ReminderId, Result, TaskId, Timestamp, WorkspaceId};
use std::collections::BTreeSet;
use store::Tx;

/// The wanted reminders of a task.
#[derive(Debug)]
pub(crate) struct TaskReminders<'a> {
    /// The task.
    pub(crate) task: TaskId,
    /// Its title.
    pub(crate) title: &'a str,
    /// The contact whom it is about.
    pub(crate) contact: Option<ContactId>,
    /// The moments at which they fire, including past ones. A task that is not open has none.
    pub(crate) moments: BTreeSet<Timestamp>,
}

/// Creates, changes and deletes the reminders of a task so that they match `wanted`. A moment that has passed, or
/// whose reminder fired, was completed or was cancelled, does not get another reminder.
pub(crate) fn update(tx: &mut Tx, owner: &Owner<'_>, wanted: &TaskReminders<'_>) -> Result<()> {
    let of_task = || {
        reminders::table
            .filter(reminders::task_id.eq(wanted.task))
            .filter(reminders::workspace_id.eq(owner.workspace))
    };
    let columns = (reminders::id, reminders::due_at, reminders::title, reminders::contact_id);
    let rows: Vec<(ReminderId, Timestamp, String, Option<ContactId>)> =
        of_task().select(columns).load(tx.connection())?;
    let title: String = wanted.title.trim().chars().take(LONGEST_TITLE).collect();
    let (there, gone): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|(_, at, ..)| wanted.moments.contains(at));
    let is_outdated = |row: &&(_, _, String, _)| row.2 != title || row.3 != wanted.contact;
    let changed: Vec<ReminderId> = there.iter().filter(is_outdated).map(|row| row.0).collect();
    let waiting = |ids: Vec<ReminderId>| {
        let of_task = of_task().filter(reminders::id.eq_any(ids));
        of_task.filter(reminders::status.eq(ReminderStatus::Scheduled))
    };
    if !gone.is_empty() {
        diesel::delete(waiting(gone.iter().map(|row| row.0).collect())).execute(tx.connection())?;
    }
    let now = tx.now();
    if !changed.is_empty() {
        diesel::update(waiting(changed))
            .set((
                reminders::title.eq(&title),
                reminders::contact_id.eq(wanted.contact),
                reminders::version.eq(reminders::version + 1),
                reminders::updated_at.eq(now),
            ))
            .execute(tx.connection())?;
    }
    let is_new = |at: &&Timestamp| **at > now && there.iter().all(|row| row.1 != **at);
    for at in wanted.moments.iter().filter(is_new) {
        insert(tx, owner, NewReminder::of_task(&title, *at, wanted.contact), Some(wanted.task))?;
    }
    Ok(())
}

/// Deletes the reminders of a permanently deleted task.
pub(crate) fn delete_of_task(tx: &mut Tx, workspace: WorkspaceId, task: TaskId) -> Result<()> {
    diesel::delete(reminders::table)
        .filter(reminders::task_id.eq(task))
        .filter(reminders::workspace_id.eq(workspace))
        .execute(tx.connection())?;
    Ok(())
}
