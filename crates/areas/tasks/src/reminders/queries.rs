//! Queries on reminders.

use super::model::{ReminderRow, ReminderStatus};
use crate::schema::reminders;
use diesel::prelude::*;
use model::{ContactId, Error, ReminderId, Result, Timestamp, WorkspaceId};
use store::{OptInPage, Read, Tx, for_update_skip_locked, lock_row};

/// The filters of a list of reminders.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Filter {
    pub(super) status: Option<ReminderStatus>,
    pub(super) contact: Option<ContactId>,
}

/// Lists reminders, newest first.
pub(super) fn list(
    read: &mut Read,
    workspace: WorkspaceId,
    filter: Filter,
    page: &OptInPage,
) -> Result<Vec<ReminderRow>> {
    let mut query = reminders::table
        .filter(reminders::workspace_id.eq(workspace))
        .order(reminders::id.desc())
        .limit(page.fetch())
        .select(ReminderRow::as_select())
        .into_boxed();
    if let Some(status) = filter.status {
        query = query.filter(reminders::status.eq(status));
    }
    if let Some(contact) = filter.contact {
        query = query.filter(reminders::contact_id.eq(contact));
    }
    if let Some(after) = page.after::<ReminderId>()? {
        query = query.filter(reminders::id.lt(after));
    }
    Ok(query.load(read.connection())?)
}

/// Returns a reminder, locked until the transaction ends.
///
/// # Errors
/// `not_found`.
pub(super) fn locked(tx: &mut Tx, workspace: WorkspaceId, id: ReminderId) -> Result<ReminderRow> {
    let row = reminders::table.filter(reminders::id.eq(id)).filter(reminders::workspace_id.eq(workspace));
    lock_row!(tx, row.select(reminders::id), for_update);
    let found = row.select(ReminderRow::as_select()).get_result(tx.connection()).optional()?;
    found.ok_or_else(|| Error::not_found("reminder"))
}

/// Returns and locks due reminders, the longest overdue first. Skips reminders that another transaction has locked.
pub(super) fn due(tx: &mut Tx, most: i64) -> Result<Vec<ReminderRow>> {
    let now = tx.now();
    let due = reminders::table
        .filter(reminders::wake_at.le(now))
        .order((reminders::wake_at.asc(), reminders::id.asc()))
        .limit(most);
    Ok(for_update_skip_locked(due.select(ReminderRow::as_select())).load(tx.connection())?)
}

/// Stores a changed reminder and increments its version.
pub(super) fn store(tx: &mut Tx, row: &mut ReminderRow) -> Result<()> {
    row.version += 1;
    row.updated_at = tx.now();
    diesel::update(reminders::table.find(row.id)).set(&*row).execute(tx.connection())?;
    Ok(())
}

/// Moves the reminders of a merged contact to its survivor. Returns their number.
pub fn move_to_contact(tx: &mut Tx, workspace: WorkspaceId, from: ContactId, to: ContactId) -> Result<usize> {
    let now = tx.now();
    Ok(diesel::update(reminders::table)
        .filter(reminders::contact_id.eq(from))
        .filter(reminders::workspace_id.eq(workspace))
        .set((
            reminders::contact_id.eq(to),
            reminders::version.eq(reminders::version + 1),
            reminders::updated_at.eq(now),
        ))
        .execute(tx.connection())?)
}

/// Cancels the scheduled reminders with `cancel_on_reply` of these contacts.
pub(super) fn cancel_on_reply(tx: &mut Tx, workspace: WorkspaceId, contacts: &[ContactId]) -> Result<()> {
    let now = tx.now();
    diesel::update(reminders::table)
        .filter(reminders::contact_id.eq_any(contacts))
        .filter(reminders::workspace_id.eq(workspace))
        .filter(reminders::cancel_on_reply)
        .filter(reminders::status.eq(ReminderStatus::Scheduled))
        .set((
            reminders::status.eq(ReminderStatus::Cancelled),
            reminders::next_slot_at.eq(None::<Timestamp>),
            reminders::snoozed_until.eq(None::<Timestamp>),
            reminders::wake_at.eq(None::<Timestamp>),
            reminders::version.eq(reminders::version + 1),
            reminders::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Deletes the reminders of a permanently deleted contact.
pub(super) fn delete_of_contact(tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<()> {
    diesel::delete(reminders::table)
        .filter(reminders::contact_id.eq(contact))
        .filter(reminders::workspace_id.eq(workspace))
        .execute(tx.connection())?;
    Ok(())
}
