//! A file as it is stored, and as it goes out.

use crate::schema::files;
use diesel::prelude::*;
use model::{Actor, Error, FileId, JsonText, Result, Timestamp, WorkspaceId, string_enum};
use serde::Serialize;
use store::Read;
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
    /// Where the bytes are in object storage.
    pub storage_key: String,
    /// 128 random bits: whoever knows them may read the file.
    pub path_token: String,
    pub status: String,
    pub uploaded_by: JsonText,
    pub version: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub trashed_at: Option<Timestamp>,
}

/// A file.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct File {
    /// The id of the file.
    pub id: FileId,
    /// Always `file`.
    pub object: &'static str,
    /// The file name, such as `price list.pdf`.
    pub name: String,
    /// The media type, detected from the content.
    pub mime_type: String,
    /// The general type of the content.
    pub kind: FileKind,
    /// The size in bytes.
    pub size: i64,
    /// The SHA-256 digest of the content, in hexadecimal.
    pub sha256: String,
    /// A permanent link. Everyone who knows it can read the file.
    pub url: String,
    /// A link that works until `signed_url_expires_at`.
    pub signed_url: String,
    /// When `signed_url` expires.
    pub signed_url_expires_at: Timestamp,
    /// Who uploaded the file.
    pub uploaded_by: Actor,
    /// The version, incremented with every change.
    pub version: i64,
    /// When the file was uploaded.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

string_enum! {
    /// The general type of a file.
    pub enum FileKind {
        /// A picture.
        Image = "image",
        /// A video.
        Video = "video",
        /// A sound recording.
        Audio = "audio",
        /// Text, a PDF file, or an office document.
        Document = "document",
        /// Any other file.
        Other = "other",
    }
}

impl FileKind {
    /// The kind of a media type.
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
    /// Whether it can be read.
    pub fn is_ready(&self) -> bool {
        self.status == "ready" && self.trashed_at.is_none()
    }
}

/// A file of the workspace that can be read.
///
/// # Errors
/// `not_found`.
pub fn live(read: &mut Read, workspace: WorkspaceId, id: FileId) -> Result<FileRow> {
    find(read, workspace, id)?.filter(FileRow::is_ready).ok_or_else(|| Error::not_found("file"))
}

/// A file of the workspace, in any state.
///
/// # Errors
/// When the database fails.
pub fn find(read: &mut Read, workspace: WorkspaceId, id: FileId) -> Result<Option<FileRow>> {
    let found = files::table
        .filter(files::id.eq(id))
        .filter(files::workspace_id.eq(workspace))
        .select(FileRow::as_select())
        .get_result(read.connection());
    Ok(found.optional()?)
}

/// Those of `ids` that are files of the workspace which are not in the trash, in no order.
///
/// # Errors
/// When the database fails.
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

/// The file with this permanent address, in any state.
pub fn by_token(read: &mut Read, token: &str) -> Result<Option<FileRow>> {
    let found = files::table
        .filter(files::path_token.eq(token))
        .select(FileRow::as_select())
        .get_result(read.connection());
    Ok(found.optional()?)
}
