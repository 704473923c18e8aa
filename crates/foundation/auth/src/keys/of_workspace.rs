//! The keys of one workspace, as its people see them.

use super::{KeyKind, StoredKey, find};
use crate::schema::api_keys;
use diesel::dsl::sql;
use diesel::expression::SqlLiteral;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use model::{Error, KeyId, KeyOwner, Result, WorkspaceId};
use std::collections::HashMap;
use store::Read;

/// Returns a key of a workspace that has a secret.
///
/// # Errors
/// `not_found`, also for keys of others, and for those of members and apps.
pub fn in_workspace(read: &mut Read, workspace: WorkspaceId, id: &KeyId) -> Result<StoredKey> {
    let stored = find(read, id)?.filter(|stored| {
        stored.kind == KeyKind::Secret && stored.key.owner == KeyOwner::Workspace(workspace)
    });
    stored.ok_or_else(|| Error::not_found("key"))
}

/// Returns the names of the keys of a workspace, of all kinds.
pub fn names(read: &mut Read, workspace: WorkspaceId) -> Result<HashMap<KeyId, (String, KeyKind)>> {
    let rows: Vec<(KeyId, String, KeyKind)> = api_keys::table
        .filter(api_keys::workspace_id.eq(workspace))
        .select((api_keys::id, api_keys::name, api_keys::kind))
        .load(read.connection())?;
    Ok(rows.into_iter().map(|(id, name, kind)| (id, (name, kind))).collect())
}

/// The condition that the key in a column of another query is of one of these kinds.
pub fn is_of_kinds(column: &'static str, kinds: &[KeyKind]) -> SqlLiteral<Bool> {
    let names: Vec<String> = kinds.iter().map(|kind| format!("'{}'", kind.as_str())).collect();
    let names = names.join(", ");
    sql(&format!("EXISTS (SELECT 1 FROM api_keys k WHERE k.id = {column} AND k.kind IN ({names}))"))
}
