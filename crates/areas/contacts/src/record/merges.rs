//! The table of merged contacts. Finds the survivor by the id or the external id of a merged contact.

use crate::schema::contact_merges;
use diesel::prelude::*;
use model::{ItemId, JsonText, Result, WorkspaceId};
use std::collections::HashMap;
use store::{Read, Tx};

/// The most merged contacts to return.
const MOST: i64 = 1_000;
/// The most ids in one statement.
const AT_ONCE: usize = 1_000;

/// Returns the survivor of a merged contact.
pub(crate) fn survivor_of(read: &mut Read, workspace: WorkspaceId, id: ItemId) -> Result<Option<ItemId>> {
    let found = contact_merges::table
        .filter(contact_merges::merged_id.eq(id.0))
        .filter(contact_merges::workspace_id.eq(workspace))
        .select(contact_merges::survivor_id)
        .get_result::<i64>(read.connection());
    Ok(found.optional()?.map(ItemId))
}

/// Returns the survivors of those contacts that were merged, by the id of the merged contact.
pub(crate) fn survivors(
    read: &mut Read,
    workspace: WorkspaceId,
    ids: &[ItemId],
) -> Result<HashMap<ItemId, ItemId>> {
    let mut survivors = HashMap::new();
    for some in ids.chunks(AT_ONCE) {
        let found: Vec<(i64, i64)> = contact_merges::table
            .filter(contact_merges::merged_id.eq_any(some.iter().map(|id| id.0)))
            .filter(contact_merges::workspace_id.eq(workspace))
            .select((contact_merges::merged_id, contact_merges::survivor_id))
            .load(read.connection())?;
        survivors.extend(found.into_iter().map(|(merged, survivor)| (ItemId(merged), ItemId(survivor))));
    }
    Ok(survivors)
}

/// Returns the ids of the contacts that were merged into these, in ascending order, at most 1,000.
pub(crate) fn merged_into(
    read: &mut Read,
    workspace: WorkspaceId,
    survivors: &[ItemId],
) -> Result<Vec<ItemId>> {
    let mut merged = Vec::new();
    for some in survivors.chunks(AT_ONCE) {
        let found: Vec<i64> = contact_merges::table
            .filter(contact_merges::survivor_id.eq_any(some.iter().map(|id| id.0)))
            .filter(contact_merges::workspace_id.eq(workspace))
            .order(contact_merges::merged_id)
            .limit(MOST)
            .select(contact_merges::merged_id)
            .load(read.connection())?;
        merged.extend(found.into_iter().map(ItemId));
    }
    Ok(merged)
}

/// Returns the survivor of a merged contact that had this external id.
pub(crate) fn survivor_of_key(
    read: &mut Read,
    workspace: WorkspaceId,
    external_id: &str,
) -> Result<Option<ItemId>> {
    let found = contact_merges::table
        .filter(contact_merges::workspace_id.eq(workspace))
        .filter(contact_merges::external_id.eq(external_id))
        .order(contact_merges::created_at.desc())
        .select(contact_merges::survivor_id)
        .first::<i64>(read.connection());
    Ok(found.optional()?.map(ItemId))
}

/// Selects the ids of the contacts that were merged into a contact.
#[diesel::dsl::auto_type(no_type_alias)]
pub(crate) fn into(survivor: ItemId) -> _ {
    let survivor: i64 = survivor.0;
    contact_merges::table.filter(contact_merges::survivor_id.eq(survivor)).select(contact_merges::merged_id)
}

/// Records a merge. Contacts that had been merged into the source get the same survivor, so that chains stay one step long.
pub(crate) fn record(
    tx: &mut Tx,
    workspace: WorkspaceId,
    (merged, external_id): (ItemId, Option<&str>),
    survivor: ItemId,
    actor: &JsonText,
) -> Result<()> {
    diesel::update(contact_merges::table.filter(contact_merges::survivor_id.eq(merged.0)))
        .set(contact_merges::survivor_id.eq(survivor.0))
        .execute(tx.connection())?;
    diesel::insert_into(contact_merges::table)
        .values((
            contact_merges::merged_id.eq(merged.0),
            contact_merges::workspace_id.eq(workspace),
            contact_merges::survivor_id.eq(survivor.0),
            contact_merges::external_id.eq(external_id),
            contact_merges::actor.eq(actor),
            contact_merges::created_at.eq(tx.now()),
        ))
        .execute(tx.connection())?;
    Ok(())
}
