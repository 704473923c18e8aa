//! Request bodies and responses of imports of contacts, and their events.

use crate::edit::model::OnContactMatch;
use crate::edit::operations::MATCH_ON;
use model::{Actor, FileId, ImportId, Result, Timestamp};
use operation::Event;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use transfer::imports::{
    Amount, Counts, DateFormat, DecimalSeparator, Faults, Format, ImportError, ImportRow, ImportSettings,
    ImportSource, ImportStatus, OnError, OnInvalid, RowError, TagsMode,
};
use utoipa::ToSchema;

/// The most rejected rows in the event of an import.
const MOST_ERRORS: usize = 100;

/// Contacts to import.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "content": "name,phone,tags\nAna Souza,+55 11 98765-4321,\"vip, newsletter\"\n" }))]
pub struct ContactImportRequest {
    /// The id of the file to import, up to 25 MiB. Required without `content`.
    #[serde(default)]
    pub file_id: Option<FileId>,
    /// The text to import. It is stored as a file, whose id the import returns.
    #[serde(default)]
    #[schema(min_length = 1)]
    pub content: Option<String>,
    /// The format of the file.
    #[serde(default)]
    #[schema(default = "auto")]
    pub format: Format,
    /// By column, the key of the field for its values, `external_id`, or `null` to skip the column. Columns that are not in
    /// the mapping are matched with fields by key or label; the `$` of system fields can be left out. The columns of a file
    /// without a header are `column_1`, `column_2`, and so on.
    #[serde(default)]
    #[schema(value_type = std::collections::HashMap<String, Option<String>>)]
    pub mapping: BTreeMap<String, Option<String>>,
    /// Up to three fields, or `external_id`, that identify the contact of a row. If not given, whatever identifies a contact
    /// does: `external_id`, `$phone`, `$email`, `$username` and `$chat_user_id`.
    #[serde(default)]
    #[schema(max_items = 3)]
    pub match_on: Vec<String>,
    /// What to do with a row whose contact exists.
    #[serde(default)]
    pub on_match: OnContactMatch,
    /// Whether to validate the file without changing anything. To import it afterwards, send the `file_id` that the dry
    /// run returns.
    #[serde(default)]
    pub dry_run: bool,
    /// What to do when a row is rejected.
    #[serde(default)]
    pub on_error: OnError,
    /// Whether to create a contact field for each column that matches no field and is not in `mapping`. Requires the scope
    /// `variables:write`.
    #[serde(default)]
    pub create_fields: bool,
    /// Whether to publish an event for each changed contact, in addition to the import's event.
    #[serde(default)]
    pub emit_events: bool,
    /// The encoding, such as `utf-8`, `utf-16le` or `windows-1252`; detected if not given.
    #[serde(default)]
    #[schema(max_length = 40)]
    pub encoding: Option<String>,
    /// The separator of values in a CSV file; detected if not given.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 1)]
    pub delimiter: Option<String>,
    /// Whether the first row of a CSV file contains the names of the columns; detected if not given.
    #[serde(default)]
    pub has_header: Option<bool>,
    /// The character before the decimals of numbers in a CSV file, `.` or `,`; detected if not given.
    #[serde(default)]
    pub decimal_separator: Option<DecimalSeparator>,
    /// The order of day, month and year in dates such as `03/04/2024`. If not given, the dates of the column decide, then
    /// those of the other columns. Where all of them can be read in two ways, the day comes first, or the month if the
    /// business is in a country that writes so, such as the United States. `source.columns` has the format, and
    /// `source.warnings` says where it was not certain.
    #[serde(default)]
    pub date_format: Option<DateFormat>,
    /// What to do with a row that has a value which does not fit its field.
    #[serde(default)]
    #[schema(default = "reject_row")]
    pub on_invalid: OnInvalid,
    /// Whether to add options to `$stage` and to the workspace's own `select` and `multi_select` fields for values that name
    /// none.
    #[serde(default)]
    pub create_options: bool,
    /// What to do with the tags of a row whose contact has tags.
    #[serde(default)]
    #[schema(default = "add")]
    pub tags: TagsMode,
    /// How long to wait for the end of the import, in seconds. The response has the result if the import ends within this
    /// time, and its progress otherwise.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 25)]
    pub wait_seconds: Option<u8>,
}

impl ContactImportRequest {
    pub(super) fn settings(self) -> ImportSettings {
        let identity = || vec![MATCH_ON.to_owned()];
        ImportSettings {
            file_id: self.file_id,
            content: self.content,
            format: self.format,
            mapping: self.mapping,
            match_on: if self.match_on.is_empty() { identity() } else { self.match_on },
            on_match: self.on_match.into(),
            dry_run: self.dry_run,
            on_error: self.on_error,
            create_fields: self.create_fields,
            emit_events: self.emit_events,
            encoding: self.encoding,
            delimiter: self.delimiter,
            has_header: self.has_header,
            decimal_separator: self.decimal_separator,
            date_format: self.date_format,
            on_invalid: self.on_invalid,
            create_options: self.create_options,
            tags: self.tags,
            wait_seconds: None,
        }
    }
}

/// An import of contacts.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "status": "completed", "settings": { "format": "auto", "mapping": {}, "match_on": ["identity"], "on_match": "update" },
    "total": {}, "errors": [], "skipped_value_count": 0, "skipped_values": [],
    "started_at": "2026-11-20T09:30:01.000Z", "finished_at": "2026-11-20T09:30:01.021Z",
}))]
pub struct ContactImport {
    /// The id of the import.
    pub id: ImportId,
    /// Always `contact_import`.
    pub object: &'static str,
    /// The status of the import.
    pub status: ImportStatus,
    /// The id of the imported file.
    pub file_id: FileId,
    /// The settings of the request. `identity` in `match_on` stands for whatever identifies a contact.
    pub settings: ImportSettings,
    /// What was detected in the file. `null` until the file has been validated.
    pub source: Option<ImportSource>,
    /// The size of the file. `null` until it has been validated.
    pub total: Option<Amount>,
    /// How much has been processed.
    pub processed: Amount,
    /// The results of the rows. For a dry run, what they would be.
    pub counts: Counts,
    /// Why the import ended early.
    pub error: Option<ImportError>,
    /// The id of the file with the rejected rows: their original columns and `_error`, ready to be corrected and imported.
    pub error_file_id: Option<FileId>,
    /// The first 100 reasons why rows were rejected.
    pub errors: Vec<RowError>,
    /// The number of values that were skipped, with `"on_invalid": "skip_value"`.
    pub skipped_value_count: i64,
    /// The first 100 values that were skipped, and why.
    pub skipped_values: Vec<RowError>,
    /// Who started the import.
    pub created_by: Actor,
    /// When the import was requested.
    pub created_at: Timestamp,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

impl ContactImport {
    pub(super) fn of(row: ImportRow, faults: Faults) -> Result<Self> {
        let Faults { mut errors, mut skipped_values } = faults;
        errors.truncate(MOST_ERRORS);
        skipped_values.truncate(MOST_ERRORS);
        Ok(Self {
            status: row.status,
            counts: row.counts(),
            total: row.total(),
            processed: row.processed()?,
            source: row.source()?,
            id: row.id,
            object: "contact_import",
            file_id: row.file_id,
            settings: row.settings.parse()?,
            error: row.error.map(|error| error.parse()).transpose()?,
            error_file_id: row.error_file_id,
            errors,
            skipped_value_count: row.skipped_value_count,
            skipped_values,
            created_by: row.created_by.parse()?,
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
        })
    }
}

/// An event of an import of contacts.
#[derive(Event)]
#[event(scope = "conversations:read", subject = "contact_import", id = "import.id")]
pub(crate) enum ContactImportEvent {
    /// An import of contacts processed all rows. Some of them may have failed.
    #[event(name = "contact.import.completed")]
    Completed(ContactImportEnded),
    /// An import of contacts ended before all rows were processed.
    #[event(name = "contact.import.failed")]
    Failed(ContactImportEnded),
}

/// An import of contacts ended.
#[derive(Serialize, ToSchema)]
pub(crate) struct ContactImportEnded {
    /// The import at its end.
    pub(super) import: ContactImport,
}
