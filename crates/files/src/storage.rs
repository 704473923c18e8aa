//! Bytes in and out of object storage.

use super::row::FileRow;
use crate::schema::files;
use auth::Seal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use diesel::prelude::*;
use futures::{Stream, StreamExt, TryStreamExt};
use model::{Code, Error, FileId, JsonText, Random, Result, Timestamp, WorkspaceId};
use object_store::buffered::BufReader;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt, WriteMultipart};
use std::ops::Range;
use std::sync::Arc;
use store::{Db, Tx};

/// The most bytes of a file (decision 14).
pub const MOST_BYTES: u64 = 25 << 20;

/// How many bytes go to object storage at a time.
const PART: usize = 1 << 20;

/// What decides what a file is.
const SNIFFED: usize = 8 << 10;

/// After how many hours an upload that did not end is given up.
const PATIENCE_SECONDS: i64 = 24 * 3600;

/// Where bytes are kept.
pub type Objects = Arc<dyn ObjectStore>;

/// Keeps bytes in a folder, which is made. What was stored survives a loss of power.
///
/// # Errors
/// When the folder cannot be made.
pub fn objects_in(folder: &std::path::Path) -> Result<Objects> {
    std::fs::create_dir_all(folder)?;
    Ok(Arc::new(
        LocalFileSystem::new_with_prefix(folder)
            .map_err(Error::internal)?
            .with_fsync(true)
            .with_automatic_cleanup(true),
    ))
}

/// Keeps bytes in memory, for tests.
pub fn objects_in_memory() -> Objects {
    Arc::new(InMemory::new())
}

/// Writes, reads and deletes an object, to see whether storage works.
///
/// # Errors
/// The storage's, or when other bytes come back than were written.
pub async fn probe(objects: &Objects, random: &dyn Random) -> Result<()> {
    let path = path(&format!("probe/{}", URL_SAFE_NO_PAD.encode(bits(random))))?;
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

/// A file whose bytes are stored, and whose row waits for [`finish`].
#[derive(Debug, Clone)]
pub struct Stored {
    /// The file.
    pub id: FileId,
    size: i64,
    sha256: String,
    mime_type: String,
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
    pub async fn store(
        &self,
        db: &Db,
        new: NewFile,
        bytes: impl Stream<Item = std::io::Result<Bytes>> + Send,
    ) -> Result<FileRow> {
        let stored = self.put(db, new, bytes).await?;
        db.write(move |tx| finish(tx, &stored)).await
    }

    /// Stores the bytes of a file. It exists once [`finish`] has been called for it.
    ///
    /// # Errors
    /// `payload_too_large`, what the stream fails with, or the storage's.
    pub async fn put(
        &self,
        db: &Db,
        new: NewFile,
        bytes: impl Stream<Item = std::io::Result<Bytes>> + Send,
    ) -> Result<Stored> {
        let most = new.most_bytes;
        let (id, place) = db.write(move |tx| begin(tx, &new)).await?;
        let name = place.name;
        let mut writer = WriteMultipart::new_with_chunk_size(
            self.objects.put_multipart(&place.path).await.map_err(Error::internal)?,
            PART,
        );
        match write(&mut writer, bytes, most).await {
            Ok(facts) => {
                writer.finish().await.map_err(Error::internal)?;
                let mime_type = mime_type(&facts.head, facts.is_text, &name).to_owned();
                Ok(Stored { id, size: facts.size, sha256: facts.sha256, mime_type })
            }
            Err(error) => {
                // The row is swept away later; what storage has of the bytes need not wait.
                if let Err(failed) = writer.abort().await {
                    tracing::warn!(file = id.0, error = %failed, "what came of an upload could not be removed");
                }
                Err(error)
            }
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
    ) -> Result<impl Stream<Item = std::io::Result<Bytes>> + Send + use<>> {
        let options = GetOptions { range: range.map(GetRange::Bounded), ..GetOptions::default() };
        let found =
            self.objects.get_opts(&path(&row.storage_key)?, options).await.map_err(Error::internal)?;
        Ok(found.into_stream().map_err(std::io::Error::from))
    }

    /// A reader of a file's bytes, for work that blocks (through [`tokio_util::io::SyncIoBridge`]).
    ///
    /// # Errors
    /// The storage's.
    pub async fn reader(&self, row: &FileRow) -> Result<BufReader> {
        let meta = self.objects.head(&path(&row.storage_key)?).await.map_err(Error::internal)?;
        Ok(BufReader::new(self.objects.clone(), &meta))
    }
}

struct Place {
    path: Path,
    name: String,
}

fn path(key: &str) -> Result<Path> {
    Path::parse(key).map_err(Error::internal)
}

fn begin(tx: &mut Tx, new: &NewFile) -> Result<(FileId, Place)> {
    let random = tx.random();
    let token = |bytes: [u8; 16]| URL_SAFE_NO_PAD.encode(bytes);
    let storage_key = format!("{}/{}", new.workspace, token(bits(&*random)));
    let now = tx.now();
    let id: FileId = diesel::insert_into(files::table)
        .values((
            files::workspace_id.eq(new.workspace),
            files::name.eq(&new.name),
            files::mime_type.eq(""),
            files::size.eq(0),
            files::sha256.eq(""),
            files::storage_key.eq(&storage_key),
            files::path_token.eq(token(bits(&*random))),
            files::status.eq("pending"),
            files::uploaded_by.eq(&new.uploaded_by),
            files::version.eq(1),
            files::created_at.eq(now),
            files::updated_at.eq(now),
        ))
        .returning(files::id)
        .get_result(tx.connection())?;
    Ok((id, Place { path: path(&storage_key)?, name: new.name.clone() }))
}

fn bits(random: &dyn Random) -> [u8; 16] {
    let mut bytes = [0; 16];
    random.fill(&mut bytes);
    bytes
}

/// Makes a file whose bytes are stored ready, in the transaction that wants it.
///
/// # Errors
/// `not_found` where the upload took so long that it was given up.
pub fn finish(tx: &mut Tx, stored: &Stored) -> Result<FileRow> {
    let now = tx.now();
    diesel::update(files::table.find(stored.id).filter(files::status.eq("pending")))
        .set((
            files::status.eq("ready"),
            files::size.eq(stored.size),
            files::sha256.eq(&stored.sha256),
            files::mime_type.eq(&stored.mime_type),
            files::updated_at.eq(now),
        ))
        .returning(files::all_columns)
        .get_result(tx.connection())
        .optional()?
        .ok_or_else(|| Error::not_found("file"))
}

struct Facts {
    size: i64,
    sha256: String,
    head: Vec<u8>,
    is_text: bool,
}

async fn write(
    writer: &mut WriteMultipart,
    bytes: impl Stream<Item = std::io::Result<Bytes>> + Send,
    most: u64,
) -> Result<Facts> {
    let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
    let (mut size, mut head) = (0_u64, Vec::new());
    let mut bytes = std::pin::pin!(bytes);
    while let Some(chunk) = bytes.next().await {
        let chunk = chunk?;
        size += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        if size > most {
            let message = format!("A file has at most {} MiB.", most >> 20);
            return Err(Error::new(Code::PayloadTooLarge, message));
        }
        digest.update(&chunk);
        let wanted = SNIFFED.saturating_sub(head.len()).min(chunk.len());
        head.extend_from_slice(chunk.get(..wanted).unwrap_or_default());
        writer.wait_for_capacity(4).await.map_err(Error::internal)?;
        writer.put(chunk);
    }
    // A character may be cut at the end of the head; anything else that is wrong says that it is no text.
    let is_text = !head.contains(&0)
        && match std::str::from_utf8(&head) {
            Ok(_) => true,
            Err(error) => error.error_len().is_none() && head.len() == SNIFFED,
        };
    let sha256 = digest.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Facts { size: i64::try_from(size).unwrap_or(i64::MAX), sha256, head, is_text })
}

/// What a file is by its first bytes; text is told apart by the file's name, because no bytes say what it is.
fn mime_type(head: &[u8], is_text: bool, name: &str) -> &'static str {
    if let Some(known) = infer::get(head) {
        return known.mime_type();
    }
    if !is_text {
        return "application/octet-stream";
    }
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("csv") => "text/csv",
        Some("json") => "application/json",
        Some("jsonl" | "ndjson") => "application/x-ndjson",
        Some("md") => "text/markdown",
        _ => "text/plain",
    }
}

/// Gives up uploads that did not end within a day: what storage has of them, then their rows. Says how many.
///
/// # Errors
/// The database's or the storage's.
pub async fn sweep(db: &Db, files_store: &Files) -> Result<usize> {
    const AT_A_TIME: i64 = 100;
    let mut swept = 0;
    loop {
        let abandoned: Vec<(FileId, String)> = db
            .read(|read| {
                let before: Timestamp = read.now().plus_seconds(-PATIENCE_SECONDS);
                Ok(files::table
                    .filter(files::status.eq("pending"))
                    .filter(files::created_at.lt(before))
                    .order(files::id)
                    .limit(AT_A_TIME)
                    .select((files::id, files::storage_key))
                    .load(read.connection())?)
            })
            .await?;
        if abandoned.is_empty() {
            return Ok(swept);
        }
        for (_, key) in &abandoned {
            match files_store.objects.delete(&path(key)?).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(Error::internal(error)),
            }
        }
        let ids: Vec<FileId> = abandoned.iter().map(|(id, _)| *id).collect();
        swept += ids.len();
        db.write(move |tx| {
            let rows = files::table.filter(files::id.eq_any(&ids)).filter(files::status.eq("pending"));
            Ok(diesel::delete(rows).execute(tx.connection())?)
        })
        .await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_say_what_a_file_is_and_names_what_text_is() {
        let png = [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a];
        assert_eq!(mime_type(&png, false, "list.csv"), "image/png");
        assert_eq!(mime_type(b"a,b", true, "list.CSV"), "text/csv");
        assert_eq!(mime_type(b"{}", true, "list.ndjson"), "application/x-ndjson");
        assert_eq!(mime_type(b"hello", true, "list"), "text/plain");
        assert_eq!(mime_type(&[0, 1, 2], false, "list.csv"), "application/octet-stream");
    }
}
