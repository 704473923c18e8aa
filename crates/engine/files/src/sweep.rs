//! Permanent deletion: expired uploads, files that were in the trash for 30 days, objects without files, and
//! unfinished objects of killed processes.
//!
//! An object is deleted in two steps. The transaction that removes it from its last file inserts a row in
//! `unused_objects`. The job then deletes the object, and after that the row. A crash between the steps leaves the
//! row, so no object is forgotten.

use crate::row::FileStatus;
use crate::schema::{files, reserved_objects, unused_objects, upload_parts, uploads};
use crate::storage::{Files, give_up, path, release, unavailable};
use diesel::prelude::*;
use futures::TryStreamExt;
use model::{FileId, Result, UploadId, WorkspaceId};
use store::{Db, Tx, lock_row};

/// How long an upload may take, in seconds.
pub(crate) const UPLOAD_SECONDS: i64 = 24 * 3600;

/// How long files stay in the trash, in seconds.
const TRASH_SECONDS: i64 = 30 * 24 * 3600;

/// Extra time before an expired upload is deleted, longer than the transfer of a part can take, in seconds.
const LAST_PART_SECONDS: i64 = 3600;

const AT_A_TIME: i64 = 100;

/// Deletes everything that has expired. Returns the number of files, uploads and objects.
///
/// # Errors
/// `internal_error`, or errors of the storage.
pub async fn sweep(db: &Db, files: &Files) -> Result<usize> {
    let mut swept = 0;
    while let count @ 1.. = db.write(give_up_reserved).await? {
        swept += count;
    }
    while let count @ 1.. = db.write(purge_trash).await? {
        swept += count;
    }
    swept += end_uploads(db, files).await?;
    delete_unused(db, files).await?;
    files.objects.delete_abandoned(db.now().plus_seconds(-UPLOAD_SECONDS)).await?;
    Ok(swept)
}

/// Marks the objects of reservations older than a day for deletion.
fn give_up_reserved(tx: &mut Tx) -> Result<usize> {
    let before = tx.now().plus_seconds(-UPLOAD_SECONDS);
    let reserved: Vec<String> = reserved_objects::table
        .filter(reserved_objects::reserved_at.lt(before))
        .order(reserved_objects::reserved_at)
        .limit(AT_A_TIME)
        .select(reserved_objects::storage_key)
        .load(tx.connection())?;
    let mut count = 0;
    for storage_key in reserved {
        if release(tx, &storage_key)? {
            give_up(tx, &storage_key)?;
            count += 1;
        }
    }
    Ok(count)
}

/// Removes the content of files that were in the trash for 30 days.
fn purge_trash(tx: &mut Tx) -> Result<usize> {
    let before = tx.now().plus_seconds(-TRASH_SECONDS);
    let expired: Vec<(FileId, String)> = files::table
        .filter(files::status.eq(FileStatus::Ready))
        .filter(files::trashed_at.le(before))
        .order(files::id)
        .limit(AT_A_TIME)
        .select((files::id, files::storage_key))
        .load(tx.connection())?;
    for (id, storage_key) in &expired {
        purge(tx, *id, storage_key)?;
    }
    Ok(expired.len())
}

fn purge(tx: &mut Tx, id: FileId, storage_key: &str) -> Result<()> {
    let sharing = || files::table.filter(files::storage_key.eq(storage_key));
    // Lock all files that share the object, so that none of them is purged and no new file shares it meanwhile.
    lock_row!(tx, sharing().order(files::id).select(files::id), for_no_key_update);
    let now = tx.now();
    diesel::update(files::table.find(id))
        .set((
            files::status.eq(FileStatus::Purged),
            files::storage_key.eq(""),
            files::name.eq(""),
            files::folded_name.eq(""),
            files::folder.eq(None::<String>),
            files::tags.eq("[]"),
            files::metadata.eq("{}"),
            files::sha256.eq(""),
            files::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    // The row above no longer refers to the object, so this counts the other files.
    let is_shared: i64 = sharing().count().get_result(tx.connection())?;
    if is_shared == 0 {
        give_up(tx, storage_key)?;
    }
    Ok(())
}

/// Deletes expired multipart uploads with their parts.
async fn end_uploads(db: &Db, files: &Files) -> Result<usize> {
    let mut count = 0;
    loop {
        let ended: Vec<(UploadId, WorkspaceId)> = db
            .read(|read| {
                let before = read.now().plus_seconds(-LAST_PART_SECONDS);
                Ok(uploads::table
                    .filter(uploads::expires_at.lt(before))
                    .order(uploads::expires_at)
                    .limit(AT_A_TIME)
                    .select((uploads::id, uploads::workspace_id))
                    .load(read.connection())?)
            })
            .await?;
        if ended.is_empty() {
            return Ok(count);
        }
        for (id, workspace) in &ended {
            let folder = path(&format!("{workspace}/uploads/{id}"))?;
            // List the folder instead of the rows, because a part may have been stored without its row.
            let left: Vec<_> = files.objects.list(Some(&folder)).try_collect().await.map_err(unavailable)?;
            for object in left {
                files.delete(object.location.as_ref()).await?;
            }
        }
        // Delete the rows last: after a crash the next sweep finds them and repeats the deletion.
        count += ended.len();
        db.write(move |tx| {
            let ids = || ended.iter().map(|(id, _)| id);
            diesel::delete(upload_parts::table.filter(upload_parts::upload_id.eq_any(ids())))
                .execute(tx.connection())?;
            Ok(diesel::delete(uploads::table.filter(uploads::id.eq_any(ids()))).execute(tx.connection())?)
        })
        .await?;
    }
}

async fn delete_unused(db: &Db, files: &Files) -> Result<()> {
    loop {
        let unused: Vec<String> = db
            .read(|read| {
                let keys = unused_objects::table.select(unused_objects::storage_key);
                Ok(keys.limit(AT_A_TIME).load(read.connection())?)
            })
            .await?;
        if unused.is_empty() {
            return Ok(());
        }
        for key in &unused {
            files.delete(key).await?;
        }
        db.write(move |tx| {
            let rows = unused_objects::table.filter(unused_objects::storage_key.eq_any(&unused));
            Ok(diesel::delete(rows).execute(tx.connection())?)
        })
        .await?;
    }
}
