//! Deletes the contents of a deleted collection, in small transactions to keep lock times short.

use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{CollectionId, IndexId, ItemId, Result, Timestamp, WorkspaceId};
use records::activity::ACTIVITY_LOG;
use records::links::{self, LockSet};
use records::schema::{
    collection_fields, collection_indexes, collection_rewrites, collection_views, collections, item_activity,
    item_comments, item_files, item_links, items,
};
use records::search;
use records::shape;
use serde_json::json;
use store::LockMode;
use store::{Db, Tx};

/// The name of the job.
pub(super) const JOB: &str = "data.collection.purge";

/// The number of days after which a deleted collection is purged.
const KEPT_DAYS: i64 = 30;

/// The number of items per transaction. Rows of other tables are a multiple of it.
const SLICE: i64 = 200;

/// Enqueues the purge of a collection that is deleted now.
pub(super) fn ask(tx: &mut Tx, workspace: WorkspaceId, id: CollectionId, now: Timestamp) -> Result<()> {
    let due = now.plus_seconds(KEPT_DAYS * 24 * 3600);
    tx.enqueue(workspace, JOB, Some(&format!("purge:{id}")), &json!({ "collection_id": id }), due)
}

/// Purges a collection if it is still deleted. If it fails, everything purged so far stays purged.
pub(super) async fn run(db: &Db, id: CollectionId) -> Result<()> {
    while db.write(move |tx| slice(tx, id)).await? {}
    Ok(())
}

/// Purges the next rows. Returns whether there are more.
fn slice(tx: &mut Tx, id: CollectionId) -> Result<bool> {
    let deleted = collections::table.find(id).filter(collections::trashed_at.is_not_null());
    let workspace = deleted.select(collections::workspace_id).get_result(tx.connection()).optional()?;
    let Some(workspace) = workspace else { return Ok(false) };
    if purge_items(tx, workspace, id)? || purge_activity(tx, id)? || purge_keys(tx, id)? {
        return Ok(true);
    }
    shape::lock_for_change(tx, workspace, [id])?;
    diesel::delete(collection_rewrites::table.filter(collection_rewrites::collection_id.eq(id)))
        .execute(tx.connection())?;
    diesel::delete(collection_views::table.filter(collection_views::collection_id.eq(id)))
        .execute(tx.connection())?;
    diesel::delete(collection_fields::table.filter(collection_fields::collection_id.eq(id)))
        .execute(tx.connection())?;
    diesel::delete(collections::table.find(id)).execute(tx.connection())?;
    Ok(false)
}

fn purge_items(tx: &mut Tx, workspace: WorkspaceId, id: CollectionId) -> Result<bool> {
    let some =
        items::table.filter(items::collection_id.eq(id)).order(items::id).limit(SLICE).select(items::id);
    let mut ids: Vec<ItemId> = some.filter(items::trashed_at.is_null()).load(tx.connection())?;
    if ids.is_empty() {
        ids = some.filter(items::trashed_at.is_not_null()).load(tx.connection())?;
    }
    if ids.is_empty() {
        return Ok(false);
    }
    links::hold(tx, workspace, |tx| {
        let mut locks = LockSet::default();
        locks.add(links::locks::all_ends(tx, workspace, &ids)?, LockMode::Shared);
        locks.add(ids.iter().copied(), LockMode::Exclusive);
        Ok(locks)
    })?;
    let texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let connection = tx.connection();
    diesel::delete(item_links::table.filter(item_links::item_id.eq_any(&ids))).execute(connection)?;
    let to_them =
        item_links::table.filter(item_links::to_kind.eq("item")).filter(item_links::to_id.eq_any(&texts));
    diesel::delete(to_them).execute(connection)?;
    diesel::delete(item_comments::table.filter(item_comments::item_id.eq_any(&ids))).execute(connection)?;
    diesel::delete(item_files::table.filter(item_files::item_id.eq_any(&ids))).execute(connection)?;
    diesel::delete(items::table.filter(items::id.eq_any(&ids))).execute(connection)?;
    for item in ids {
        search::table::delete(tx, item)?;
    }
    Ok(true)
}

fn purge_activity(tx: &mut Tx, id: CollectionId) -> Result<bool> {
    let some: Vec<i64> = item_activity::table
        .filter(item_activity::collection_id.eq(id))
        .order(item_activity::id)
        .limit(SLICE * 5)
        .select(item_activity::id)
        .load(tx.connection())?;
    ACTIVITY_LOG.delete_numbers(tx, &some)?;
    Ok(!some.is_empty())
}

/// Deletes the next rows of one index, or the index if it has no rows left. Returns whether there was an index.
fn purge_keys(tx: &mut Tx, id: CollectionId) -> Result<bool> {
    let index: Option<IndexId> = collection_indexes::table
        .filter(collection_indexes::collection_id.eq(id))
        .order(collection_indexes::id)
        .limit(1)
        .select(collection_indexes::id)
        .load(tx.connection())?
        .pop();
    let Some(index) = index else { return Ok(false) };
    let gone = delete_some(tx, index, "item_keys", "index_id, k, item_id")?
        + delete_some(tx, index, "item_unique", "index_id, h")?
        + delete_some(tx, index, "item_columns", "index_id, last_id, column_id")?
        + delete_some(tx, index, "item_changes", "id")?;
    if gone == 0 {
        diesel::delete(collection_indexes::table.find(index)).execute(tx.connection())?;
    }
    Ok(true)
}

/// Deletes some rows of an index. Neither database supports `LIMIT` in `DELETE`, so a subquery selects their primary
/// keys.
fn delete_some(tx: &mut Tx, index: IndexId, table: &str, key: &str) -> Result<usize> {
    let rows = SLICE * 5;
    let sql = format!(
        "DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE index_id = $1 LIMIT {rows})"
    );
    Ok(diesel::sql_query(sql).bind::<BigInt, _>(index.0).execute(tx.connection())?)
}
