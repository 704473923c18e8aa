//! Holding the items at the ends of links.
//!
//! Whoever makes, changes or removes a link holds the items at both of its ends, and takes all that it holds in the
//! order of ids, before it writes anything: of two who write links of the same items one waits for the other, and never
//! each for the other. Items that only compute something of what changed are locked when it is their turn.
//!
//! The one writer of SQLite holds everything.

use super::table::{CHUNK, ITEM};
use crate::schema::{item_links, items};
use diesel::prelude::*;
use model::{Code, CollectionId, Error, ItemId, JsonText, Result, WorkspaceId};
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use store::{LockLevel, LockMode, Read, Tx, for_key_share, for_update};

/// The items that a transaction is to hold.
#[derive(Debug, Clone, Default)]
pub struct LockSet(BTreeMap<ItemId, LockMode>);

/// An item that is held.
#[derive(Debug, Clone, Queryable)]
struct HeldRow {
    id: ItemId,
    collection_id: CollectionId,
    trashed_at: Option<model::Timestamp>,
    locked_by: Option<JsonText>,
}

/// The items that a transaction holds, as far as they exist.
#[derive(Debug)]
pub struct Holding(BTreeMap<ItemId, HeldRow>);

impl LockSet {
    /// Adds items; what is wanted of one in two ways is the stronger of both.
    pub fn add(&mut self, ids: impl IntoIterator<Item = ItemId>, mode: LockMode) {
        for id in ids {
            let wanted = self.0.entry(id).or_insert(mode);
            *wanted = (*wanted).max(mode);
        }
    }

    fn cover(&self, others: &Self) -> bool {
        others.0.iter().all(|(id, mode)| self.0.get(id).is_some_and(|wanted| wanted >= mode))
    }

    /// Takes the items in the order of ids.
    ///
    /// # Errors
    /// When the database fails.
    pub fn take(&self, tx: &mut Tx, workspace: WorkspaceId) -> Result<Holding> {
        let mut held = BTreeMap::new();
        let wanted: Vec<(ItemId, LockMode)> = self.0.iter().map(|(id, mode)| (*id, *mode)).collect();
        // One statement takes one kind of lock, so it goes as far as the next item that wants the other.
        for run in wanted.chunk_by(|(_, one), (_, other)| one == other) {
            for some in run.chunks(CHUNK) {
                let Some((_, mode)) = some.first() else { continue };
                let ids: Vec<ItemId> = some.iter().map(|(id, _)| *id).collect();
                let rows = lock(tx, workspace, &ids, *mode)?;
                held.extend(rows.into_iter().map(|row| (row.id, row)));
            }
        }
        Ok(Holding(held))
    }
}

fn lock(tx: &mut Tx, workspace: WorkspaceId, ids: &[ItemId], mode: LockMode) -> Result<Vec<HeldRow>> {
    for id in ids {
        tx.expect_lock_order(LockLevel::Item, id.0, mode)?;
    }
    let rows = items::table
        .filter(items::id.eq_any(ids))
        .filter(items::workspace_id.eq(workspace))
        .order(items::id)
        .select((items::id, items::collection_id, items::trashed_at, items::locked_by));
    Ok(match mode {
        LockMode::Exclusive => for_update(rows).load(tx.connection())?,
        LockMode::Shared => for_key_share(rows).load(tx.connection())?,
    })
}

impl Holding {
    /// Whether an item is live and of this collection.
    pub fn has(&self, collection: CollectionId, id: ItemId) -> bool {
        self.0.get(&id).is_some_and(|row| row.collection_id == collection && row.trashed_at.is_none())
    }

    /// Refuses a change of live items of a collection that somebody locked.
    ///
    /// # Errors
    /// `item_locked`.
    pub fn refuse_locked(
        &self,
        collection: CollectionId,
        ids: impl IntoIterator<Item = ItemId>,
    ) -> Result<()> {
        for id in ids {
            let holder = self.0.get(&id).and_then(|row| row.locked_by.as_ref());
            if let Some(holder) = holder.filter(|_| self.has(collection, id)) {
                let message = format!("The link would change item {id}, which is locked. Unlock it first.");
                return Err(Error::new(Code::ItemLocked, message)
                    .with("details", json!({ "item_id": id, "locked_by": holder })));
            }
        }
        Ok(())
    }
}

/// Holds what `find` finds. It is asked again when that is held, because links may have changed meanwhile: then all is
/// let go and taken anew with what is missing, which may stand before what was held.
///
/// # Errors
/// Those of `find`, or the database's.
pub fn hold(
    tx: &mut Tx,
    workspace: WorkspaceId,
    mut find: impl FnMut(&mut Tx) -> Result<LockSet>,
) -> Result<()> {
    if !tx.is_postgres() {
        return Ok(());
    }
    let mut locks = find(tx)?;
    if locks.0.is_empty() {
        return Ok(());
    }
    loop {
        let mut grown = None;
        let held = tx.savepoint(|tx| {
            locks.take(tx, workspace)?;
            let now = find(tx)?;
            if locks.cover(&now) {
                return Ok(());
            }
            grown = Some(now);
            Err(Error::internal("further items are to be held"))
        });
        let Some(grown) = grown else { return held };
        for (id, mode) in grown.0 {
            locks.add([id], mode);
        }
    }
}

/// Which of `ids` are live items of a collection, now held.
///
/// # Errors
/// `item_locked` for one that is to change and that somebody locked.
pub fn live(
    tx: &mut Tx,
    workspace: WorkspaceId,
    collection: CollectionId,
    ids: &[ItemId],
    mode: LockMode,
) -> Result<HashSet<ItemId>> {
    let mut locks = LockSet::default();
    locks.add(ids.iter().copied(), mode);
    let holding = locks.take(tx, workspace)?;
    if mode == LockMode::Exclusive {
        holding.refuse_locked(collection, ids.iter().copied())?;
    }
    Ok(ids.iter().copied().filter(|id| holding.has(collection, *id)).collect())
}

/// The items at the ends of all links of some items, with these.
///
/// # Errors
/// When the database fails.
pub fn all_ends(read: &mut Read, workspace: WorkspaceId, ids: &[ItemId]) -> Result<Vec<ItemId>> {
    let mut ends = ids.to_vec();
    for ids in ids.chunks(CHUNK) {
        let texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let to_them: Vec<ItemId> = item_links::table
            .filter(item_links::to_kind.eq(ITEM))
            .filter(item_links::to_id.eq_any(texts))
            .filter(item_links::workspace_id.eq(workspace))
            .select(item_links::item_id)
            .load(read.connection())?;
        let of_them: Vec<String> = item_links::table
            .filter(item_links::item_id.eq_any(ids))
            .filter(item_links::to_kind.eq(ITEM))
            .select(item_links::to_id)
            .load(read.connection())?;
        ends.extend(to_them);
        ends.extend(of_them.iter().filter_map(|id| id.parse().ok()).map(ItemId));
    }
    Ok(ends)
}
