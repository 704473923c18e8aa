//! References of firings and marks to contacts.

use crate::firings::log::FIRING_LOG;
use crate::matching::marks;
use crate::schema::automation_firings as table;
use diesel::prelude::*;
use model::{ContactId, Result, WorkspaceId};
use ports::{ContactReferences, Left};
use store::Tx;

/// The most firings that one transaction deletes.
const PIECE: i64 = 200;

/// Firings and marks as references to contacts.
pub(crate) struct AutomationReferences;

impl ContactReferences for AutomationReferences {
    fn tables(&self) -> &'static [&'static str] {
        &["automation_firings", "automation_marks"]
    }

    fn replace(&self, tx: &mut Tx, workspace: WorkspaceId, from: ContactId, to: ContactId) -> Result<()> {
        let firings =
            table::table.filter(table::workspace_id.eq(workspace)).filter(table::contact_id.eq(from));
        diesel::update(firings).set(table::contact_id.eq(to)).execute(tx.connection())?;
        marks::move_contact(tx, workspace, from, to)
    }

    fn delete(&self, tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<()> {
        marks::forget_contact(tx, workspace, contact)
    }

    fn forget(&self, tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<Left> {
        let numbers: Vec<i64> = table::table
            .filter(table::workspace_id.eq(workspace))
            .filter(table::contact_id.eq(contact))
            .limit(PIECE)
            .select(table::number)
            .load(tx.connection())?;
        if numbers.is_empty() {
            return Ok(Left::Nothing);
        }
        FIRING_LOG.delete_numbers(tx, &numbers)?;
        Ok(Left::More)
    }
}
