//! The settings and the state of imports.

use super::cells::dates::{DateFormat, FoundDates};
use crate::schema::item_imports;
use diesel::prelude::*;
use fields::FieldType;
use model::{
    CollectionId, FileId, ImportId, JsonText, Result, Timestamp, WorkspaceId, string_enum, text_enum,
};
use records::rows::matching::OnMatch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The maximum number of rejected rows in a response. The error file contains all of them.
pub(super) const MOST_SHOWN: i64 = 1_000;

/// What to import, and how.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "content": "name,sku,price\nKite,TOY-0301,24.90\n", "match_on": ["sku"] }))]
pub struct ImportSettings {
    /// The id of the file to import, up to 25 MiB. Required without `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(write_only)]
    pub file_id: Option<FileId>,
    /// The text to import. It is stored as a file, whose id the import returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(write_only, min_length = 1)]
    pub content: Option<String>,
    /// The format of the file.
    #[serde(default)]
    #[schema(default = "auto")]
    pub format: Format,
    /// By column, the key of the field for its values, `external_key`, or `null` to skip the column. Columns that are
    /// not in the mapping are matched with fields by key or label. The columns of a file without a header are
    /// `column_1`, `column_2`, and so on.
    #[serde(default)]
    #[schema(value_type = std::collections::HashMap<String, Option<String>>)]
    pub mapping: BTreeMap<String, Option<String>>,
    /// Up to three fields, or `external_key`, that identify the item of a row.
    #[serde(default)]
    #[schema(max_items = 3)]
    pub match_on: Vec<String>,
    /// What to do with a row whose item exists.
    #[serde(default)]
    #[schema(default = "update")]
    pub on_match: OnMatch,
    /// Whether to validate the file without changing anything. To import it afterwards, send the `file_id` that the dry
    /// run returns.
    #[serde(default)]
    pub dry_run: bool,
    /// What to do when a row is rejected.
    #[serde(default)]
    pub on_error: OnError,
    /// Whether to create a field for each column that matches no field and is not in `mapping`. The field gets the
    /// narrowest type that fits all values, and the name of the column. Requires the scope `collections:write`.
    /// `match_on` can name such a field by its future key.
    #[serde(default)]
    pub create_fields: bool,
    /// Whether to publish an event for each changed item, in addition to the import's event.
    #[serde(default)]
    pub emit_events: bool,
    /// The encoding, such as `utf-8`, `utf-16le` or `windows-1252`; detected if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 40)]
    pub encoding: Option<String>,
    /// The separator of values in a CSV file; detected if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1)]
    pub delimiter: Option<String>,
    /// Whether the first row of a CSV file contains the names of the columns; detected if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_header: Option<bool>,
    /// The character before the decimals of numbers in a CSV file, `.` or `,`; detected if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal_separator: Option<DecimalSeparator>,
    /// The order of day, month and year in dates such as `03/04/2024`. If not given, the dates of the column decide, then
    /// those of the other columns. Where all of them can be read in two ways, the day comes first, or the month if the
    /// business is in a country that writes so, such as the United States. `source.columns` has the format, and
    /// `source.warnings` says where it was not certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_format: Option<DateFormat>,
    /// What to do with a row that has a value which does not fit its field.
    #[serde(default)]
    #[schema(default = "reject_row")]
    pub on_invalid: OnInvalid,
    /// Whether to add options to the workspace's own `select` and `multi_select` fields for values that name none.
    #[serde(default)]
    pub create_options: bool,
    /// What to do with the tags of a row whose item has tags.
    #[serde(default)]
    #[schema(default = "add")]
    pub tags: TagsMode,
    /// How long to wait for the end of the import, in seconds. The response has the result if the import ends within this
    /// time, and its progress otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(write_only, minimum = 0, maximum = 25)]
    pub wait_seconds: Option<u8>,
}

string_enum! {
    /// What to do with a row that has a value which does not fit its field.
    #[derive(Default)]
    pub enum OnInvalid {
        /// Reject the row.
        #[default]
        RejectRow = "reject_row",
        /// Import the row without the value, if it is not needed to create or find the record. `skipped_values` has it.
        SkipValue = "skip_value",
    }
}

string_enum! {
    /// The character before the decimals of numbers.
    pub enum DecimalSeparator {
        /// A point, as in `1,234.56`.
        Point = ".",
        /// A comma, as in `1.234,56`.
        Comma = ",",
    }
}

impl DecimalSeparator {
    /// Returns the character.
    pub(super) fn letter(self) -> char {
        match self {
            Self::Point => '.',
            Self::Comma => ',',
        }
    }
}

string_enum! {
    /// What to do with the tags of a row whose record has tags.
    #[derive(Default)]
    pub enum TagsMode {
        /// Add them to those that the record has.
        #[default]
        Add = "add",
        /// Replace those that the record has.
        Replace = "replace",
    }
}

string_enum! {
    /// The format of a file.
    #[derive(Default)]
    pub enum Format {
        /// Detected from the content.
        #[default]
        Auto = "auto",
        /// Comma-separated values (RFC 4180), or values with another separator.
        Csv = "csv",
        /// One JSON object on each line: values by field, or items in the JSON of the API.
        Jsonl = "jsonl",
        /// A JSON array of such objects.
        Json = "json",
    }
}

/// What to do when a row is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum OnError {
    /// Continue with the next row.
    Continue(ContinueImport),
    /// End the import.
    AbortAt(AbortImport),
}

impl Default for OnError {
    fn default() -> Self {
        Self::Continue(ContinueImport::Continue)
    }
}

string_enum! {
    /// Continue with the next row.
    pub enum ContinueImport {
        /// Continue with the next row.
        Continue = "continue",
    }
}

/// End the import when a number of rows were rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AbortImport {
    /// The number of rejected rows. Items that were imported until then are kept.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub abort_at: u32,
}

text_enum! {
    /// The status of an import.
    pub enum ImportStatus {
        /// Waiting for its turn.
        Queued = "queued",
        /// The file is being validated.
        Validating = "validating",
        /// Rows are being imported.
        Running = "running",
        /// All rows were imported.
        Completed = "completed",
        /// All rows were processed, and some were rejected.
        CompletedWithErrors = "completed_with_errors",
        /// The import ended early. `error` has the reason.
        Failed = "failed",
        /// The collection was deleted during the import.
        Cancelled = "cancelled",
    }
}

impl ImportStatus {
    /// Returns whether the import has ended.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Validating | Self::Running)
    }
}

/// What was detected in a file.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ImportSource {
    /// The format.
    pub format: Format,
    /// The encoding of the text.
    pub encoding: String,
    /// The separator of values. `null` for JSON.
    pub delimiter: Option<char>,
    /// Whether the first row contains the names of the columns.
    pub has_header: bool,
    /// The columns, and how they are used.
    pub columns: Vec<Column>,
    /// What the import leaves out or cannot read, such as columns that only the service sets.
    #[serde(default)]
    pub warnings: Vec<ImportWarning>,
    /// Where the first row begins, in bytes of the text as UTF-8.
    #[serde(default)]
    #[schema(ignore)]
    pub(super) data_start: i64,
}

impl ImportSource {
    /// Returns the CSV delimiter as a byte.
    pub(super) fn delimiter_byte(&self) -> u8 {
        self.delimiter.and_then(|letter| u8::try_from(letter).ok()).unwrap_or(b',')
    }
}

/// Something in a file that is not imported as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportWarning {
    /// The reason as a code: `column_ignored`, `ambiguous_dates` or `invalid_characters`.
    pub code: String,
    /// The reason as a sentence.
    pub message: String,
    /// The column. `null` if the whole file is affected.
    pub column: Option<String>,
}

string_enum! {
    /// Why a column is not imported.
    pub enum IgnoredReason {
        /// `mapping` says so.
        Mapping = "mapping",
        /// No field has this name.
        NoField = "no_field",
        /// The service sets the value.
        ReadOnly = "read_only",
        /// Another column has the values of the field.
        Duplicate = "duplicate",
    }
}

/// A column of a file.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Column {
    /// The name.
    pub name: String,
    /// The key of the field for the values, or `external_key`. `null` for a skipped column.
    pub field_key: Option<String>,
    /// With `create_fields`: the field that is created for the column, or would be for a dry run.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creates: Option<FieldToMake>,
    /// The narrowest type that fits all values. `null` for a column without values.
    pub looks_like: Option<FieldType>,
    /// Why the column is not imported. Only for a skipped column.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<IgnoredReason>,
    /// The character before the decimals, if the numbers of the column are not read as JSON writes them.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal_separator: Option<char>,
    /// The order of day, month and year, if the column has dates in another form than `2024-02-13`.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_format: Option<DateFormat>,
    /// Whether the dates can be read in two ways.
    #[serde(skip)]
    #[schema(ignore)]
    pub(super) has_open_dates: bool,
}

/// A field that an import creates for a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldToMake {
    /// The field's key in items.
    pub field_key: String,
    /// The label for people.
    pub label: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: FieldType,
}

/// An amount of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "bytes": 35, "rows": 1 }))]
pub struct Amount {
    /// The number of bytes of the text in UTF-8.
    pub bytes: i64,
    /// The number of rows.
    pub rows: i64,
}

/// The results of the rows that were processed. They add up to `processed.rows`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "created": 1, "updated": 0, "unchanged": 0, "skipped": 0, "failed": 0 }))]
pub struct Counts {
    /// Rows that created an item.
    pub created: i64,
    /// Rows that changed an item.
    pub updated: i64,
    /// Rows that changed nothing.
    pub unchanged: i64,
    /// Rows that were skipped because their item exists.
    pub skipped: i64,
    /// Rows that were rejected.
    pub failed: i64,
}

/// Why an import ended early.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ImportError {
    /// The reason as a code, such as `unknown_column` or `too_many_errors`.
    pub code: String,
    /// The reason as a sentence.
    pub message: String,
}

impl ImportError {
    /// Creates an error.
    pub(super) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

/// Something that is wrong with a row: a reason why it was rejected, or a value that was skipped.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RowError {
    /// The number of the row, from 1, without the header.
    pub row: i64,
    /// The column. `null` if the whole row is affected.
    pub column: Option<String>,
    /// The reason as a code.
    pub code: String,
    /// The reason as a sentence.
    pub message: String,
    /// The value in the file, truncated to 200 characters.
    pub value: Option<String>,
}

/// The errors of an import's rows.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// The first errors of rejected rows.
    pub errors: Vec<RowError>,
    /// The first skipped values.
    pub skipped_values: Vec<RowError>,
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
    pub skipped_value_count: i64,
}

impl ImportRow {
    /// Returns the detected properties of the file, or `None` before its inspection.
    ///
    /// # Errors
    /// `internal_error` if the stored row is corrupt.
    pub fn source(&self) -> Result<Option<ImportSource>> {
        self.source.as_ref().map(JsonText::parse).transpose()
    }

    /// Returns the total amount, or `None` before the inspection.
    pub fn total(&self) -> Option<Amount> {
        self.bytes_total.zip(self.rows_total).map(|(bytes, rows)| Amount { bytes, rows })
    }

    /// Returns the processed amount.
    ///
    /// # Errors
    /// `internal_error` if the stored row is corrupt.
    pub fn processed(&self) -> Result<Amount> {
        let skipped = self.source()?.map_or(0, |source| source.data_start);
        Ok(Amount { bytes: self.bytes_done.max(skipped), rows: self.rows_done })
    }

    /// Returns the results of the rows so far.
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

/// The result of inspecting a file.
#[derive(Debug, Clone)]
pub(super) struct FileSummary {
    /// The properties of the file. Its columns are not assigned yet.
    pub(super) source: ImportSource,
    /// The columns.
    pub(super) columns: Vec<FoundColumn>,
    /// The length in bytes of the text as UTF-8.
    pub(super) bytes: i64,
    /// The number of rows.
    pub(super) rows: i64,
}

/// A column found in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundColumn {
    pub(super) name: String,
    /// The narrowest type of its values.
    pub(super) looks_like: Option<FieldType>,
    /// The decimal separator, if its numbers are not read as JSON.
    pub(super) decimal_separator: Option<char>,
    /// The dates, if some are not in the format of RFC 3339.
    pub(super) dates: Option<FoundDates>,
}
