//! What bulk requests take and give.

use fields::Data;
use model::{Error, ItemId, Patch, Result};
use operation::{Describe, FromInput, Input};
use records::rows::matching::OnMatch;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use utoipa::ToSchema;

/// The most bytes of a bulk request.
const MOST_BYTES: usize = 5_000_000;

/// The body of a bulk request. It is shared, because a transaction that the database runs again takes it again.
#[derive(Debug)]
pub struct Rows<T>(pub Arc<T>);

impl<T> Clone for Rows<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: DeserializeOwned + ToSchema> FromInput for Rows<T> {
    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        if input.body.len() > MOST_BYTES {
            return Err(Error::invalid("rows", "must have at most 5 MB altogether"));
        }
        input.json().map(Arc::new).map(Self)
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        describe.body::<T>();
    }
}

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

/// Items to be created.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkCreate {
    /// What becomes of the request if some rows cannot be done; `atomic` if not given.
    #[serde(default)]
    pub mode: BulkMode,
    /// Whether text is read as what a field wants. Choices that do not exist yet are made.
    #[serde(default)]
    pub typecast: bool,
    /// The items.
    #[schema(min_items = 1, max_items = 1_000)]
    pub rows: Vec<BulkRow>,
}

/// An item of a bulk request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRow {
    /// Its values, by the key of their field.
    #[schema(value_type = Object)]
    pub data: Data,
    /// A key of your own, unique among the live items of the collection.
    #[schema(min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_key: Option<String>,
}

/// Items to be changed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkUpdate {
    /// What becomes of the request if some rows cannot be done; `atomic` if not given.
    #[serde(default)]
    pub mode: BulkMode,
    /// Whether text is read as what a field wants. Choices that do not exist yet are made.
    #[serde(default)]
    pub typecast: bool,
    /// The changes, in order.
    #[schema(min_items = 1, max_items = 1_000)]
    pub rows: Vec<BulkChange>,
}

/// A change of an item in a bulk request. What is not sent stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkChange {
    /// The item.
    pub id: ItemId,
    /// Values, by the key of their field; `null` clears one.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub data: Data,
    /// A key of your own; `null` removes it.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_key: Patch<String>,
    /// The version that is meant; the row is a mistake where the item has another by now.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}

/// Items to be created or changed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkUpsert {
    /// What becomes of the request if some rows cannot be done; `atomic` if not given.
    #[serde(default)]
    pub mode: BulkMode,
    /// Whether text is read as what a field wants. Choices that do not exist yet are made.
    #[serde(default)]
    pub typecast: bool,
    /// What tells that a row and an item are the same: the keys of up to three fields, or `external_key` alone.
    #[schema(min_items = 1, max_items = 3)]
    pub match_on: Vec<String>,
    /// What to do with a row that fits an item; `update` if not given.
    #[serde(default)]
    pub on_match: OnMatch,
    /// The items, in order: of two rows for the same item the later one wins.
    #[schema(min_items = 1, max_items = 1_000)]
    pub rows: Vec<BulkRow>,
}

/// Items to be deleted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkDelete {
    /// What becomes of the request if some items cannot be deleted; `atomic` if not given.
    #[serde(default)]
    pub mode: BulkMode,
    /// Whether to delete them for good, at once. Otherwise they stay in the trash for 30 days.
    #[serde(default)]
    pub permanent: bool,
    /// The items.
    #[schema(min_items = 1, max_items = 1_000)]
    pub ids: Vec<ItemId>,
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
