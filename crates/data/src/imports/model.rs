//! Imports as callers see them.

use files::File;
use model::{Actor, CollectionId, FileId, ImportId, Result, Timestamp};
use serde::Serialize;
use transfer::imports::{
    Amount, Counts, ImportError, ImportRow, ImportSettings, ImportSource, ImportStatus, RowError,
};
use utoipa::ToSchema;

/// An import.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Import {
    /// The import.
    pub id: ImportId,
    /// Always `import`.
    pub object: &'static str,
    /// The collection.
    pub collection_id: CollectionId,
    /// How far it is.
    pub status: ImportStatus,
    /// The file that is imported.
    pub file_id: FileId,
    /// What was asked for.
    pub settings: ImportSettings,
    /// What was found in the file; `null` until it was looked through.
    pub source: Option<ImportSource>,
    /// How much there is; `null` until the file was looked through.
    pub total: Option<Amount>,
    /// How much is done.
    pub processed: Amount,
    /// What became of the rows. A dry run tells what would.
    pub counts: Counts,
    /// Why it ended early.
    pub error: Option<ImportError>,
    /// The rows that could not be taken, with the original columns and `_error`, ready to be corrected and imported.
    pub error_file: Option<File>,
    /// The first 1,000 reasons why rows could not be taken. Only where one import is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<RowError>>,
    /// Who started it.
    pub created_by: Actor,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

impl Import {
    /// A stored import, with the file of its rejected rows, and with `errors` where one import is asked for.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn of(row: ImportRow, error_file: Option<File>, errors: Option<Vec<RowError>>) -> Result<Self> {
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
            created_by: row.created_by.parse()?,
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
        })
    }
}
