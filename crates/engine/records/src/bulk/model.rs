//! What bulk requests answer.

use model::{ItemId, string_enum};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

string_enum! {
    /// What happens to a bulk request if some rows fail.
    #[derive(Default)]
    pub enum BulkMode {
        /// No row is applied. The response is a 400 that lists all errors.
        #[default]
        Atomic = "atomic",
        /// The other rows are applied. The response has the result of each row.
        Partial = "partial",
    }
}

string_enum! {
    /// The result of a row.
    pub enum BulkStatus {
        /// An item was created.
        Created = "created",
        /// The item was changed.
        Updated = "updated",
        /// The item already had these values.
        Unchanged = "unchanged",
        /// The item exists and was not changed, as requested by `on_match`.
        Skipped = "skipped",
        /// The item was deleted.
        Deleted = "deleted",
        /// The row was rejected.
        Error = "error",
    }
}

/// The result of a bulk request.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "operation_id": "op_01m7w4n5e0k3p8r2v6x9b1d4f7" }))]
pub struct BulkReport {
    /// Always `bulk_report`.
    pub object: &'static str,
    /// Shared by the activity entries of all its changes.
    pub operation_id: String,
    /// How many rows had each result.
    pub summary: BulkSummary,
    /// The result of each row, in order.
    pub results: Vec<BulkResult>,
}

/// How many rows of a bulk request had each result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "total": 1, "created": 1, "updated": 0, "unchanged": 0, "skipped": 0, "deleted": 0, "failed": 0 }))]
pub struct BulkSummary {
    /// All of them.
    pub total: usize,
    /// Items that were created.
    pub created: usize,
    /// Items that were changed.
    pub updated: usize,
    /// Rows that changed nothing.
    pub unchanged: usize,
    /// Rows that were skipped because their item exists.
    pub skipped: usize,
    /// Items that were moved to the trash or deleted.
    pub deleted: usize,
    /// Rows that failed.
    pub failed: usize,
}

/// The result of one row.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "index": 0, "id": 1 }))]
pub struct BulkResult {
    /// The index of the row, from 0.
    pub index: usize,
    /// The result.
    pub status: BulkStatus,
    /// The id of the item. `null` if there is none.
    pub id: Option<ItemId>,
    /// The index of an earlier row of the request for the same item.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<usize>,
    /// Why the row failed: `code` and `message`, and optionally `param`, `errors` and `details`, as in an error
    /// response.
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
