//! Variables in the database.

use super::model::{Changed, VariableEnv, VariableRow};
use crate::schema::variables;
use diesel::prelude::*;
use model::{Code, Error, Result, VariableId, WorkspaceId};
use store::{OneRow, OptInPage, Read, Tx};

/// The most variables of a workspace.
pub(super) const MOST: i64 = 300;

pub(super) fn list(read: &mut Read, workspace: WorkspaceId, page: &OptInPage) -> Result<Vec<VariableRow>> {
    let mut query = variables::table
        .filter(variables::workspace_id.eq(workspace))
        .order(variables::id)
        .limit(page.fetch())
        .into_boxed();
    if let Some(after) = page.after::<VariableId>()? {
        query = query.filter(variables::id.gt(after));
    }
    Ok(query.load(read.connection())?)
}

/// A variable of the workspace.
///
/// # Errors
/// `not_found`.
pub(super) fn find(read: &mut Read, workspace: WorkspaceId, id: VariableId) -> Result<VariableRow> {
    variables::table
        .filter(variables::workspace_id.eq(workspace))
        .filter(variables::id.eq(id))
        .first(read.connection())
        .or_not_found("variable")
}

/// Lets nobody else change the variables of a workspace until the transaction ends.
pub(super) fn lock(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    tx.lock(&format!("variables {workspace}"))
}

/// # Errors
/// `limit_reached`.
pub(super) fn refuse_many(read: &mut Read, workspace: WorkspaceId) -> Result<()> {
    let count: i64 = variables::table
        .filter(variables::workspace_id.eq(workspace))
        .count()
        .get_result(read.connection())?;
    if count >= MOST {
        return Err(Error::new(Code::LimitReached, format!("A workspace has at most {MOST} variables.")));
    }
    Ok(())
}

/// # Errors
/// `duplicate_value` at `key`.
pub(super) fn refuse_taken(
    read: &mut Read,
    workspace: WorkspaceId,
    key: &str,
    env: VariableEnv,
) -> Result<()> {
    let holder: Option<VariableId> = variables::table
        .filter(variables::workspace_id.eq(workspace))
        .filter(variables::key.eq(key))
        .filter(variables::env.eq(env))
        .select(variables::id)
        .first(read.connection())
        .optional()?;
    match holder {
        None => Ok(()),
        Some(holder) => {
            Err(Error::duplicate("key", "Another variable has this key for the same `env`.", holder))
        }
    }
}

/// Writes a row that was changed.
pub(super) fn store(tx: &mut Tx, row: &VariableRow) -> Result<()> {
    let changed = Changed {
        value: row.value.as_ref(),
        sealed_value: row.sealed_value.as_deref(),
        description: row.description.as_deref(),
        group_name: row.group_name.as_deref(),
        metadata: &row.metadata,
        version: row.version,
        last_set_at: row.last_set_at,
        updated_at: row.updated_at,
    };
    diesel::update(variables::table.find(row.id)).set(changed).execute(tx.connection())?;
    Ok(())
}
