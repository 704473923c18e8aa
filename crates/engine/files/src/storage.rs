//! Bytes in and out of object storage.

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

/// The most bytes of a file that is sent in one request.
pub const MOST_BYTES: u64 = 100 << 20;

/// The bytes for which there is room when a file begins to arrive: most are small.
const FIRST_BYTES: usize = 16 << 10;

/// How many bytes of a file in a folder are read at a time.
const CHUNK: u64 = 64 << 10;

/// After how many seconds a request makes sense that the storage failed.
const RETRY_AFTER: i64 = 10;

/// How many parts are on their way to object storage at once.
const PARTS_AT_ONCE: usize = 2;

/// Writes, reads and deletes an object, to see whether storage works.
///
/// # Errors
/// The storage's, or when other bytes come back than were written.
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

/// Keeps files, and knows their addresses.
pub struct Files {
    pub(super) objects: Objects,
    pub(super) seal: Arc<Seal>,
    pub(super) base_url: String,
}

/// A file to be stored.
#[derive(Debug, Clone)]
pub struct NewFile {
    /// The name.
    pub name: String,
    /// The most bytes it may have, [`MOST_BYTES`] for what callers send.
    pub most_bytes: u64,
    /// The tenant.
    pub workspace: WorkspaceId,
    /// Who stores it, as JSON of an [`Actor`](model::Actor).
    pub uploaded_by: JsonText,
}

/// What is said of a file beside its content.
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

/// A file whose bytes are stored, and whose row waits for [`finish`].
#[derive(Debug, Clone)]
pub struct Stored {
    /// What is said of it.
    pub details: Details,
    workspace: WorkspaceId,
    uploaded_by: JsonText,
    pub(crate) storage_key: String,
    pub(crate) content: Content,
}

impl Files {
    /// Files in `objects`, read at addresses below `base_url`.
    pub fn new(objects: Objects, seal: Arc<Seal>, base_url: String) -> Self {
        Self { objects, seal, base_url }
    }

    /// Stores bytes as a file that is ready at once.
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

    /// Stores the bytes of a file. It exists once [`finish`] has been called for it.
    ///
    /// # Errors
    /// `file_too_large`, what the stream fails with, or the storage's.
    pub async fn put<E: Into<Error>>(
        &self,
        db: &Db,
        new: NewFile,
        bytes: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<Stored> {
        let NewFile { name, most_bytes, workspace, uploaded_by } = new;
        let storage_key = format!("{workspace}/{}", token(&*db.random()));
        let place = path(&storage_key)?;
        let reserved = storage_key.clone();
        db.write(move |tx| reserve(tx, &reserved)).await?;
        let mut content = match self.write(&place, bytes, most_bytes).await {
            Ok(content) => content,
            Err(error) => {
                // The storage can have written the object and not said so. If this fails too, it is swept away after a day.
                if let Err(failed) = db.write(move |tx| abandon(tx, &storage_key)).await {
                    tracing::warn!(error = ?failed, "what is left of a failed upload could not be noted");
                }
                return Err(error);
            }
        };
        if content.is_timed() {
            content.duration_ms = duration_ms(&self.objects, &place).await;
        }
        let details = Details { name, ..Details::default() };
        Ok(Stored { details, workspace, uploaded_by, storage_key, content })
    }

    /// Writes an object, all of it or nothing.
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

    /// Deletes an object, if it is there.
    pub(crate) async fn delete(&self, storage_key: &str) -> Result<()> {
        match self.objects.delete(&path(storage_key)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// The bytes of a file, or a range of them, as they are read.
    ///
    /// # Errors
    /// The storage's.
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

    /// A reader of a file's bytes, for work that blocks (through [`tokio_util::io::SyncIoBridge`]).
    ///
    /// # Errors
    /// The storage's.
    pub async fn reader(&self, row: &FileRow) -> Result<BufReader> {
        let meta = self.objects.head(&path(&row.storage_key)?).await.map_err(unavailable)?;
        Ok(BufReader::new(self.objects.store(), &meta))
    }
}

/// Storage that is full, refuses or cannot be reached: callers can try again. An object that is not there is a failure of
/// ours.
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

/// Whether the disk of a folder has no room.
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

/// A part of a file, read in larger pieces than `object_store` does: each is a turn of a thread that may block.
fn chunks(file: std::fs::File, range: Range<u64>) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
    stream::try_unfold((file, range), |(file, range)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        let length = CHUNK.min(range.end - range.start);
        // Made here, where it is given up: each of the many threads that may block would keep memory for itself.
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

/// 128 random bits as text.
pub(crate) fn token(random: &dyn Random) -> String {
    URL_SAFE_NO_PAD.encode(bits(random))
}

/// Notes that an object will be written, so that it is deleted if no file comes of it.
fn reserve(tx: &mut Tx, storage_key: &str) -> Result<()> {
    diesel::insert_into(reserved_objects::table)
        .values((reserved_objects::storage_key.eq(storage_key), reserved_objects::reserved_at.eq(tx.now())))
        .execute(tx.connection())?;
    Ok(())
}

/// Ends the reservation of an object. Says whether there still was one.
pub(crate) fn release(tx: &mut Tx, storage_key: &str) -> Result<bool> {
    Ok(diesel::delete(reserved_objects::table.find(storage_key)).execute(tx.connection())? == 1)
}

/// Has an object deleted that was reserved and of which no file comes.
pub(crate) fn abandon(tx: &mut Tx, storage_key: &str) -> Result<()> {
    release(tx, storage_key)?;
    give_up(tx, storage_key)
}

fn bits(random: &dyn Random) -> [u8; 16] {
    let mut bytes = [0; 16];
    random.fill(&mut bytes);
    bytes
}

/// Makes a file of bytes that are stored, in the transaction that wants it. If a file of the workspace has the same content,
/// the two share its bytes.
///
/// # Errors
/// `not_found` where the upload took so long that it was given up.
pub fn finish(tx: &mut Tx, stored: &Stored) -> Result<FileRow> {
    let Stored { details, content, .. } = stored;
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

/// Where the bytes of another file with the same content are. Its row is held, so that they are not deleted meanwhile.
fn twin(tx: &mut Tx, stored: &Stored) -> Result<Option<String>> {
    let same = files::table
        .filter(files::workspace_id.eq(stored.workspace))
        .filter(files::sha256.eq(&stored.content.sha256))
        .filter(files::size.eq(stored.content.size))
        .filter(files::status.eq(FileStatus::Ready))
        // By an expression: where it does not know yet how many files there are, PostgreSQL would go through those of the
        // workspace in the order of their ids.
        .order(files::id + 0)
        .limit(1);
    lock_row!(tx, same.select(files::id), for_no_key_update);
    Ok(same.select(files::storage_key).first(tx.connection()).optional()?)
}

/// Has an object deleted that nobody refers to.
pub(crate) fn give_up(tx: &mut Tx, storage_key: &str) -> Result<()> {
    let row = (unused_objects::storage_key.eq(storage_key), unused_objects::created_at.eq(tx.now()));
    each!(tx.connection(), |connection| diesel::insert_into(unused_objects::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    Ok(())
}

/// The bytes of a file as they come, of which there may be at most so many.
struct Incoming<S> {
    bytes: Fuse<S>,
    /// What came behind the end of a part.
    rest: Bytes,
    inspector: Inspector,
    most: u64,
}

impl<E: Into<Error>, S: Stream<Item = Result<Bytes, E>> + Unpin> Incoming<S> {
    /// The next bytes; `None` behind the last ones.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        if !self.rest.is_empty() {
            return Ok(Some(std::mem::take(&mut self.rest)));
        }
        let Some(chunk) = self.bytes.next().await.transpose().map_err(Into::into)? else { return Ok(None) };
        self.inspector.pass(&chunk);
        if self.inspector.size() > self.most {
            let message = format!("The file exceeds the limit of {} MiB.", self.most >> 20);
            return Err(Error::new(Code::FileTooLarge, message).param("file"));
        }
        Ok(Some(chunk))
    }

    /// The next `size` bytes; fewer at the end only. They are copied: each chunk would keep a buffer of its connection, which
    /// can be several times as large. `expected` is how many are made room for at first.
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
            // A stream that panics when it is asked for more behind its end.
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
