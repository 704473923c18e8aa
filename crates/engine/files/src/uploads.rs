//! Multipart uploads.
//!
//! Each part is a separate object. When the upload is completed, the parts are copied into the object of the file. A
//! part is stored once its row is committed, and the file exists once the transaction that completes the upload is
//! committed. So a crash at any point loses no acknowledged part and creates no second file.

use crate::row::FileRow;
use crate::schema::{upload_parts, uploads};
use crate::storage::{Details, Files, NewFile, Stored, abandon, finish, give_up, path, token, unavailable};
use crate::sweep::UPLOAD_SECONDS;
use bytes::Bytes;
use diesel::prelude::*;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use model::{Code, Error, FileId, JsonText, Result, Timestamp, UploadId, WorkspaceId};
use object_store::ObjectStoreExt;
use serde_json::json;
use store::{Db, Read, Tx, each, lock_row};

/// The maximum size of a part, in bytes.
pub const MOST_PART_BYTES: u64 = 25 << 20;

/// The maximum number of parts of an upload.
pub const MOST_PARTS: i64 = 1_000;

/// The maximum size of a file uploaded in parts, in bytes.
pub const MOST_UPLOAD_BYTES: i64 = 5 << 30;

/// The maximum number of missing parts listed in an error.
const MOST_NAMED: usize = 100;

/// An upload as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = uploads)]
pub struct UploadRow {
    /// The id.
    pub id: UploadId,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The [`Details`] of the future file.
    pub details: JsonText,
    /// The announced size in bytes.
    pub size: Option<i64>,
    /// The announced digest, in hexadecimal.
    pub sha256: Option<String>,
    /// The actor who began it, as JSON.
    pub uploaded_by: JsonText,
    /// The file, once the upload is complete.
    pub file_id: Option<FileId>,
    /// When the upload began.
    pub created_at: Timestamp,
    /// When the upload expires.
    pub expires_at: Timestamp,
}

/// A stored part.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = upload_parts)]
pub struct PartRow {
    /// The position in the file, from 1.
    pub number: i64,
    /// The size in bytes.
    pub size: i64,
    /// The digest, in hexadecimal.
    pub sha256: String,
    storage_key: String,
}

/// The data of a new upload.
#[derive(Debug, Clone)]
pub struct NewUpload {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The actor who begins it, as JSON.
    pub uploaded_by: JsonText,
    /// The details of the file.
    pub details: Details,
    /// The announced size in bytes.
    pub size: Option<i64>,
    /// The announced digest, in hexadecimal.
    pub sha256: Option<String>,
}

/// Begins an upload.
pub fn create(tx: &mut Tx, new: &NewUpload) -> Result<UploadRow> {
    let (now, random) = (tx.now(), tx.random());
    Ok(diesel::insert_into(uploads::table)
        .values((
            uploads::id.eq(UploadId::new(now, &*random)),
            uploads::workspace_id.eq(new.workspace),
            uploads::details.eq(JsonText::of(&new.details)),
            uploads::size.eq(new.size),
            uploads::sha256.eq(&new.sha256),
            uploads::uploaded_by.eq(&new.uploaded_by),
            uploads::created_at.eq(now),
            uploads::expires_at.eq(now.plus_seconds(UPLOAD_SECONDS)),
        ))
        .returning(uploads::all_columns)
        .get_result(tx.connection())?)
}

/// Returns an upload of the workspace.
///
/// # Errors
/// `not_found`.
pub fn find(read: &mut Read, workspace: WorkspaceId, id: &UploadId) -> Result<UploadRow> {
    let found = uploads::table
        .filter(uploads::id.eq(id))
        .filter(uploads::workspace_id.eq(workspace))
        .select(UploadRow::as_select())
        .get_result(read.connection());
    found.optional()?.ok_or_else(|| Error::not_found("upload"))
}

/// Returns the parts of an upload, in order.
pub fn parts(read: &mut Read, id: &UploadId) -> Result<Vec<PartRow>> {
    Ok(upload_parts::table
        .filter(upload_parts::upload_id.eq(id))
        .order(upload_parts::number)
        .select(PartRow::as_select())
        .load(read.connection())?)
}

/// Returns an error if an upload is complete or expired.
///
/// # Errors
/// `invalid_state`.
pub fn refuse_ended(upload: &UploadRow, now: Timestamp) -> Result<()> {
    let (state, message) = if upload.file_id.is_some() {
        ("completed", "The upload is complete.")
    } else if upload.expires_at <= now {
        ("expired", "The upload has expired. Start another one.")
    } else {
        return Ok(());
    };
    Err(Error::new(Code::InvalidState, message).with("details", json!({ "state": state })))
}

impl Files {
    /// Stores a part, replacing a part with the same number. With `sha256`, the bytes must have this digest.
    ///
    /// # Errors
    /// `file_too_large`, `validation_error` for an empty part or a wrong digest, `invalid_state`, errors of the
    /// stream, or errors of the storage.
    pub async fn put_part(
        &self,
        db: &Db,
        upload: &UploadRow,
        number: i64,
        sha256: Option<&str>,
        bytes: impl Stream<Item = Result<Bytes>> + Send,
    ) -> Result<PartRow> {
        refuse_ended(upload, db.now())?;
        // A part that is sent again gets another object, so the stored one stays intact until its row is replaced.
        let unique = token(&*db.random());
        let storage_key = format!("{}/uploads/{}/{number}-{unique}", upload.workspace_id, upload.id);
        let content = self.write(&path(&storage_key)?, bytes, MOST_PART_BYTES).await?;
        let part = PartRow { number, size: content.size, sha256: content.sha256, storage_key };
        let mistake = if part.size == 0 {
            Some(Error::invalid("body", "must not be empty"))
        } else if sha256.is_some_and(|expected| !expected.eq_ignore_ascii_case(&part.sha256)) {
            Some(Error::invalid("sha256", format_args!("does not match the part, which has {}", part.sha256)))
        } else {
            None
        };
        let result = match mistake {
            Some(mistake) => Err(mistake),
            None => {
                let (upload, part) = (upload.clone(), part.clone());
                db.write(move |tx| keep_part(tx, &upload, &part)).await
            }
        };
        if result.is_err()
            && let Err(error) = self.delete(&part.storage_key).await
        {
            // The sweep deletes it with the upload.
            tracing::warn!(?error, "the bytes of a refused part could not be deleted");
        }
        result.map(|()| part)
    }

    /// Joins the parts of an upload into the bytes of a file.
    ///
    /// # Errors
    /// `upload_incomplete` if the digest differs from the announced one, or errors of the storage.
    pub async fn join(&self, db: &Db, upload: &UploadRow, parts: Vec<PartRow>) -> Result<Stored> {
        let details: Details = upload.details.parse()?;
        let new = NewFile {
            name: details.name.clone(),
            most_bytes: u64::try_from(MOST_UPLOAD_BYTES).unwrap_or_default(),
            workspace: upload.workspace_id,
            uploaded_by: upload.uploaded_by.clone(),
        };
        let mut stored = self.put(db, new, self.bytes_of(parts)).await?;
        stored.details = details;
        if let Some(expected) = &upload.sha256
            && !expected.eq_ignore_ascii_case(&stored.content.sha256)
        {
            let message =
                format!("The joined parts have the digest {}, not the announced one.", stored.content.sha256);
            return Err(Error::new(Code::UploadIncomplete, message)
                .param("sha256")
                .with("details", json!({ "sha256": stored.content.sha256 })));
        }
        Ok(stored)
    }
}

impl Files {
    /// Returns the bytes of the parts, one part after another.
    fn bytes_of(&self, parts: Vec<PartRow>) -> BoxStream<'static, Result<Bytes>> {
        let objects = self.objects.clone();
        let opened = stream::iter(parts).then(move |part: PartRow| {
            let objects = objects.clone();
            async move {
                let found = objects.get(&path(&part.storage_key)?).await.map_err(unavailable)?;
                Ok::<_, Error>(found.into_stream().map_err(unavailable))
            }
        });
        opened.try_flatten().boxed()
    }
}

/// Inserts the row of a stored part. The lock on the upload orders this with a concurrent completion.
fn keep_part(tx: &mut Tx, upload: &UploadRow, part: &PartRow) -> Result<()> {
    lock_row!(tx, uploads::table.find(&upload.id).select(uploads::id), for_update);
    let upload = find(tx, upload.workspace_id, &upload.id)?;
    refuse_ended(&upload, tx.now())?;
    let before: Option<String> = upload_parts::table
        .find((&upload.id, part.number))
        .select(upload_parts::storage_key)
        .get_result(tx.connection())
        .optional()?;
    if let Some(replaced) = before {
        give_up(tx, &replaced)?;
    }
    let content = (
        upload_parts::size.eq(part.size),
        upload_parts::sha256.eq(&part.sha256),
        upload_parts::storage_key.eq(&part.storage_key),
        upload_parts::created_at.eq(tx.now()),
    );
    let row = (upload_parts::upload_id.eq(&upload.id), upload_parts::number.eq(part.number), content);
    each!(tx.connection(), |connection| diesel::insert_into(upload_parts::table)
        .values(row)
        .on_conflict((upload_parts::upload_id, upload_parts::number))
        .do_update()
        .set(content)
        .execute(connection))?;
    Ok(())
}

/// Returns an error if the parts are not the whole file. `count` is the number of parts, if the client states it.
///
/// # Errors
/// `upload_incomplete` or `file_too_large`.
pub fn refuse_incomplete(upload: &UploadRow, parts: &[PartRow], count: Option<i64>) -> Result<()> {
    let last = parts.last().map_or(1, |part| part.number).max(count.unwrap_or(1));
    let missing: Vec<i64> = (1..=last)
        .filter(|number| parts.binary_search_by_key(number, |part| part.number).is_err())
        .take(MOST_NAMED)
        .collect();
    let received: i64 = parts.iter().map(|part| part.size).sum();
    let message = if let Some(first) = missing.first() {
        format!("Part {first} is missing. Send the parts in `details.missing_parts`.")
    } else if let Some(size) = upload.size.filter(|size| *size != received) {
        format!("The parts have {received} bytes, but the announced size is {size}.")
    } else if let Some(count) = count.filter(|count| *count != last) {
        format!("The upload has {last} parts, not {count}.")
    } else if received > MOST_UPLOAD_BYTES {
        return Err(Error::new(Code::FileTooLarge, "A file can have up to 5 GiB."));
    } else {
        return Ok(());
    };
    let details = json!({
        "missing_parts": missing, "received_bytes": received, "expected_bytes": upload.size,
    });
    Err(Error::new(Code::UploadIncomplete, message).with("details", details))
}

/// Creates the file of a joined upload. Returns it with `false` if another transaction has completed the upload
/// before.
///
/// # Errors
/// `not_found` if the upload was deleted meanwhile.
pub fn complete(tx: &mut Tx, upload: &UploadRow, stored: &Stored) -> Result<(FileRow, bool)> {
    lock_row!(tx, uploads::table.find(&upload.id).select(uploads::id), for_update);
    let upload = find(tx, upload.workspace_id, &upload.id)?;
    // Another request has completed the upload while this one joined its parts.
    if let Some(made) = completed(tx, &upload)? {
        abandon(tx, &stored.storage_key)?;
        return Ok((made, false));
    }
    let parts = parts(tx, &upload.id)?;
    let file = finish(tx, stored)?;
    for part in parts {
        give_up(tx, &part.storage_key)?;
    }
    diesel::delete(upload_parts::table.filter(upload_parts::upload_id.eq(&upload.id)))
        .execute(tx.connection())?;
    diesel::update(uploads::table.find(&upload.id))
        .set(uploads::file_id.eq(file.id))
        .execute(tx.connection())?;
    Ok((file, true))
}

/// Returns the file of a completed upload, or `None` if the upload is not complete.
///
/// # Errors
/// `not_found` if the file has been deleted.
pub fn completed(read: &mut Read, upload: &UploadRow) -> Result<Option<FileRow>> {
    upload.file_id.map(|id| crate::live(read, upload.workspace_id, id)).transpose()
}
