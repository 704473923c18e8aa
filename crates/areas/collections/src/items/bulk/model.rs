//! Request bodies of bulk operations.

use fields::Data;
use fields::value::Mode;
use model::{Error, ItemId, Patch, Result};
use operation::{Describe, ExpectedVersion, FromInput, Input};
use records::bulk::{BulkMode, Row};
use records::rows::matching::OnMatch;
use records::rows::{ItemChange, Missing};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use utoipa::ToSchema;

/// The most bytes of a bulk request.
const MOST_BYTES: usize = 5_000_000;

/// The body of a bulk request. It is shared, because the database can run the transaction a second time with the same
/// body.
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
            return Err(Error::invalid("rows", "must have at most 5 MB in total"));
        }
        input.json().map(Arc::new).map(Self)
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        describe.body::<T>();
    }
}

/// Items to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "rows": [
        { "data": { "name": "Wooden Train", "price": 39.9, "category": "toys" } },
        { "data": { "name": "Puzzle", "price": 14.9, "category": "toys" } },
    ],
}))]
pub struct BulkCreate {
    /// What happens to the request if some rows fail; `atomic` if not given.
    #[serde(default)]
    pub mode: BulkMode,
    /// Whether to convert text to the type of its field. Missing choices are created.
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
    /// The values by field key.
    #[schema(value_type = Object)]
    pub data: Data,
    /// Your own key, unique among the live items of the collection.
    #[schema(min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_key: Option<String>,
}

/// Items to change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "rows": [{ "id": 1, "data": { "stock": 12 } }, { "id": 2, "data": { "stock": 0 } }] }))]
pub struct BulkUpdate {
    /// What happens to the request if some rows fail; `atomic` if not given.
    #[serde(default)]
    pub mode: BulkMode,
    /// Whether to convert text to the type of its field. Missing choices are created.
    #[serde(default)]
    pub typecast: bool,
    /// The changes, in order.
    #[schema(min_items = 1, max_items = 1_000)]
    pub rows: Vec<BulkChange>,
}

/// A change of an item in a bulk request. Fields that are not sent stay unchanged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkChange {
    /// The id of the item.
    pub id: ItemId,
    /// The values by field key. `null` clears a field.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub data: Data,
    /// Your own key. `null` removes it.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_key: Patch<String>,
    /// The expected version. If the item has another version, the row fails.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}

/// Items to create or change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "match_on": ["sku"], "rows": [{ "data": { "sku": "TOY-0001", "name": "Wooden Train", "price": 39.9 } }],
}))]
pub struct BulkUpsert {
    /// What happens to the request if some rows fail; `atomic` if not given.
    #[serde(default)]
    pub mode: BulkMode,
    /// Whether to convert text to the type of its field. Missing choices are created.
    #[serde(default)]
    pub typecast: bool,
    /// The keys of up to three fields that identify an item, or `external_key` alone.
    #[schema(min_items = 1, max_items = 3)]
    pub match_on: Vec<String>,
    /// What to do with a row that matches an item; `update` if not given.
    #[serde(default)]
    pub on_match: OnMatch,
    /// The items, in order. Of two rows for the same item, the later one wins.
    #[schema(min_items = 1, max_items = 1_000)]
    pub rows: Vec<BulkRow>,
}

/// Items to delete.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "ids": [3, 4] }))]
pub struct BulkDelete {
    /// What happens to the request if some items cannot be deleted; `atomic` if not given.
    #[serde(default)]
    pub mode: BulkMode,
    /// Whether to delete the items permanently. Otherwise they stay in the trash for 30 days.
    #[serde(default)]
    pub permanent: bool,
    /// The items.
    #[schema(min_items = 1, max_items = 1_000)]
    pub ids: Vec<ItemId>,
}

impl BulkRow {
    /// Returns the row in the form that the engine accepts.
    pub(super) fn row(&self) -> Row<'_> {
        Row { data: &self.data, external_key: self.external_key.as_deref() }
    }
}

impl BulkChange {
    /// Returns the id of the item, and the change in the form that the engine accepts.
    pub(super) fn change(&self, mode: Mode) -> (ItemId, ItemChange<'_>) {
        let change = ItemChange {
            data: &self.data,
            missing: Missing::Keep,
            mode,
            external_key: self.external_key.clone(),
            expected: ExpectedVersion::of_body(self.version),
            path: "",
        };
        (self.id, change)
    }
}
