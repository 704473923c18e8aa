//! Signed links: addresses that carry what they give, until when, and a signature. They need no key.

use super::{FileRow, Files};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{FileId, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};

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
    /// Items of a collection.
    #[serde(rename = "x")]
    Export(crate::exports::Export),
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
    /// The address that works for as long as the file exists.
    pub fn permanent_url(&self, row: &FileRow) -> String {
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
    pub(super) fn read_link(&self, rest: &str, now: Timestamp) -> Result<Link, Refused> {
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
