//! Finding items, locking their rows, and the refusals that every change begins with.

use super::row::ItemRow;
use crate::print::Printer;
use crate::schema::{collections, items};
use crate::shape::{self, Shape, Shapes, Stamp};
use diesel::prelude::*;
use fields::invisible::bare;
use model::{Code, CollectionId, Error, ItemId, Result, WorkspaceId};
use operation::ExpectedVersion;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{AnyConnection, LockLevel, LockMode, Read, Tx, each, for_update, lock_row};

/// A live item of the collection.
///
/// # Errors
/// `not_found`.
pub fn live(read: &mut Read, shape: &Shape, id: ItemId) -> Result<ItemRow> {
    find(read, shape, id)?
        .filter(|row| row.trashed_at.is_none())
        .ok_or_else(|| Error::not_found(shape.kind.noun))
}

/// An item of the collection, live or in the trash.
///
/// # Errors
/// When the database fails.
pub fn find(read: &mut Read, shape: &Shape, id: ItemId) -> Result<Option<ItemRow>> {
    // For a connection to one database the statement is known by its type; for either, by its text, which is made each time.
    let found = each!(read.connection(), |connection| items::table
        .filter(items::id.eq(id))
        .filter(items::workspace_id.eq(shape.workspace))
        .filter(items::collection_id.eq(shape.collection))
        .select(ItemRow::as_select())
        .get_result(connection));
    Ok(found.optional()?)
}

/// An item with the shape of its collection, by one query: each is a round trip to PostgreSQL.
///
/// # Errors
/// `not_found` for the collection.
pub fn find_with_shape(
    read: &mut Read,
    shapes: &Shapes,
    workspace: WorkspaceId,
    collection: CollectionId,
    id: ItemId,
) -> Result<(Arc<Shape>, Option<ItemRow>)> {
    let of_the_collection = items::id
        .eq(id)
        .and(items::workspace_id.eq(collections::workspace_id))
        .and(items::collection_id.eq(collections::id));
    let found: Option<(Stamp, Option<ItemRow>)> = each!(read.connection(), |connection| collections::table
        .left_join(items::table.on(of_the_collection))
        .filter(collections::id.eq(collection))
        .filter(collections::workspace_id.eq(workspace))
        .filter(collections::trashed_at.is_null())
        .select((Stamp::as_select(), Option::<ItemRow>::as_select()))
        .get_result(connection)
        .optional())?;
    let (stamp, row) = found.ok_or_else(|| Error::not_found("collection"))?;
    Ok((shape::stamped(read, shapes, workspace, collection, stamp)?, row))
}

/// Those of some ids that are live records of a set.
///
/// # Errors
/// When the database fails.
pub fn live_among(read: &mut Read, set: CollectionId, ids: &[i64]) -> Result<Vec<i64>> {
    let ids: Vec<ItemId> = ids.iter().copied().map(ItemId).collect();
    let found: Vec<ItemId> = items::table
        .filter(items::id.eq_any(ids))
        .filter(items::collection_id.eq(set))
        .filter(items::trashed_at.is_null())
        .select(items::id)
        .load(read.connection())?;
    Ok(found.into_iter().map(|id| id.0).collect())
}

/// The titles of those of some ids that are live records of a set, in no order.
///
/// # Errors
/// When the database fails.
pub fn titles(read: &mut Read, shape: &Shape, ids: &[ItemId]) -> Result<Vec<(ItemId, String)>> {
    Ok(items::table
        .filter(items::id.eq_any(ids))
        .filter(items::collection_id.eq(shape.collection))
        .filter(items::trashed_at.is_null())
        .select((items::id, items::title))
        .load(read.connection())?)
}

/// A live item that nobody else changes until the transaction ends.
///
/// # Errors
/// `not_found`.
pub fn locked(tx: &mut Tx, shape: &Shape, id: ItemId) -> Result<ItemRow> {
    find_locked(tx, shape, id)?
        .filter(|row| row.trashed_at.is_none())
        .ok_or_else(|| Error::not_found(shape.kind.noun))
}

/// An item of the collection, live or in the trash, that nobody else changes until the transaction ends. SQLite has
/// one writer.
///
/// # Errors
/// When the database fails.
pub fn find_locked(tx: &mut Tx, shape: &Shape, id: ItemId) -> Result<Option<ItemRow>> {
    tx.expect_lock_order(LockLevel::Item, id.0, LockMode::Exclusive)?;
    let found = items::table
        .filter(items::id.eq(id))
        .filter(items::workspace_id.eq(shape.workspace))
        .filter(items::collection_id.eq(shape.collection))
        .select(ItemRow::as_select());
    Ok(for_update(found).get_result(tx.connection()).optional()?)
}

/// Live items of the collection that nobody else changes until the transaction ends, in the order of their ids, in which
/// they are locked. As many as one statement can name.
///
/// # Errors
/// When the database fails.
pub fn find_all_locked(tx: &mut Tx, shape: &Shape, ids: &BTreeSet<ItemId>) -> Result<Vec<ItemRow>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    for id in ids {
        tx.expect_lock_order(LockLevel::Item, id.0, LockMode::Exclusive)?;
    }
    let of_collection = items::table
        .filter(items::id.eq_any(ids))
        .filter(items::workspace_id.eq(shape.workspace))
        .filter(items::collection_id.eq(shape.collection))
        .order(items::id);
    let mut rows: Vec<ItemRow> =
        for_update(of_collection.select(ItemRow::as_select())).load(tx.connection())?;
    rows.retain(|row| row.trashed_at.is_none());
    Ok(rows)
}

/// Holds items of a set, live or in the trash, so that nobody changes them until the transaction ends. Those that others are
/// changing are not waited for, and given. SQLite has one writer.
///
/// # Errors
/// When the database fails.
pub fn hold_free(tx: &mut Tx, set: CollectionId, ids: &[ItemId]) -> Result<BTreeSet<ItemId>> {
    for id in ids {
        tx.expect_lock_order(LockLevel::Item, id.0, LockMode::Shared)?;
    }
    let AnyConnection::Postgres(connection) = tx.connection() else { return Ok(BTreeSet::new()) };
    let all = || {
        let of_set = items::table.filter(items::id.eq_any(ids)).filter(items::collection_id.eq(set));
        of_set.order(items::id).select(items::id)
    };
    let held: BTreeSet<ItemId> = all().for_key_share().skip_locked().load(connection)?.into_iter().collect();
    let there: BTreeSet<ItemId> = all().load(connection)?.into_iter().collect();
    Ok(&there - &held)
}

/// Waits for others that change this item. SQLite has one writer.
///
/// # Errors
/// When the database fails.
pub fn lock(tx: &mut Tx, id: ItemId) -> Result<()> {
    tx.expect_lock_order(LockLevel::Item, id.0, LockMode::Exclusive)?;
    lock_row!(tx, items::table.filter(items::id.eq(id)).select(items::id), for_update);
    Ok(())
}

/// Refuses a change of an item that somebody locked.
///
/// # Errors
/// `item_locked`.
pub fn refuse_locked(row: &ItemRow) -> Result<()> {
    match &row.locked_by {
        None => Ok(()),
        Some(holder) => Err(Error::new(Code::ItemLocked, "The item is locked. Unlock it first.")
            .with("details", json!({ "locked_by": holder, "locked_at": row.locked_at }))),
    }
}

/// Refuses a change by somebody who has not seen the last one.
///
/// # Errors
/// `version_conflict` with the item as it is.
pub fn expect_version(shape: &Shape, row: &ItemRow, expected: ExpectedVersion) -> Result<()> {
    expected.check_showing(row.version, || Printer::whole(shape).json(row))
}

/// The live item with an external key, which may be spelled with white space around it or with invisible characters.
///
/// # Errors
/// When the database fails.
pub fn holder_of_key(read: &mut Read, shape: &Shape, key: &str) -> Result<Option<ItemId>> {
    let bare = bare(key);
    let found = holder_of_exact_key(read, shape, key)?;
    if found.is_some() || bare == key { Ok(found) } else { holder_of_exact_key(read, shape, &bare) }
}

fn holder_of_exact_key(read: &mut Read, shape: &Shape, key: &str) -> Result<Option<ItemId>> {
    let found = items::table
        .filter(items::collection_id.eq(shape.collection))
        .filter(items::external_key.eq(key))
        .filter(items::external_key.is_not_null())
        .filter(items::trashed_at.is_null())
        .select(items::id)
        .get_result(read.connection());
    Ok(found.optional()?)
}

/// Counts a comment that was written on a locked record, or deleted. That is no change of the record: its version stays.
///
/// # Errors
/// When the database fails.
pub fn count_comment(tx: &mut Tx, id: ItemId, by: i64) -> Result<()> {
    diesel::update(items::table.find(id))
        .set(items::comment_count.eq(items::comment_count + by))
        .execute(tx.connection())?;
    Ok(())
}
