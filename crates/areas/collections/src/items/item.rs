//! The JSON object of an item.

use fields::{ComputedError, ComputedErrors, Data};
use model::{Actor, CollectionId, ItemId, JsonText, Timestamp};
use records::rows::ItemRow;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;
use utoipa::ToSchema;

// This type only describes items in the OpenAPI document. `print` writes the JSON, and copies stored values unparsed.
/// An item of a collection.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "data": { "name": "Wooden Train", "price": 39.9, "category": "toys", "stock": 12 },
    "title": "Wooden Train", "position": "i0000000000001", "comment_count": 0, "version": 2,
}))]
pub struct Item {
    /// The id of the item.
    pub id: ItemId,
    /// Always `item`.
    pub object: &'static str,
    /// The id of the collection.
    pub collection_id: CollectionId,
    /// The values by field key. Fields without a value are left out.
    #[schema(value_type = Object)]
    pub data: Data,
    /// The value of the collection's primary field as text.
    pub title: String,
    /// For relation fields with more than 25 items, of which `data` contains the first 25: the number of items, and
    /// where to read all of them.
    #[schema(value_type = Option<Object>)]
    pub has_more: Option<Value>,
    /// Why formulas and rollups could not be computed, by field key.
    #[schema(value_type = Option<BTreeMap<String, ComputedError>>)]
    pub computed_errors: Option<ComputedErrors>,
    /// The position in the manual order. Items are sorted by it as text.
    pub position: String,
    /// Your own key, unique in the collection.
    pub external_key: Option<String>,
    /// The number of comments.
    pub comment_count: i64,
    /// Who locked the item. `null` if it is not locked.
    pub locked_by: Option<Actor>,
    /// When the item was locked.
    pub locked_at: Option<Timestamp>,
    /// The version, incremented with every change.
    pub version: i64,
    /// Who created the object.
    pub created_by: Actor,
    /// Who last changed the item.
    pub updated_by: Actor,
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
    pub expanded: Option<Value>,
}

/// Prints an item as JSON, with `data` for its values.
pub(crate) fn print(row: &ItemRow, data: &str, out: &mut String) {
    let null = |text: Option<&JsonText>| text.map_or("null", JsonText::as_str).to_owned();
    let moment = |moment: Option<Timestamp>| {
        moment.map_or_else(|| "null".to_owned(), |moment| format!("\"{}\"", moment.rfc3339()))
    };
    let _ = write!(
        out,
        concat!(
            r#"{{"id":{},"object":"item","collection_id":{},"data":{},"title":{},"has_more":{},"computed_errors":{},"position":{},"#,
            r#""external_key":{},"comment_count":{},"locked_by":{},"locked_at":{},"version":{},"created_by":{},"#,
            r#""updated_by":{},"created_at":{},"updated_at":{},"trashed_at":{}}}"#
        ),
        row.id,
        row.collection_id,
        data,
        quoted(&row.title),
        null(row.more.as_ref()),
        null(row.computed_errors.as_ref()),
        quoted(&row.place()),
        row.external_key.as_deref().map_or_else(|| "null".to_owned(), quoted),
        row.comment_count,
        null(row.locked_by.as_ref()),
        moment(row.locked_at),
        row.version,
        row.created_by.as_str(),
        row.updated_by.as_str(),
        moment(Some(row.created_at)),
        moment(Some(row.updated_at)),
        moment(row.trashed_at),
    );
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}
