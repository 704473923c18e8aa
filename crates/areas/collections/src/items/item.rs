//! The JSON object of an item.

use fields::ComputedError;
use model::{Actor, CollectionId, ItemId, JsonText, Result, Timestamp};
use records::shape::{ExpandedFields, Shown, push_json};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// An item of a collection.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "data": { "name": "Wooden Train", "price": 39.9, "category": "toys", "stock": 12 },
    "title": "Wooden Train", "position": "i0000000000001", "comment_count": 0, "version": 2,
}))]
pub struct Item<'a> {
    /// The id of the item.
    pub id: ItemId,
    /// Always `item`.
    pub object: &'static str,
    /// The id of the collection.
    pub collection_id: CollectionId,
    /// The values by field key. Fields without a value are left out.
    #[schema(value_type = Object)]
    pub data: &'a RawValue,
    /// The value of the collection's primary field as text.
    pub title: &'a str,
    /// For relation fields with more than 25 items, of which `data` contains the first 25: the number of items, and
    /// where to read all of them.
    #[schema(value_type = Option<Object>)]
    pub has_more: Option<&'a JsonText>,
    /// Why formulas and rollups could not be computed, by field key.
    #[schema(value_type = Option<BTreeMap<String, ComputedError>>)]
    pub computed_errors: Option<&'a JsonText>,
    /// The position in the manual order. Items are sorted by it as text.
    pub position: String,
    /// Your own key, unique in the collection.
    pub external_key: Option<&'a str>,
    /// The number of comments.
    pub comment_count: i64,
    /// Who locked the item. `null` if it is not locked.
    #[schema(value_type = Option<Actor>)]
    pub locked_by: Option<&'a JsonText>,
    /// When the item was locked.
    pub locked_at: Option<Timestamp>,
    /// The version, incremented with every change.
    pub version: i64,
    /// Who created the object.
    #[schema(value_type = Actor)]
    pub created_by: &'a JsonText,
    /// Who last changed the item.
    #[schema(value_type = Actor)]
    pub updated_by: &'a JsonText,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
    /// When the item was moved to the trash. `null` for a live item.
    pub trashed_at: Option<Timestamp>,
    /// The items, contacts, users and files that fields refer to, by field key, at most 25 each. A user has `id`, `name` and
    /// `email`. Only with `expand`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>)]
    pub expanded: Option<ExpandedFields<'a>>,
}

impl<'a> Item<'a> {
    /// An item that is stored, with what is shown of it.
    pub(super) fn of(shown: Shown<'a>) -> Self {
        let row = shown.row;
        Self {
            id: row.id,
            object: "item",
            collection_id: row.collection_id,
            data: shown.data,
            title: &row.title,
            has_more: row.more.as_ref(),
            computed_errors: row.computed_errors.as_ref(),
            position: row.place(),
            external_key: row.external_key.as_deref(),
            comment_count: row.comment_count,
            locked_by: row.locked_by.as_ref(),
            locked_at: row.locked_at,
            version: row.version,
            created_by: &row.created_by,
            updated_by: &row.updated_by,
            created_at: row.created_at,
            updated_at: row.updated_at,
            trashed_at: row.trashed_at,
            expanded: shown.expanded,
        }
    }
}

/// Prints an item as JSON.
pub(crate) fn print(shown: Shown<'_>, out: &mut String) -> Result<()> {
    push_json(out, &Item::of(shown))
}
