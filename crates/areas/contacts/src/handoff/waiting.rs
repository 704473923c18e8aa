//! The queue of contacts that wait for a person: their autopilot is off, and they have no assignee.

use crate::schema::contacts_without_assignee as waiting;
use diesel::prelude::*;
use fields::Data;
use model::{ContactId, ItemId, MemberId, Result};
use records::rows::ItemRow;
use serde_json::Value;
use store::{Tx, each};

/// Returns the member to whom a contact is assigned.
pub(crate) fn assignee(data: &Data) -> Option<MemberId> {
    let ids = data.get("$assignee").and_then(Value::as_array);
    ids.and_then(|ids| ids.first()).and_then(Value::as_i64).map(MemberId)
}

/// Returns whether the autopilot of a contact is on.
pub(crate) fn is_on(data: &Data) -> bool {
    data.get("$autopilot").and_then(Value::as_bool).unwrap_or(true)
}

/// Returns whether a contact waits for a person.
pub(crate) fn waits(data: &Data) -> bool {
    !is_on(data) && assignee(data).is_none()
}

/// Adds a contact to the queue or removes it, after a handoff or an assignment.
pub(crate) fn update_queue(tx: &mut Tx, row: &ItemRow) -> Result<()> {
    let now = tx.now();
    if !waits(&row.values()?) {
        return remove(tx, row.id);
    }
    let new = diesel::insert_into(waiting::table)
        .values((
            waiting::contact_id.eq(row.id.0),
            waiting::workspace_id.eq(row.workspace_id),
            waiting::waiting_since.eq(now),
        ))
        .on_conflict_do_nothing();
    each!(tx.connection(), |connection| new.execute(connection))?;
    Ok(())
}

/// Moves the queue entry of a merged contact to its survivor. Automatic assignment checks later whether the survivor
/// waits.
pub(crate) fn replace(tx: &mut Tx, from: ContactId, to: ContactId) -> Result<()> {
    let own = waiting::table.find(to.0).select(waiting::contact_id);
    let own: Option<i64> = own.first(tx.connection()).optional()?;
    let row = waiting::table.find(from.0);
    match own {
        Some(_) => diesel::delete(row).execute(tx.connection())?,
        None => diesel::update(row).set(waiting::contact_id.eq(to.0)).execute(tx.connection())?,
    };
    Ok(())
}

/// Removes a contact from the queue.
pub(crate) fn remove(tx: &mut Tx, contact: ItemId) -> Result<()> {
    diesel::delete(waiting::table.find(contact.0)).execute(tx.connection())?;
    Ok(())
}
