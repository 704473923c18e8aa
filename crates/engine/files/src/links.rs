//! Signed links: URLs that contain their target, an expiry time and a signature. They need no API key.

use super::row::{File, FileRow};
use super::storage::Files;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{FileId, Result, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The place of link signatures (see [`auth::Seal::sign`]).
const PLACE: &str = "download";

/// The maximum length of a link in bytes. Longer than any link that was created.
const LONGEST: usize = 12 * 1024;

/// The target of a signed link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Link {
    /// A file.
    #[serde(rename = "f")]
    File {
        /// The workspace of the file.
        #[serde(rename = "w")]
        workspace: WorkspaceId,
        /// The file.
        #[serde(rename = "i")]
        id: FileId,
    },
    /// Content that a [`Generator`](super::Generator) creates on request, such as an export.
    #[serde(rename = "x")]
    Generated(Value),
}

#[derive(Serialize, Deserialize)]
struct Signed {
    /// The target.
    l: Link,
    /// The expiry time, in milliseconds since 1970.
    e: i64,
}

/// The reason why a link is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The link was not created here, or was changed.
    Unknown,
    /// The link has expired.
    Expired,
}

impl Files {
    /// Returns the API object of a file, with a link that is valid for a week from `now`.
    ///
    /// # Errors
    /// `internal_error` if the stored row is corrupt.
    pub fn show(&self, row: &FileRow, now: Timestamp) -> Result<File> {
        const SIGNED_FOR_SECONDS: i64 = 7 * 24 * 3600;
        let until = now.plus_seconds(SIGNED_FOR_SECONDS);
        Ok(File {
            id: row.id,
            object: "file",
            name: row.name.clone(),
            mime_type: row.mime_type.clone(),
            kind: row.kind,
            size: row.size,
            sha256: row.sha256.clone(),
            declared_mime_type: row.declared_type.clone(),
            width: row.width,
            height: row.height,
            duration_ms: row.duration_ms,
            folder: row.folder.clone(),
            tags: row.tags.parse()?,
            metadata: row.metadata.parse()?,
            attached_to: None,
            url: self.permanent_url(row),
            signed_url: self.signed_url(row, until),
            signed_url_expires_at: until,
            uploaded_by: row.uploaded_by.parse()?,
            version: row.version,
            created_at: row.created_at,
            updated_at: row.updated_at,
            trashed_at: row.trashed_at,
        })
    }

    /// Returns the link that works as long as the file exists.
    pub(crate) fn permanent_url(&self, row: &FileRow) -> String {
        format!("{}/f/{}", self.base_url, row.path_token)
    }

    /// Returns a link to the file that works until `until`.
    pub fn signed_url(&self, row: &FileRow, until: Timestamp) -> String {
        self.link(&Link::File { workspace: row.workspace_id, id: row.id }, until)
    }

    /// Returns a link that works until `until`.
    pub fn link(&self, link: &Link, until: Timestamp) -> String {
        let signed = Signed { l: link.clone(), e: until.millis() };
        let text = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&signed).unwrap_or_default());
        let signature = URL_SAFE_NO_PAD.encode(self.seal.sign(PLACE, &text));
        format!("{}/d/{text}.{signature}", self.base_url)
    }

    /// Parses and verifies the part of a link after `/d/`.
    pub(super) fn read_link(&self, rest: &str, now: Timestamp) -> std::result::Result<Link, Refused> {
        let (text, signature) =
            rest.split_once('.').filter(|_| rest.len() <= LONGEST).ok_or(Refused::Unknown)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| Refused::Unknown)?;
        if !self.seal.is_signed(PLACE, text, &signature) {
            return Err(Refused::Unknown);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| Refused::Unknown)?;
        let signed: Signed = serde_json::from_slice(&bytes).map_err(|_| Refused::Unknown)?;
        if Timestamp::from_millis(signed.e) <= now { Err(Refused::Expired) } else { Ok(signed.l) }
    }
}
