//! Contacts that wait for a person: no agent answers them, and they are assigned to no one.

use crate::schema::contacts_without_assignee as waiting;
use diesel::prelude::*;
use fields::Data;
use model::{ContactId, ItemId, MemberId, Result};
use records::rows::ItemRow;
use serde_json::Value;
use store::{Tx, each};

/// The member of the team to whom a contact with these values is assigned.
pub(crate) fn assignee(data: &Data) -> Option<MemberId> {
    let ids = data.get("$assignee").and_then(Value::as_array);
    ids.and_then(|ids| ids.first()).and_then(Value::as_i64).map(MemberId)
}

/// Whether an agent answers a contact with these values.
pub(crate) fn is_on(data: &Data) -> bool {
    data.get("$autopilot").and_then(Value::as_bool).unwrap_or(true)
}

/// Whether a contact with these values waits.
pub(crate) fn waits(data: &Data) -> bool {
    !is_on(data) && assignee(data).is_none()
}

/// Notes whether a contact waits, after it was handed over or assigned.
pub(crate) fn note(tx: &mut Tx, row: &ItemRow) -> Result<()> {
    let now = tx.now();
    if !waits(&row.values()?) {
        return forget(tx, row.id);
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

/// Makes a contact wait in the place of one that is merged into it. Whether it waits at all is seen when its turn comes.
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

/// Forgets a contact that waits no longer, or is deleted permanently.
pub(crate) fn forget(tx: &mut Tx, contact: ItemId) -> Result<()> {
    diesel::delete(waiting::table.find(contact.0)).execute(tx.connection())?;
    Ok(())
}
