//! `policy.once_per_contact`: a firing that started nothing has not fired for its contact.

use super::row::FiringRow;
use crate::schema::automation_marks as table;
use diesel::prelude::*;
use model::{ContactId, Result};
use store::Tx;

/// The key of the mark of a contact for whom an automation has fired.
pub(crate) fn key(contact: ContactId) -> String {
    format!("once:{contact}")
}

/// Forgets that an automation has fired, if this firing noted it.
///
/// # Errors
/// When the database fails.
pub(crate) fn forget(tx: &mut Tx, firing: &FiringRow) -> Result<()> {
    let Some(contact) = firing.contact_id else { return Ok(()) };
    let since = firing.waiting_since.unwrap_or(firing.created_at);
    let mark = table::table.find((firing.automation_id, key(contact))).filter(table::fired_at.ge(since));
    diesel::delete(mark).execute(tx.connection())?;
    Ok(())
}
