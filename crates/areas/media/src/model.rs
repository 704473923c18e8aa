//! Requests and responses of the operations on files.

use files::uploads::{MOST_PARTS, PartRow, UploadRow};
use files::{Chosen, Details, FileKind, FileSort, composed, safe_name};
use input::{parse_json, read_json};
use model::{Error, Metadata, Patch, Result, Timestamp, UploadId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use utoipa::{IntoParams, ToSchema};

/// Which files a list has.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub(super) struct MediaFilter {
    /// Only files of these kinds, separated by commas.
    #[param(inline, style = Form, explode = false, min_items = 1, max_items = 5, example = json!(["image", "video"]))]
    #[serde(default)]
    kind: Option<Vec<FileKind>>,
    /// Only files of this media type, such as `application/pdf`, or of all that begin so, such as `image/*`.
    #[param(min_length = 1, max_length = 127, pattern = r"^[^*\s]+\*?$", example = "image/*")]
    #[serde(default)]
    mime_type: Option<String>,
    /// Only files in this folder. Folders below it are not included.
    #[param(min_length = 1, max_length = 200, example = "catalogues/2026")]
    #[serde(default)]
    folder: Option<String>,
    /// Only files with this tag.
    #[param(min_length = 1, max_length = 50, pattern = r#"^[^,"\\]+$"#, example = "prices")]
    #[serde(default)]
    tag: Option<String>,
    /// Only files with this text in the name. Upper and lower case are the same.
    #[param(min_length = 1, max_length = 200, example = "price")]
    #[serde(default)]
    q: Option<String>,
    /// Only files with this SHA-256 digest, in hexadecimal.
    #[param(pattern = "^[0-9a-fA-F]{64}$")]
    #[serde(default)]
    sha256: Option<String>,
    /// Only files uploaded at or after this time.
    #[serde(default)]
    since: Option<Timestamp>,
    /// Only files uploaded before this time.
    #[serde(default)]
    until: Option<Timestamp>,
    /// `true` lists the files in the trash instead.
    #[param(default = false)]
    #[serde(default)]
    trashed: bool,
    /// The order. Newest first if not given.
    #[param(inline)]
    #[serde(default)]
    sort: FileSort,
}

impl From<MediaFilter> for Chosen {
    fn from(filter: MediaFilter) -> Self {
        Self {
            kinds: filter.kind,
            mime_type: filter.mime_type,
            folder: filter.folder,
            tag: filter.tag,
            name: filter.q,
            sha256: filter.sha256,
            since: filter.since,
            until: filter.until,
            trashed: filter.trashed,
            sort: filter.sort,
        }
    }
}

/// The details that a client sends with a new file.
#[derive(Debug, Clone, Default)]
pub(super) struct Description {
    pub(super) name: Option<String>,
    pub(super) folder: Option<String>,
    pub(super) tags: Option<Vec<String>>,
    pub(super) metadata: Option<Metadata>,
}

impl Description {
    /// Returns the details of a file. If the client has chosen no name, uses `sent_as`, the file name of the upload.
    pub(super) fn details(self, sent_as: Option<&str>, declared_type: Option<String>) -> Details {
        let name = self.name.as_deref().or(sent_as).unwrap_or_default();
        Details {
            name: safe_name(name),
            declared_type: declared_type.map(|kind| kind.chars().take(127).collect()),
            folder: self.folder.as_deref().map(composed),
            tags: unique(self.tags.unwrap_or_default()),
            metadata: self.metadata.unwrap_or_default(),
        }
    }
}

/// Removes repeated tags.
pub(super) fn unique(tags: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for tag in tags {
        if !kept.contains(&tag) {
            kept.push(tag);
        }
    }
    kept
}

/// The form of an upload.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UploadForm {
    /// The file, up to 100 MiB.
    #[schema(value_type = String, format = Binary)]
    #[expect(dead_code, reason = "read as a stream; the type describes it")]
    file: String,
    /// The name. If not given, the file name of the part. A path before it is dropped.
    #[schema(min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    name: Option<String>,
    /// The folder, such as `catalogues/2026`.
    #[schema(min_length = 1, max_length = 200, pattern = "^[^/]+(/[^/]+)*$")]
    #[serde(default)]
    folder: Option<String>,
    /// The tags, separated by commas.
    #[schema(max_items = 50)]
    #[serde(default)]
    tags: Option<Vec<Tag>>,
    /// Data of your own: a JSON object with up to 16 texts. Keys have 1 to 64 characters, values up to 512.
    #[schema(max_length = 20_000, example = "{\"order\":\"A-1042\"}")]
    #[serde(default)]
    metadata: Option<String>,
}

impl UploadForm {
    /// # Errors
    /// `validation_error` at `metadata`.
    pub(super) fn description(self) -> Result<Description> {
        let metadata = self.metadata.as_deref().map(metadata_in).transpose()?;
        Ok(Description { name: self.name, folder: self.folder, tags: self.tags.map(words), metadata })
    }
}

/// Parses the metadata in a form field.
fn metadata_in(text: &str) -> Result<Metadata> {
    const NAME: &str = "metadata";
    let metadata: Metadata = read_json(parse_json(text.as_bytes(), NAME)?, NAME, NAME)?;
    let fits = |text: &str, most: usize| text.chars().count() <= most && !text.contains('\0');
    let mut pairs = metadata.0.iter();
    if metadata.len() > 16 || pairs.any(|(key, value)| key.is_empty() || !fits(key, 64) || !fits(value, 512))
    {
        let rule = "must have at most 16 pairs, with keys of 1 to 64 and values of at most 512 characters";
        return Err(Error::invalid(NAME, rule));
    }
    Ok(metadata)
}

/// A tag: a word for grouping files.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[schema(value_type = String, min_length = 1, max_length = 50, pattern = r#"^[^\s,"\\]([^,"\\]*[^\s,"\\])?$"#, example = "prices")]
#[serde(transparent)]
pub(super) struct Tag(String);

fn words(tags: Vec<Tag>) -> Vec<String> {
    tags.into_iter().map(|tag| composed(&tag.0)).collect()
}

/// A file to be fetched.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "url": "https://example.com/price-list.pdf", "folder": "catalogues/2026" }))]
pub(super) struct FetchRequest {
    /// The URL, `http` or `https`. Private and local addresses are not allowed.
    #[schema(min_length = 1, max_length = 2048)]
    pub(super) url: String,
    /// The name. If not given, the name in the response's `Content-Disposition`, otherwise the last part of the URL's path.
    #[schema(min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    name: Option<String>,
    /// The folder, such as `catalogues/2026`.
    #[schema(min_length = 1, max_length = 200, pattern = "^[^/]+(/[^/]+)*$")]
    #[serde(default)]
    folder: Option<String>,
    /// The tags.
    #[schema(max_items = 50)]
    #[serde(default)]
    tags: Option<Vec<Tag>>,
    /// Data of your own.
    #[serde(default)]
    metadata: Option<Metadata>,
}

impl FetchRequest {
    pub(super) fn description(self) -> Description {
        Description {
            name: self.name,
            folder: self.folder,
            tags: self.tags.map(words),
            metadata: self.metadata,
        }
    }
}

/// A change of a file. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "price list 2026.pdf", "tags": ["prices", "public"] }))]
pub(super) struct FilePatch {
    /// The name. A path before it is dropped.
    #[schema(min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub(super) name: Option<String>,
    /// The folder. `null` takes the file out of its folder.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 200, pattern = "^[^/]+(/[^/]+)*$")]
    #[serde(default)]
    pub(super) folder: Patch<String>,
    /// All tags.
    #[schema(max_items = 50)]
    #[serde(default)]
    tags: Option<Vec<Tag>>,
    /// Data of your own, which replaces the stored data.
    #[serde(default)]
    pub(super) metadata: Option<Metadata>,
    /// `false` restores a file from the trash. To delete a file, use `DELETE /files/{fileId}`.
    #[schema(value_type = Option<bool>, default = false)]
    #[serde(default)]
    pub(super) trashed: Option<bool>,
    /// The expected version. If the file has another version, the request is rejected with 409 `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub(super) version: Option<i64>,
}

impl FilePatch {
    pub(super) fn take_tags(&mut self) -> Option<Vec<String>> {
        self.tags.take().map(words).map(unique)
    }
}

/// How a file is deleted.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub(super) struct DeleteOptions {
    /// `true` deletes the file even if other objects refer to it.
    #[param(default = false)]
    #[serde(default)]
    pub(super) force: bool,
}

/// An upload to be started.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "tour.mp4", "size": 52_428_800, "folder": "videos" }))]
pub(super) struct UploadRequest {
    /// The name of the file. A path before it is dropped.
    #[schema(min_length = 1, max_length = 255, pattern = r"\S")]
    name: String,
    /// The size in bytes. If given, the parts must have exactly this size together.
    #[schema(minimum = 1, maximum = 5_368_709_120_i64)]
    #[serde(default)]
    pub(super) size: Option<i64>,
    /// The SHA-256 digest of the file, in hexadecimal. If given, it is verified.
    #[schema(pattern = "^[0-9a-fA-F]{64}$")]
    #[serde(default)]
    pub(super) sha256: Option<String>,
    /// The media type, for information. The service detects the type itself.
    #[schema(min_length = 1, max_length = 127)]
    #[serde(default)]
    pub(super) mime_type: Option<String>,
    /// The folder, such as `catalogues/2026`.
    #[schema(min_length = 1, max_length = 200, pattern = "^[^/]+(/[^/]+)*$")]
    #[serde(default)]
    folder: Option<String>,
    /// The tags.
    #[schema(max_items = 50)]
    #[serde(default)]
    tags: Option<Vec<Tag>>,
    /// Data of your own.
    #[serde(default)]
    metadata: Option<Metadata>,
}

impl UploadRequest {
    pub(super) fn description(self) -> Description {
        let name = Some(self.name);
        Description { name, folder: self.folder, tags: self.tags.map(words), metadata: self.metadata }
    }
}

/// An upload in parts.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "name": "tour.mp4", "size": 52_428_800, "max_part_bytes": 26_214_400, "max_parts": 1000 }))]
pub(super) struct Upload {
    /// The id of the upload.
    id: UploadId,
    /// Always `upload`.
    object: String,
    /// The name of the file.
    name: String,
    /// The announced size in bytes.
    size: Option<i64>,
    /// The announced SHA-256 digest.
    sha256: Option<String>,
    /// The maximum size of a part in bytes. Only an empty part is too small.
    max_part_bytes: i64,
    /// The maximum number of parts.
    max_parts: i64,
    /// Until when the upload can be completed.
    expires_at: Timestamp,
    /// When the upload was started.
    created_at: Timestamp,
}

impl Upload {
    /// # Errors
    /// `internal_error` if the stored row is corrupt.
    pub(super) fn of(row: UploadRow) -> Result<Self> {
        let details: Details = row.details.parse()?;
        Ok(Self {
            id: row.id,
            object: "upload".to_owned(),
            name: details.name,
            size: row.size,
            sha256: row.sha256,
            max_part_bytes: i64::try_from(files::uploads::MOST_PART_BYTES).map_err(Error::internal)?,
            max_parts: MOST_PARTS,
            expires_at: row.expires_at,
            created_at: row.created_at,
        })
    }
}

/// A stored part of an upload.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "number": 1, "size": 26_214_400, "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
}))]
pub(super) struct UploadPart {
    /// The id of the upload.
    upload_id: UploadId,
    /// Always `upload_part`.
    object: &'static str,
    /// The number of the part, from 1.
    number: i64,
    /// The size in bytes.
    size: i64,
    /// The SHA-256 digest of the part, in hexadecimal.
    sha256: String,
}

impl UploadPart {
    pub(super) fn of(upload_id: UploadId, part: PartRow) -> Self {
        Self { upload_id, object: "upload_part", number: part.number, size: part.size, sha256: part.sha256 }
    }
}

/// The number of a part, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(value_type = i64, minimum = 1, maximum = 1000)]
pub(super) struct PartNumber(pub(super) i64);

impl FromStr for PartNumber {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        text.parse().ok().filter(|number| (1..=MOST_PARTS).contains(number)).map(Self).ok_or(())
    }
}

impl fmt::Display for PartNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What to verify of a part.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub(super) struct PartCheck {
    /// The SHA-256 digest of the part, in hexadecimal. If given, it is verified.
    #[param(pattern = "^[0-9a-fA-F]{64}$")]
    #[serde(default)]
    pub(super) sha256: Option<String>,
}

/// The parts that make up the file.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "parts": 2 }))]
pub(super) struct CompleteRequest {
    /// The number of parts. If given, the upload must have exactly the parts from 1 to this number.
    #[schema(minimum = 1, maximum = 1000)]
    #[serde(default)]
    pub(super) parts: Option<i64>,
}
