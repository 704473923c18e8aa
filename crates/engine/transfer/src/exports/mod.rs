//! Exports: the records of a collection as CSV or JSON Lines, at a signed link.
//!
//! The link contains the whole definition of the export ([`Export`]). [`stream`] reads the records as fast as the
//! client downloads them, and [`print`](mod@print) formats them.

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

/// The definition of an export, stored in its signed link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// The workspace.
    #[serde(rename = "w")]
    pub workspace: WorkspaceId,
    /// The collection.
    #[serde(rename = "c")]
    pub collection: CollectionId,
    /// The format.
    #[serde(rename = "f")]
    pub format: ExportFormat,
    /// Whether CSV begins with a byte order mark.
    #[serde(rename = "b")]
    pub bom: bool,
    /// The query parameters for filters, order and view.
    #[serde(rename = "q")]
    pub params: Vec<(String, String)>,
    /// The names of the exported fields and columns; `None` for all fields.
    #[serde(rename = "k")]
    pub fields: Option<Vec<String>>,
    /// Whether to write labels and titles instead of keys and ids.
    #[serde(rename = "l", default)]
    pub labels: bool,
    /// When the link was created, in milliseconds since 1970. Items created later are not exported.
    #[serde(rename = "t")]
    pub as_of: i64,
}

impl Export {
    fn as_of(&self) -> Timestamp {
        Timestamp::from_millis(self.as_of)
    }
}
