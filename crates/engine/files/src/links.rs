//! Signed links: addresses that carry what they give, until when, and a signature. They need no key.

use super::row::{File, FileRow};
use super::storage::Files;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{FileId, Result, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What signatures of links hold for.
const PLACE: &str = "download";

/// The longest link that is looked at, in bytes: more than any that was made.
const LONGEST: usize = 12 * 1024;

/// What a signed link gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Link {
    /// A file.
    #[serde(rename = "f")]
    File {
        /// Whose.
        #[serde(rename = "w")]
        workspace: WorkspaceId,
        /// Which.
        #[serde(rename = "i")]
        id: FileId,
    },
    /// What a [`Generator`](super::Generator) makes when it is read, such as an export.
    #[serde(rename = "x")]
    Generated(Value),
}

#[derive(Serialize, Deserialize)]
struct Signed {
    /// What.
    l: Link,
    /// Until when, in milliseconds since 1970.
    e: i64,
}

/// Why a link gives nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// It was not made here, or was changed.
    Unknown,
    /// Its time is over.
    Expired,
}

impl Files {
    /// A file as it goes out, with a link that works for a week from `now`.
    ///
    /// # Errors
    /// When what is stored is damaged.
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

    /// The address that works for as long as the file exists.
    pub(crate) fn permanent_url(&self, row: &FileRow) -> String {
        format!("{}/f/{}", self.base_url, row.path_token)
    }

    /// An address of the file that works until `until`.
    pub fn signed_url(&self, row: &FileRow, until: Timestamp) -> String {
        self.link(&Link::File { workspace: row.workspace_id, id: row.id }, until)
    }

    /// An address that works until `until`.
    pub fn link(&self, link: &Link, until: Timestamp) -> String {
        let signed = Signed { l: link.clone(), e: until.millis() };
        let text = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&signed).unwrap_or_default());
        let signature = URL_SAFE_NO_PAD.encode(self.seal.sign(PLACE, &text));
        format!("{}/d/{text}.{signature}", self.base_url)
    }

    /// Reads what stands behind `/d/`.
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
