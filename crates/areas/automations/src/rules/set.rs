//! The version of the set of a workspace's automations, by which compiled rules in memory are known to be those of the database.

use crate::schema::automation_sets;
use diesel::prelude::*;
use model::{Result, WorkspaceId};
use std::collections::HashMap;
use store::{Read, Tx, each};

/// Counts the version up. Every change of an automation that matters to its firings does so, in its own transaction.
pub(crate) fn changed(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    let row = (automation_sets::workspace_id.eq(workspace), automation_sets::version.eq(1));
    each!(tx.connection(), |connection| diesel::insert_into(automation_sets::table)
        .values(row)
        .on_conflict(automation_sets::workspace_id)
        .do_update()
        .set(automation_sets::version.eq(automation_sets::version + 1))
        .execute(connection))?;
    Ok(())
}

/// Returns the versions of workspaces. Those that never had an automation have none.
pub(crate) fn versions(read: &mut Read, of: &[WorkspaceId]) -> Result<HashMap<WorkspaceId, i64>> {
    let rows: Vec<(WorkspaceId, i64)> = automation_sets::table
        .filter(automation_sets::workspace_id.eq_any(of))
        .select((automation_sets::workspace_id, automation_sets::version))
        .load(read.connection())?;
    Ok(rows.into_iter().collect())
}
