//! The settings and the state of imports.

use crate::schema::item_imports;
use diesel::prelude::*;
use fields::FieldType;
use model::{CollectionId, FileId, ImportId, JsonText, Result, Timestamp, WorkspaceId, text_enum};
use records::rows::matching::OnMatch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How many rejected rows are told one by one; all of them are in the error file.
pub(super) const MOST_SHOWN: i64 = 1_000;

/// What to import, and how.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportSettings {
    /// The file to import, up to 25 MiB. Give this or `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(write_only)]
    pub file_id: Option<FileId>,
    /// The text to import. It is kept as a file, whose id the import tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(write_only, min_length = 1)]
    pub content: Option<String>,
    /// What the file is.
    #[serde(default)]
    #[schema(default = "auto")]
    pub format: Format,
    /// By column, the key of the field that takes its values, `external_key`, or `null` to leave the column out.
    /// Columns that are not named here go to the field with their key or label. Columns of a file without a header
    /// are `column_1`, `column_2`, ….
    #[serde(default)]
    #[schema(value_type = std::collections::HashMap<String, Option<String>>)]
    pub mapping: BTreeMap<String, Option<String>>,
    /// Up to three fields, or `external_key`, by which a row finds the item that it is about.
    #[serde(default)]
    #[schema(max_items = 3)]
    pub match_on: Vec<String>,
    /// What to do with a row whose item is there already.
    #[serde(default)]
    #[schema(default = "update")]
    pub on_match: OnMatch,
    /// Only tell what would happen, and change nothing. To do it, ask again without this, with the `file_id` that
    /// the dry run tells.
    #[serde(default)]
    pub dry_run: bool,
    /// What to do when a row cannot be taken.
    #[serde(default)]
    pub on_error: OnError,
    /// Make a field for every column that goes to none, and that `mapping` does not name: of the narrowest type that all
    /// its values fit, called like the column. Needs the scope `collections:write` too. `match_on` may name such a
    /// field by the key that it will have.
    #[serde(default)]
    pub create_fields: bool,
    /// Whether each item's change is an event of its own, beside the import's.
    #[serde(default)]
    pub emit_events: bool,
    /// The encoding, such as `utf-8`, `utf-16le` or `windows-1252`. Found by itself if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 40)]
    pub encoding: Option<String>,
    /// What stands between the values of a CSV file. Found by itself if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1)]
    pub delimiter: Option<String>,
    /// Whether the first row of a CSV file names the columns. Found by itself if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_header: Option<bool>,
}

/// What a file is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Whatever it looks like.
    #[default]
    Auto,
    /// Comma-separated values (RFC 4180), or with another delimiter.
    Csv,
    /// A JSON object in each line: values by field, or items as the API shows them.
    Jsonl,
}

/// What to do when a row cannot be taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// Go on with the next row.
    #[default]
    Continue,
    /// End the import with the row that makes it this many, at least 1. What was imported until then stays.
    AbortAt(RejectedRows),
}

/// A number of rows that could not be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(minimum = 1, maximum = 1_000_000_000)]
pub struct RejectedRows(pub u32);

text_enum! {
    /// How far an import is.
    pub enum ImportStatus {
        /// It waits for its turn.
        Queued = "queued",
        /// The file is looked through.
        Validating = "validating",
        /// Rows become items.
        Running = "running",
        /// All rows were taken.
        Completed = "completed",
        /// All rows were read, and some could not be taken.
        CompletedWithErrors = "completed_with_errors",
        /// It ended early; `error` says why.
        Failed = "failed",
        /// The collection was deleted meanwhile.
        Cancelled = "cancelled",
    }
}

impl ImportStatus {
    /// Whether it is over.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Validating | Self::Running)
    }
}

/// What was found in a file.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ImportSource {
    /// What it is.
    pub format: Format,
    /// How its text is encoded.
    pub encoding: String,
    /// What stands between values; `null` for JSON Lines.
    pub delimiter: Option<char>,
    /// Whether its first row names the columns.
    pub has_header: bool,
    /// Its columns, and what becomes of them.
    pub columns: Vec<Column>,
    /// Where the first row begins, in bytes of the text as UTF-8.
    #[serde(default)]
    #[schema(ignore)]
    pub(super) data_start: i64,
}

/// A column of a file.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The field that takes its values, or `external_key`; `null` for a column that is left out.
    pub field_key: Option<String>,
    /// With `create_fields`, the field that is made for it; a dry run only tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creates: Option<FieldToMake>,
    /// The type that all its values fit; `null` for a column without values.
    pub looks_like: Option<FieldType>,
}

/// A field that an import makes for a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldToMake {
    /// What items call it.
    pub field_key: String,
    /// What people read.
    pub label: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: FieldType,
}

/// How much of something there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Amount {
    /// Bytes, of the text as UTF-8.
    pub bytes: i64,
    /// Rows.
    pub rows: i64,
}

/// What became of the rows that were read. The counts add up to `processed.rows`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Counts {
    /// Became new items.
    pub created: i64,
    /// Changed items.
    pub updated: i64,
    /// Found their items as they say.
    pub unchanged: i64,
    /// Found an item, which was left as it is.
    pub skipped: i64,
    /// Could not be taken.
    pub failed: i64,
}

/// Why an import ended early.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ImportError {
    /// The reason as a word: `unknown_column`, `too_many_errors`, ….
    pub code: String,
    /// The reason as a sentence.
    pub message: String,
}

impl ImportError {
    /// A reason.
    pub(super) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

/// A row that could not be taken, or one of the reasons why.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RowError {
    /// The row, from 1; a header does not count.
    pub row: i64,
    /// The column; `null` where it is about the whole row.
    pub column: Option<String>,
    /// The reason as a word.
    pub code: String,
    /// The reason as a sentence.
    pub message: String,
    /// What stands there, cut to 200 characters.
    pub value: Option<String>,
}

/// An import as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = item_imports)]
#[expect(missing_docs, reason = "the columns are those that callers see of imports")]
pub struct ImportRow {
    pub id: ImportId,
    pub workspace_id: WorkspaceId,
    pub collection_id: CollectionId,
    pub status: ImportStatus,
    pub file_id: FileId,
    pub settings: JsonText,
    pub source: Option<JsonText>,
    pub bytes_total: Option<i64>,
    pub bytes_done: i64,
    pub rows_total: Option<i64>,
    pub rows_done: i64,
    pub created_count: i64,
    pub updated_count: i64,
    pub unchanged_count: i64,
    pub skipped_count: i64,
    pub failed_count: i64,
    pub error: Option<JsonText>,
    pub error_file_id: Option<FileId>,
    pub created_by: JsonText,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

impl ImportRow {
    /// What was found in the file; `None` until it was looked through.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn source(&self) -> Result<Option<ImportSource>> {
        self.source.as_ref().map(JsonText::parse).transpose()
    }

    /// How much there is; `None` until the file was looked through.
    pub fn total(&self) -> Option<Amount> {
        self.bytes_total.zip(self.rows_total).map(|(bytes, rows)| Amount { bytes, rows })
    }

    /// How much is done.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn processed(&self) -> Result<Amount> {
        let skipped = self.source()?.map_or(0, |source| source.data_start);
        Ok(Amount { bytes: self.bytes_done.max(skipped), rows: self.rows_done })
    }

    /// What became of its rows so far.
    pub fn counts(&self) -> Counts {
        Counts {
            created: self.created_count,
            updated: self.updated_count,
            unchanged: self.unchanged_count,
            skipped: self.skipped_count,
            failed: self.failed_count,
        }
    }
}

/// What is in a file.
#[derive(Debug, Clone)]
pub(super) struct FileSummary {
    /// What it is. What becomes of its columns is not said yet.
    pub(super) source: ImportSource,
    /// Its columns, each with the narrowest type that its values fit.
    pub(super) columns: Vec<(String, Option<FieldType>)>,
    /// Its length, in bytes of the text as UTF-8.
    pub(super) bytes: i64,
    /// Its rows.
    pub(super) rows: i64,
}
