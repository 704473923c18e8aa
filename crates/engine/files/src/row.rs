//! The stored row of a file, and its API object.

use crate::name::folded;
use crate::schema::files;
use diesel::prelude::*;
use model::{Actor, Code, Error, FileId, JsonText, Metadata, Result, Timestamp, WorkspaceId, text_enum};
use ports::FileUse;
use serde::Serialize;
use store::{Read, Tx, lock_row};
use utoipa::ToSchema;

/// A file as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = files)]
#[expect(missing_docs, reason = "the columns are those of `File`")]
pub struct FileRow {
    pub id: FileId,
    pub workspace_id: WorkspaceId,
    pub name: String,
    pub mime_type: String,
    pub size: i64,
    pub sha256: String,
    /// The key of the object with the bytes. Files with the same content share an object.
    pub storage_key: String,
    /// 128 random bits. Everyone who knows them can read the file.
    pub path_token: String,
    pub status: FileStatus,
    pub uploaded_by: JsonText,
    pub version: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub trashed_at: Option<Timestamp>,
    pub declared_type: Option<String>,
    pub kind: FileKind,
    pub width: Option<i64>,
    pub height: Option<i64>,
    pub duration_ms: Option<i64>,
    pub folder: Option<String>,
    /// A JSON array.
    pub tags: JsonText,
    /// A JSON object.
    pub metadata: JsonText,
    /// The composed name in lower case. Old rows may contain the decomposed form.
    pub folded_name: String,
}

text_enum! {
    /// Where a file is in its life.
    pub enum FileStatus {
        /// It can be read, unless it is in the trash.
        Ready = "ready",
        /// Its bytes are gone. The row stays, because other objects refer to it and its permanent link answers 410.
        Purged = "purged",
    }
}

/// A file.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "price list.pdf", "mime_type": "application/pdf", "kind": "document", "size": 48213, "version": 1,
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "url": "https://svc.example/f/6Hn0rAq1xXo2bqVJYp2N3Q", "signed_url": "https://svc.example/d/eyJs.c2ln",
    "declared_mime_type": "application/pdf", "folder": "catalogues/2026", "tags": ["prices"], "metadata": { "source": "erp" },
}))]
pub struct File {
    /// The id of the file.
    pub id: FileId,
    /// Always `file`.
    pub object: &'static str,
    /// The file name, such as `price list.pdf`.
    pub name: String,
    /// The media type, detected from the content.
    pub mime_type: String,
    /// The media type that the sender declared. It is only informative.
    pub declared_mime_type: Option<String>,
    /// The general type of the content.
    pub kind: FileKind,
    /// The size in bytes.
    pub size: i64,
    /// The SHA-256 digest of the content, in hexadecimal.
    pub sha256: String,
    /// The width of an image in pixels.
    pub width: Option<i64>,
    /// The height of an image in pixels.
    pub height: Option<i64>,
    /// The duration of audio, or of a video with sound, in milliseconds.
    pub duration_ms: Option<i64>,
    /// The folder, such as `catalogues/2026`.
    pub folder: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// Free data of your own.
    pub metadata: Metadata,
    /// A permanent link. Everyone who knows it can read the file.
    pub url: String,
    /// A link that works until `signed_url_expires_at`.
    pub signed_url: String,
    /// When `signed_url` expires.
    pub signed_url_expires_at: Timestamp,
    /// The objects that refer to the file, up to 100. Only when a single file is requested.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached_to: Option<Vec<FileUse>>,
    /// Who uploaded the file.
    pub uploaded_by: Actor,
    /// The version, incremented with every change.
    pub version: i64,
    /// When the file was uploaded.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
    /// When the file was deleted. It is kept in the trash for 30 days.
    pub trashed_at: Option<Timestamp>,
}

text_enum! {
    /// The general type of a file.
    #[derive(Hash)]
    pub enum FileKind {
        /// An image.
        Image = "image",
        /// A video.
        Video = "video",
        /// A sound.
        Audio = "audio",
        /// A text, spreadsheet, presentation or PDF.
        Document = "document",
        /// Anything else.
        Other = "other",
    }
}

impl FileKind {
    /// Returns the kind of a media type.
    pub fn of(mime_type: &str) -> Self {
        match mime_type.split('/').next().unwrap_or_default() {
            "image" => Self::Image,
            "video" => Self::Video,
            "audio" => Self::Audio,
            "text" => Self::Document,
            _ if is_document(mime_type) => Self::Document,
            _ => Self::Other,
        }
    }
}

fn is_document(mime_type: &str) -> bool {
    let rest = mime_type.strip_prefix("application/").unwrap_or_default();
    matches!(rest, "pdf" | "json" | "x-ndjson" | "rtf" | "epub+zip" | "msword")
        || rest.starts_with("vnd.openxmlformats-officedocument")
        || rest.starts_with("vnd.oasis.opendocument")
        || rest.starts_with("vnd.ms-")
}

impl FileRow {
    /// Returns whether all fields that clients can change are equal.
    pub fn is_described_as(&self, other: &Self) -> bool {
        let described = |row: &Self| {
            (row.name.clone(), row.folder.clone(), row.tags.clone(), row.metadata.clone(), row.trashed_at)
        };
        described(self) == described(other)
    }

    /// Returns whether the file can be read: its bytes exist and it is not in the trash.
    pub fn is_ready(&self) -> bool {
        self.status == FileStatus::Ready && self.trashed_at.is_none()
    }
}

/// Returns a file of the workspace that can be read.
///
/// # Errors
/// `not_found`.
pub fn live(read: &mut Read, workspace: WorkspaceId, id: FileId) -> Result<FileRow> {
    find(read, workspace, id)?.filter(FileRow::is_ready).ok_or_else(|| Error::not_found("file"))
}

/// Like [`live`], but also finds files in the trash, and locks the row until the transaction ends.
///
/// # Errors
/// `not_found`.
pub fn locked(tx: &mut Tx, workspace: WorkspaceId, id: FileId) -> Result<FileRow> {
    lock_row!(
        tx,
        files::table.find(id).filter(files::workspace_id.eq(workspace)).select(files::id),
        for_no_key_update
    );
    let found = find(tx, workspace, id)?;
    found.filter(|row| row.status == FileStatus::Ready).ok_or_else(|| Error::not_found("file"))
}

/// Stores a changed row: its details and its time in the trash. Increments its version.
pub fn update(tx: &mut Tx, row: &FileRow) -> Result<FileRow> {
    let now = tx.now();
    Ok(diesel::update(files::table.find(row.id))
        .set((
            (files::name.eq(&row.name), files::folded_name.eq(folded(&row.name))),
            files::folder.eq(&row.folder),
            files::tags.eq(&row.tags),
            files::metadata.eq(&row.metadata),
            files::trashed_at.eq(row.trashed_at),
            files::version.eq(row.version + 1),
            files::updated_at.eq(now),
        ))
        .returning(files::all_columns)
        .get_result(tx.connection())?)
}

/// Moves a file to the trash. Returns `false` if it is there already or its bytes are deleted.
pub fn trash(tx: &mut Tx, workspace: WorkspaceId, id: FileId) -> Result<bool> {
    let row = match locked(tx, workspace, id) {
        Err(gone) if gone.code() == Code::NotFound => return Ok(false),
        row => row?,
    };
    if row.trashed_at.is_some() {
        return Ok(false);
    }
    update(tx, &FileRow { trashed_at: Some(tx.now()), ..row })?;
    Ok(true)
}

/// Returns a file of the workspace, in any state.
pub fn find(read: &mut Read, workspace: WorkspaceId, id: FileId) -> Result<Option<FileRow>> {
    let found = files::table
        .filter(files::id.eq(id))
        .filter(files::workspace_id.eq(workspace))
        .select(FileRow::as_select())
        .get_result(read.connection());
    Ok(found.optional()?)
}

/// Returns the files of the workspace among `ids`, in no particular order. Leaves out those in the trash.
pub fn among(read: &mut Read, workspace: WorkspaceId, ids: &[FileId]) -> Result<Vec<FileRow>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(files::table
        .filter(files::id.eq_any(ids))
        .filter(files::workspace_id.eq(workspace))
        .filter(files::trashed_at.is_null())
        .select(FileRow::as_select())
        .load(read.connection())?)
}

/// Like [`among`], but returns only files that can be read, and locks them in share mode until the transaction ends,
/// so that none is deleted meanwhile. Every change that makes an object refer to a file calls this. A concurrent
/// deletion then either sees the reference, or happens first and is seen here.
pub fn held(tx: &mut Tx, workspace: WorkspaceId, ids: &[FileId]) -> Result<Vec<FileRow>> {
    if !ids.is_empty() {
        // Lock in the order of ids, as all callers do, to avoid deadlocks. A deletion locks its file for update and
        // therefore waits for this lock.
        let rows = files::table.filter(files::id.eq_any(ids)).filter(files::workspace_id.eq(workspace));
        lock_row!(tx, rows.order(files::id).select(files::id), for_share);
    }
    let mut found = among(tx, workspace, ids)?;
    found.retain(FileRow::is_ready);
    Ok(found)
}

/// Returns the file with this token of a permanent link, in any state.
pub fn by_token(read: &mut Read, token: &str) -> Result<Option<FileRow>> {
    let found = files::table
        .filter(files::path_token.eq(token))
        .select(FileRow::as_select())
        .get_result(read.connection());
    Ok(found.optional()?)
}
