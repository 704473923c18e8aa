//! What is deleted for good: the trash, when somebody empties it or when its time is over, and old activity.
//!
//! Work in the background goes in slices, each a transaction of its own, so that writers are never held for long.

use super::find;
use super::write::Writer;
use crate::Author;
use crate::activity::ACTIVITY_LOG;
use crate::links;
use crate::schema::{collections, item_activity, items};
use crate::shape::{self, CollectionSettings, Shapes};
use ::jobs::{JobContext, JobError};
use diesel::prelude::*;
use model::{Code, CollectionId, ItemId, JsonText, Result, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Read, Tx};

/// Deletes what was in the trash for 30 days, every hour.
pub(crate) const PURGE: &str = "data.items.purge";

/// Empties the trash of a collection.
pub(crate) const EMPTY: &str = "data.items.empty_trash";

/// Forgets activity when its collection's time for it is over, once a day.
pub const FORGET: &str = "data.activity.purge";

/// Days in the trash.
const DAYS: i64 = 30;

/// Items that are deleted while the caller waits. More are deleted in the background.
const AT_ONCE: i64 = 1_000;

/// Items of one transaction in the background.
const SLICE: i64 = 100;

/// Activity entries of one transaction.
const ENTRIES: i64 = 500;

/// A trash that is emptied in the background.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Emptying {
    workspace: WorkspaceId,
    collection: CollectionId,
    /// What was thrown away later stays.
    until: Timestamp,
}

/// Deletes for good what is in the trash, up to 1,000 items at once and more in the background. Gives how many items were
/// there, and whether they are gone already.
///
/// # Errors
/// The database's.
pub fn empty_trash(tx: &mut Tx, writer: &Writer<'_>) -> Result<(i64, bool)> {
    let now = tx.now();
    let shape = writer.shape;
    let work = Emptying { workspace: shape.workspace, collection: shape.collection, until: now };
    let count = work.count(tx)?;
    let done = count <= AT_ONCE;
    if done {
        let ids = work.slice(tx, AT_ONCE)?;
        delete(tx, writer, &ids, now)?;
    } else {
        let key = format!("{EMPTY}:{}", shape.collection);
        tx.enqueue(work.workspace, EMPTY, Some(&key), &work, now)?;
    }
    Ok((count, done))
}

impl Emptying {
    fn count(&self, read: &mut Read) -> Result<i64> {
        let count = items::table
            .filter(items::collection_id.eq(self.collection))
            .filter(items::workspace_id.eq(self.workspace))
            .filter(items::trashed_at.is_not_null())
            .count();
        Ok(count.get_result(read.connection())?)
    }

    fn slice(&self, read: &mut Read, most: i64) -> Result<Vec<ItemId>> {
        let ids = items::table
            .filter(items::collection_id.eq(self.collection))
            .filter(items::workspace_id.eq(self.workspace))
            .filter(items::trashed_at.is_not_null())
            .filter(items::trashed_at.le(self.until))
            .order(items::id)
            .select(items::id)
            .limit(most);
        Ok(ids.load(read.connection())?)
    }
}

/// Deletes those of `ids` that are in the trash since `until` at the latest.
fn delete(tx: &mut Tx, writer: &Writer<'_>, ids: &[ItemId], until: Timestamp) -> Result<()> {
    links::hold_purged(tx, writer.shapes, writer.shape.workspace, ids)?;
    for id in ids {
        // One that came back meanwhile stays.
        let row = find::find_locked(tx, writer.shape, *id)?;
        if let Some(row) = row.filter(|row| row.trashed_at.is_some_and(|moment| moment <= until)) {
            writer.purge(tx, &row)?;
        }
    }
    Ok(())
}

/// Does the job [`EMPTY`].
///
/// # Errors
/// The database's.
pub async fn empty(shapes: Arc<Shapes>, job: JobContext) -> Result<(), JobError> {
    let work: Emptying = job.payload.parse()?;
    loop {
        let (shapes, work) = (shapes.clone(), work.clone());
        let left = job.db.write(move |tx| {
            let ids = work.slice(tx, SLICE)?;
            match purge(tx, &shapes, work.workspace, work.collection, &ids, work.until) {
                // The collection is in the trash itself by now, and takes its items along.
                Err(error) if error.code() == Code::NotFound => Ok(false),
                result => result.map(|()| !ids.is_empty()),
            }
        });
        match left.await? {
            false => return Ok(()),
            true if job.soft.is_cancelled() => return Err(JobError::hand_back()),
            true => {}
        }
    }
}

/// Does the job [`PURGE`].
///
/// # Errors
/// The database's.
pub(crate) async fn purge_old(shapes: Arc<Shapes>, job: JobContext) -> Result<(), JobError> {
    let until = job.db.now().plus_seconds(-DAYS * 24 * 3600);
    loop {
        let shapes = shapes.clone();
        let left = job.db.write(move |tx| {
            let found = in_trash_since(tx, until)?;
            let mut tenants: BTreeMap<WorkspaceId, Vec<ItemId>> = BTreeMap::new();
            let mut homes: BTreeMap<(WorkspaceId, CollectionId), Vec<ItemId>> = BTreeMap::new();
            for (workspace, collection, item) in &found {
                tenants.entry(*workspace).or_default().push(*item);
                homes.entry((*workspace, *collection)).or_default().push(*item);
            }
            for (workspace, ids) in tenants {
                links::hold_purged(tx, &shapes, workspace, &ids)?;
            }
            for ((workspace, collection), ids) in homes {
                purge(tx, &shapes, workspace, collection, &ids, until)?;
            }
            Ok(!found.is_empty())
        });
        match left.await? {
            false => return Ok(()),
            true if job.soft.is_cancelled() => return Err(JobError::hand_back()),
            true => {}
        }
    }
}

/// Those that are longest in the trash, of live collections: the others go with their collection.
fn in_trash_since(read: &mut Read, until: Timestamp) -> Result<Vec<(WorkspaceId, CollectionId, ItemId)>> {
    let found = items::table
        .inner_join(collections::table.on(collections::id.eq(items::collection_id)))
        .filter(collections::trashed_at.is_null())
        .filter(items::trashed_at.is_not_null())
        .filter(items::trashed_at.le(until))
        .order(items::trashed_at)
        .limit(SLICE)
        .select((items::workspace_id, items::collection_id, items::id));
    Ok(found.load(read.connection())?)
}

fn purge(
    tx: &mut Tx,
    shapes: &Shapes,
    workspace: WorkspaceId,
    collection: CollectionId,
    ids: &[ItemId],
    until: Timestamp,
) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let shape = shape::held(tx, shapes, workspace, collection)?;
    let author = Author::system(workspace, "trash");
    delete(tx, &Writer { shapes, shape: &shape, author: &author }, ids, until)
}

/// Does the job [`FORGET`].
///
/// # Errors
/// The database's.
pub async fn forget(job: JobContext) -> Result<(), JobError> {
    let mut after = CollectionId(i64::MIN);
    loop {
        let Some((id, settings)) = job.db.read(move |read| next_collection(read, after)).await? else {
            return Ok(());
        };
        let settings: CollectionSettings = settings.parse()?;
        let until = job.db.now().plus_seconds(-settings.activity_retention_days * 24 * 3600);
        while job.db.write(move |tx| forget_slice(tx, id, until)).await? {
            if job.soft.is_cancelled() {
                return Err(JobError::hand_back());
            }
        }
        after = id;
    }
}

fn next_collection(read: &mut Read, after: CollectionId) -> Result<Option<(CollectionId, JsonText)>> {
    let next = collections::table
        .filter(collections::id.gt(after))
        .order(collections::id)
        .select((collections::id, collections::settings))
        .limit(1)
        .get_result(read.connection());
    Ok(next.optional()?)
}

/// Forgets the oldest entries of a collection; whether there may be more to forget. Ids grow with time, so the oldest
/// are the first.
fn forget_slice(tx: &mut Tx, collection: CollectionId, until: Timestamp) -> Result<bool> {
    let oldest: Vec<(i64, Timestamp)> = item_activity::table
        .filter(item_activity::collection_id.eq(collection))
        .order(item_activity::id)
        .select((item_activity::id, item_activity::created_at))
        .limit(ENTRIES)
        .load(tx.connection())?;
    let old: Vec<i64> =
        oldest.iter().take_while(|(_, created_at)| *created_at <= until).map(|(id, _)| *id).collect();
    if old.is_empty() {
        return Ok(false);
    }
    ACTIVITY_LOG.delete_numbers(tx, &old)?;
    Ok(old.len() == oldest.len())
}
