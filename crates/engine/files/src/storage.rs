//! Storage of bytes in objects.

use crate::content::{Content, Inspector};
use crate::duration::duration_ms;
use crate::name::folded;
use crate::objects::Objects;
use crate::row::{FileKind, FileRow, FileStatus};
use crate::schema::{files, reserved_objects, unused_objects};
use auth::Seal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use diesel::prelude::*;
use futures::stream::{BoxStream, Fuse};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use model::{Code, Error, JsonText, Metadata, Random, Result, WorkspaceId};
use object_store::buffered::BufReader;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResultPayload, ObjectStoreExt, WriteMultipart};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::pin::pin;
use std::sync::Arc;
use store::{Db, Tx, each, lock_row};

/// The maximum size of a file sent in one request, in bytes.
pub const MOST_BYTES: u64 = 100 << 20;

/// Initial capacity of a file's buffer. Most files are small.
const FIRST_BYTES: usize = 16 << 10;

/// Bytes per read of a file in a folder.
const CHUNK: u64 = 64 << 10;

/// When to retry after the storage failed, in seconds.
const RETRY_AFTER: i64 = 10;

/// The maximum number of parts of one file that are sent to the store concurrently.
const PARTS_AT_ONCE: usize = 2;

/// Checks that the storage works: writes, reads and deletes an object.
///
/// # Errors
/// `internal_error` if an operation fails, or if the bytes read differ from those written.
pub async fn probe(objects: &Objects, random: &dyn Random) -> Result<()> {
    let path = path(&format!("probe/{}", token(random)))?;
    let written = Bytes::from_static(b"svc doctor");
    objects.put(&path, written.clone().into()).await.map_err(Error::internal)?;
    let read = match objects.get(&path).await {
        Ok(found) => found.bytes().await,
        Err(error) => Err(error),
    };
    objects.delete(&path).await.map_err(Error::internal)?;
    if read.map_err(Error::internal)? == written {
        return Ok(());
    }
    Err(Error::internal("other bytes came back than were written"))
}

/// The files of the service: object storage, signatures and URLs.
pub struct Files {
    pub(super) objects: Objects,
    pub(super) seal: Arc<Seal>,
    pub(super) base_url: String,
}

/// The data of a new file.
#[derive(Debug, Clone)]
pub struct NewFile {
    /// The name.
    pub name: String,
    /// The maximum size in bytes; [`MOST_BYTES`] for uploads.
    pub most_bytes: u64,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The uploader, as JSON of an [`Actor`](model::Actor).
    pub uploaded_by: JsonText,
}

/// The details of a file that its uploader chose.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Details {
    /// The name.
    pub name: String,
    /// The media type that the sender declared.
    pub declared_type: Option<String>,
    /// The folder.
    pub folder: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// Free data of the caller's.
    pub metadata: Metadata,
}

/// A file whose bytes are stored, but whose row is not. [`finish`] inserts the row.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The details.
    pub details: Details,
    workspace: WorkspaceId,
    uploaded_by: JsonText,
    pub(crate) storage_key: String,
    pub(crate) content: Content,
}

impl Files {
    /// Creates a service that stores files in `objects` and serves them at URLs below `base_url`.
    pub fn new(objects: Objects, seal: Arc<Seal>, base_url: String) -> Self {
        Self { objects, seal, base_url }
    }

    /// Stores bytes as a file that can be read at once.
    ///
    /// # Errors
    /// As [`Files::put`].
    pub async fn store<E: Into<Error>>(
        &self,
        db: &Db,
        new: NewFile,
        bytes: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<FileRow> {
        let stored = self.put(db, new, bytes).await?;
        db.write(move |tx| finish(tx, &stored)).await
    }

    /// Stores the bytes of a file. [`finish`] then creates the file.
    ///
    /// # Errors
    /// `file_too_large`, errors of the stream, or errors of the storage.
    pub async fn put<E: Into<Error>>(
        &self,
        db: &Db,
        new: NewFile,
        bytes: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<Stored> {
        let NewFile { name, most_bytes, workspace, uploaded_by } = new;
        let (storage_key, mut content) = self.write_reserved(db, workspace, bytes, most_bytes).await?;
        // Read the duration from the stored object: containers may have their index at the end.
        if content.is_timed() {
            content.duration_ms = duration_ms(&self.objects, &path(&storage_key)?).await;
        }
        let details = Details { name, ..Details::default() };
        Ok(Stored { details, workspace, uploaded_by, storage_key, content })
    }

    /// Writes an object at a new place, which stays reserved.
    pub(crate) async fn write_reserved<E: Into<Error>>(
        &self,
        db: &Db,
        workspace: WorkspaceId,
        bytes: impl Stream<Item = Result<Bytes, E>> + Send,
        most_bytes: u64,
    ) -> Result<(String, Content)> {
        let storage_key = format!("{workspace}/{}", token(&*db.random()));
        let place = path(&storage_key)?;
        let reserved = storage_key.clone();
        db.write(move |tx| reserve(tx, &reserved)).await?;
        match self.write(&place, bytes, most_bytes).await {
            Ok(content) => Ok((storage_key, content)),
            Err(error) => {
                // The storage may have stored the object without confirming it, so have it deleted. If this fails
                // too, the sweep deletes it after a day.
                if let Err(failed) = db.write(move |tx| abandon(tx, &storage_key)).await {
                    tracing::warn!(error = ?failed, "what is left of a failed upload could not be noted");
                }
                Err(error)
            }
        }
    }

    /// Writes an object. On an error nothing is stored.
    pub(crate) async fn write<E: Into<Error>>(
        &self,
        place: &Path,
        bytes: impl Stream<Item = Result<Bytes, E>> + Send,
        most: u64,
    ) -> Result<Content> {
        let size = self.objects.part_bytes();
        let bytes = pin!(bytes);
        let mut incoming =
            Incoming { bytes: bytes.fuse(), rest: Bytes::new(), inspector: Inspector::new(), most };
        let first = incoming.part(size, FIRST_BYTES).await?;
        // Everything fits into the first part, so a single request is enough.
        if first.len() < size {
            self.objects.put(place, first.into()).await.map_err(unavailable)?;
            return Ok(incoming.inspector.finish());
        }
        let upload = self.objects.put_multipart(place).await.map_err(unavailable)?;
        let mut writer = WriteMultipart::new_with_chunk_size(upload, size);
        writer.put(first);
        match incoming.write_rest(&mut writer, size).await {
            Ok(()) => {
                writer.finish().await.map_err(unavailable)?;
                Ok(incoming.inspector.finish())
            }
            Err(error) => {
                if let Err(failed) = writer.abort().await {
                    tracing::warn!(object = %place, error = %failed, "what came of an upload could not be removed");
                }
                Err(error)
            }
        }
    }

    /// Deletes an object. Succeeds if it does not exist.
    pub(crate) async fn delete(&self, storage_key: &str) -> Result<()> {
        match self.objects.delete(&path(storage_key)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Returns the bytes of a file, or of a range of it, as a stream.
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn read(
        &self,
        row: &FileRow,
        range: Option<Range<u64>>,
    ) -> Result<BoxStream<'static, std::io::Result<Bytes>>> {
        let options = GetOptions { range: range.map(GetRange::Bounded), ..GetOptions::default() };
        let found = self.objects.get_opts(&path(&row.storage_key)?, options).await.map_err(unavailable)?;
        Ok(match found.payload {
            GetResultPayload::File(file, _) => chunks(file, found.range).boxed(),
            GetResultPayload::Stream(stream) => stream.map_err(std::io::Error::from).boxed(),
        })
    }

    /// Returns a reader of a file's bytes for blocking code (with [`tokio_util::io::SyncIoBridge`]).
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn reader(&self, row: &FileRow) -> Result<BufReader> {
        let meta = self.objects.head(&path(&row.storage_key)?).await.map_err(unavailable)?;
        Ok(BufReader::new(self.objects.store(), &meta))
    }
}

/// Converts an error of the storage. If the storage is full, refuses or cannot be reached, clients can retry. A
/// missing object is an internal error.
pub(crate) fn unavailable(error: object_store::Error) -> Error {
    if is_full(&error) {
        return Error::storage_full(error);
    }
    if matches!(error, object_store::Error::NotFound { .. }) {
        return Error::internal(error);
    }
    let message = "The storage of files is not available. Try again later.";
    Error::new(Code::ServiceUnavailable, message).retry_after(RETRY_AFTER).caused_by(error)
}

/// Returns whether the folder's disk is full.
fn is_full(error: &object_store::Error) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = source {
        if let Some(cause) = cause.downcast_ref::<std::io::Error>() {
            return matches!(cause.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        }
        source = cause.source();
    }
    false
}

/// Streams a part of a file in larger chunks than `object_store` does, because each chunk costs a blocking task.
fn chunks(file: std::fs::File, range: Range<u64>) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
    stream::try_unfold((file, range), |(file, range)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        let length = CHUNK.min(range.end - range.start);
        // Allocate here, on the thread that frees the buffer. Otherwise the allocator would keep memory for each of
        // the many blocking threads.
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        let read = tokio::task::spawn_blocking(move || {
            file.read_exact_at(&mut bytes, range.start)?;
            Ok::<_, std::io::Error>((Bytes::from(bytes), (file, range.start + length..range.end)))
        });
        read.await.map_err(std::io::Error::other)?.map(Some)
    })
}

pub(crate) fn path(key: &str) -> Result<Path> {
    Path::parse(key).map_err(Error::internal)
}

/// Returns 128 random bits as text.
pub(crate) fn token(random: &dyn Random) -> String {
    URL_SAFE_NO_PAD.encode(bits(random))
}

/// Reserves an object that will be written. If no file is created from it, the sweep deletes it.
fn reserve(tx: &mut Tx, storage_key: &str) -> Result<()> {
    diesel::insert_into(reserved_objects::table)
        .values((reserved_objects::storage_key.eq(storage_key), reserved_objects::reserved_at.eq(tx.now())))
        .execute(tx.connection())?;
    Ok(())
}

/// Ends the reservation of an object. Returns whether there was one.
pub(crate) fn release(tx: &mut Tx, storage_key: &str) -> Result<bool> {
    Ok(diesel::delete(reserved_objects::table.find(storage_key)).execute(tx.connection())? == 1)
}

/// Ends a reservation and marks its object for deletion.
pub(crate) fn abandon(tx: &mut Tx, storage_key: &str) -> Result<()> {
    release(tx, storage_key)?;
    give_up(tx, storage_key)
}

fn bits(random: &dyn Random) -> [u8; 16] {
    let mut bytes = [0; 16];
    random.fill(&mut bytes);
    bytes
}

/// Creates a file from stored bytes, in the transaction that needs it. If another file of the workspace has the same
/// content, the two share its object.
///
/// # Errors
/// `not_found` if the upload took so long that its reservation has expired.
pub fn finish(tx: &mut Tx, stored: &Stored) -> Result<FileRow> {
    let Stored { details, content, .. } = stored;
    // Without a reservation the sweep has already marked the object for deletion.
    if !release(tx, &stored.storage_key)? {
        return Err(Error::not_found("file"));
    }
    let storage_key = match twin(tx, stored)? {
        Some(shared) => {
            give_up(tx, &stored.storage_key)?;
            shared
        }
        None => stored.storage_key.clone(),
    };
    let (now, path_token) = (tx.now(), token(&*tx.random()));
    let mime_type = content.mime_type(&details.name);
    let (width, height) = content.dimensions.unzip();
    Ok(diesel::insert_into(files::table)
        .values((
            (files::workspace_id.eq(stored.workspace), files::uploaded_by.eq(&stored.uploaded_by)),
            (files::status.eq(FileStatus::Ready), files::version.eq(1), files::path_token.eq(path_token)),
            (files::storage_key.eq(&storage_key), files::size.eq(content.size)),
            (files::sha256.eq(&content.sha256), files::mime_type.eq(mime_type)),
            (files::kind.eq(FileKind::of(mime_type)), files::declared_type.eq(&details.declared_type)),
            (files::width.eq(width), files::height.eq(height), files::duration_ms.eq(content.duration_ms)),
            (files::name.eq(&details.name), files::folded_name.eq(folded(&details.name))),
            (files::folder.eq(&details.folder), files::tags.eq(JsonText::of(&details.tags))),
            files::metadata.eq(JsonText::of(&details.metadata)),
            (files::created_at.eq(now), files::updated_at.eq(now)),
        ))
        .returning(files::all_columns)
        .get_result(tx.connection())?)
}

/// Returns the object of another file with the same content. Locks that file's row, so that the object is not deleted
/// meanwhile.
fn twin(tx: &mut Tx, stored: &Stored) -> Result<Option<String>> {
    let same = files::table
        .filter(files::workspace_id.eq(stored.workspace))
        .filter(files::sha256.eq(&stored.content.sha256))
        .filter(files::size.eq(stored.content.size))
        .filter(files::status.eq(FileStatus::Ready))
        // Order by an expression instead of the column. With a fresh table without statistics, PostgreSQL would
        // otherwise walk through the workspace's files in the order of their ids.
        .order(files::id + 0)
        .limit(1);
    lock_row!(tx, same.select(files::id), for_no_key_update);
    Ok(same.select(files::storage_key).first(tx.connection()).optional()?)
}

/// Marks an object without references for deletion.
pub(crate) fn give_up(tx: &mut Tx, storage_key: &str) -> Result<()> {
    let row = (unused_objects::storage_key.eq(storage_key), unused_objects::created_at.eq(tx.now()));
    each!(tx.connection(), |connection| diesel::insert_into(unused_objects::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    Ok(())
}

/// The incoming bytes of a file, with a maximum size.
struct Incoming<S> {
    bytes: Fuse<S>,
    /// Bytes received after the end of the last part.
    rest: Bytes,
    inspector: Inspector,
    most: u64,
}

impl<E: Into<Error>, S: Stream<Item = Result<Bytes, E>> + Unpin> Incoming<S> {
    /// Returns the next bytes, or `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        if !self.rest.is_empty() {
            return Ok(Some(std::mem::take(&mut self.rest)));
        }
        let Some(chunk) = self.bytes.next().await.transpose().map_err(Into::into)? else { return Ok(None) };
        self.inspector.pass(&chunk);
        // Count the received bytes instead of trusting an announced size.
        if self.inspector.size() > self.most {
            let message = format!("The file exceeds the limit of {} MiB.", self.most >> 20);
            return Err(Error::new(Code::FileTooLarge, message).param("file"));
        }
        Ok(Some(chunk))
    }

    /// Returns the next `size` bytes, or fewer at the end. The bytes are copied, because a chunk keeps a buffer of
    /// its connection alive that can be several times as large. `expected` is the initial capacity.
    async fn part(&mut self, size: usize, expected: usize) -> Result<Bytes> {
        let mut part = Vec::with_capacity(expected);
        while part.len() < size {
            let Some(mut chunk) = self.next().await? else { break };
            self.rest = chunk.split_off(chunk.len().min(size - part.len()));
            let needed = part.len() + chunk.len();
            if needed > part.capacity() {
                part.reserve_exact(size.min(needed.next_power_of_two()) - part.len());
            }
            part.extend_from_slice(&chunk);
        }
        Ok(part.into())
    }

    async fn write_rest(&mut self, writer: &mut WriteMultipart, size: usize) -> Result<()> {
        loop {
            let part = self.part(size, size).await?;
            if part.is_empty() {
                return Ok(());
            }
            writer.wait_for_capacity(PARTS_AT_ONCE).await.map_err(unavailable)?;
            writer.put(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_hold_what_comes_and_are_full_but_the_last(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12),
            size in 1..50_usize,
            expected in 0..50_usize,
        ) {
            let whole = chunks.concat();
            // This stream panics if it is polled after its end.
            let bytes = stream::unfold(chunks.into_iter(), |mut left| async move {
                Some((Ok::<_, Error>(Bytes::from(left.next()?)), left))
            });
            let bytes = pin!(bytes);
            let mut incoming =
                Incoming { bytes: bytes.fuse(), rest: Bytes::new(), inspector: Inspector::new(), most: 1 << 20 };
            let mut parts = Vec::new();
            loop {
                let part = incoming.part(size, expected).now_or_never().unwrap().unwrap();
                if part.is_empty() {
                    break;
                }
                parts.push(part);
            }
            prop_assert_eq!(parts.concat(), whole.as_slice());
            prop_assert_eq!(incoming.inspector.finish().size, whole.len() as i64);
            parts.pop();
            prop_assert!(parts.iter().all(|part| part.len() == size));
        }
    }

    #[test]
    fn a_full_disk_is_told_from_storage_that_fails() {
        let failed = |kind: ErrorKind| {
            let source = Box::new(std::io::Error::from(kind));
            unavailable(object_store::Error::Generic { store: "LocalFileSystem", source })
        };
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
            let error = failed(kind);
            assert_eq!((error.code(), error.retry_after_seconds()), (Code::StorageFull, Some(30)));
        }
        assert_eq!(failed(ErrorKind::TimedOut).code(), Code::ServiceUnavailable);
    }
}
