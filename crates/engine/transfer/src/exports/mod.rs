//! Exports: the records of a set as CSV or JSON Lines, at a signed link.
//!
//! The link carries all that it gives ([`Export`]); [`stream`] reads the records as the receiver takes them, and [`print`]
//! writes them.

mod labels;
mod link;
mod print;
mod stream;

pub use crate::guard::guarded;
pub use link::{ExportLink, ExportQuery};
pub use stream::Exporter;

use model::{CollectionId, Timestamp, WorkspaceId, string_enum};
use serde::{Deserialize, Serialize};

string_enum! {
    /// The format of an export.
    #[derive(Default)]
    pub enum ExportFormat {
        /// Comma-separated values (RFC 4180) in UTF-8.
        #[default]
        Csv = "csv",
        /// One item on each line, in the JSON of the API.
        Jsonl = "jsonl",
    }
}

/// What a link to an export gives: it is signed, and holds all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// Whose.
    #[serde(rename = "w")]
    pub workspace: WorkspaceId,
    /// Which collection.
    #[serde(rename = "c")]
    pub collection: CollectionId,
    /// What it is written as.
    #[serde(rename = "f")]
    pub format: ExportFormat,
    /// Whether CSV begins with a byte order mark.
    #[serde(rename = "b")]
    pub bom: bool,
    /// What the query string said of filters, order and view.
    #[serde(rename = "q")]
    pub params: Vec<(String, String)>,
    /// The fields and columns that are written, by name; `None` for all fields.
    #[serde(rename = "k")]
    pub fields: Option<Vec<String>>,
    /// Whether labels and titles are written instead of keys and ids.
    #[serde(rename = "l", default)]
    pub labels: bool,
    /// When the link was made, in milliseconds since 1970: items created later are not part of it.
    #[serde(rename = "t")]
    pub as_of: i64,
}

impl Export {
    fn as_of(&self) -> Timestamp {
        Timestamp::from_millis(self.as_of)
    }
}
