//! The response with an import.

use files::File;
use model::{Actor, CollectionId, FileId, ImportId, Result, Timestamp};
use serde::Serialize;
use transfer::imports::{
    Amount, Counts, Faults, ImportError, ImportRow, ImportSettings, ImportSource, ImportStatus, RowError,
};
use utoipa::ToSchema;

/// An import.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "status": "completed",
    "settings": { "format": "auto", "mapping": {}, "match_on": ["sku"], "on_match": "update" }, "total": {},
    "skipped_value_count": 0,
    "started_at": "2026-11-20T09:30:01.000Z", "finished_at": "2026-11-20T09:30:01.021Z",
}))]
pub struct Import {
    /// The id of the import.
    pub id: ImportId,
    /// Always `import`.
    pub object: &'static str,
    /// The id of the collection.
    pub collection_id: CollectionId,
    /// The status of the import.
    pub status: ImportStatus,
    /// The id of the imported file.
    pub file_id: FileId,
    /// The settings of the request.
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
    /// The rejected rows with their original columns and `_error`, ready to be corrected and imported.
    pub error_file: Option<File>,
    /// The first 1,000 reasons why rows were rejected. Only when a single import is requested.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<RowError>>,
    /// The number of values that were skipped, with `"on_invalid": "skip_value"`.
    pub skipped_value_count: i64,
    /// The first 1,000 values that were skipped, and why. Only when a single import is requested.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped_values: Option<Vec<RowError>>,
    /// Who started the import.
    pub created_by: Actor,
    /// When the import was requested.
    pub created_at: Timestamp,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

impl Import {
    /// Builds the response from a stored import and the file of its rejected rows. `faults` are shown for a single
    /// import only.
    ///
    /// # Errors
    /// `internal_error` if the stored data is damaged.
    pub fn of(row: ImportRow, error_file: Option<File>, faults: Option<Faults>) -> Result<Self> {
        let (errors, skipped_values) = faults.map(|faults| (faults.errors, faults.skipped_values)).unzip();
        Ok(Self {
            status: row.status,
            counts: row.counts(),
            total: row.total(),
            processed: row.processed()?,
            source: row.source()?,
            id: row.id,
            object: "import",
            collection_id: row.collection_id,
            file_id: row.file_id,
            settings: row.settings.parse()?,
            error: row.error.map(|error| error.parse()).transpose()?,
            error_file,
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
