//! What bulk requests answer.

use model::ItemId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// What becomes of a bulk request of which some rows cannot be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BulkMode {
    /// Nothing is done, and the answer is a 400 that lists all mistakes.
    #[default]
    Atomic,
    /// The others are done, and the answer tells of each.
    Partial,
}

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BulkStatus {
    /// It is an item now.
    Created,
    /// Its item changed.
    Updated,
    /// Its item was like that already.
    Unchanged,
    /// It fits an item, which was to stay as it is.
    Skipped,
    /// Its item is in the trash or gone.
    Deleted,
    /// It could not be done.
    Error,
}

/// What a bulk request did.
#[derive(Debug, Serialize, ToSchema)]
pub struct BulkReport {
    /// Always `bulk_report`.
    pub object: &'static str,
    /// What the activity entries of all its changes have in common.
    pub operation_id: String,
    /// How many rows there were of each kind.
    pub summary: BulkSummary,
    /// What became of each row, in order.
    pub results: Vec<BulkResult>,
}

/// How many rows of a bulk request there were of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct BulkSummary {
    /// All of them.
    pub total: usize,
    /// Items that are new.
    pub created: usize,
    /// Items that changed.
    pub updated: usize,
    /// Rows whose items were like that already.
    pub unchanged: usize,
    /// Rows whose items were to stay as they are.
    pub skipped: usize,
    /// Items that are in the trash or gone.
    pub deleted: usize,
    /// Rows that could not be done.
    pub failed: usize,
}

/// What became of one row.
#[derive(Debug, Serialize, ToSchema)]
pub struct BulkResult {
    /// The row, counted from 0.
    pub index: usize,
    /// What became of it.
    pub status: BulkStatus,
    /// Its item; `null` where there is none.
    pub id: Option<ItemId>,
    /// The earlier row of this request that was for the same item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<usize>,
    /// Why it could not be done: `code`, `message`, `param` and perhaps `errors` and `details`, as in an answer that is
    /// an error.
    #[schema(value_type = Option<Object>)]
    pub error: Option<Value>,
}

impl BulkSummary {
    /// Counts a row.
    pub(super) fn count(&mut self, status: BulkStatus) {
        self.total += 1;
        let place = match status {
            BulkStatus::Created => &mut self.created,
            BulkStatus::Updated => &mut self.updated,
            BulkStatus::Unchanged => &mut self.unchanged,
            BulkStatus::Skipped => &mut self.skipped,
            BulkStatus::Deleted => &mut self.deleted,
            BulkStatus::Error => &mut self.failed,
        };
        *place += 1;
    }
}
