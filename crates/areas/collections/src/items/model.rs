//! Request bodies and parameters of the operations on items.

use fields::Data;
use fields::value::Mode;
use model::{Actor, CollectionId, CommentId, FileId, ItemId, Patch, Timestamp, string_enum};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// An item to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "data": { "name": "Wooden Train", "price": 39.9, "category": "toys" } }))]
pub struct NewItem {
    /// The values by field key. Fields that are not sent get their default values.
    #[schema(value_type = Object)]
    pub data: Data,
    /// Your own key, unique among the live items of the collection.
    #[schema(min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_key: Option<String>,
    /// Whether to convert text to the type of its field: `"12.5"` to a number, a label to its choice. Missing choices
    /// are created.
    #[serde(default)]
    pub typecast: bool,
}

/// A change of an item. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "data": { "price": 34.9, "stock": 12 } }))]
pub struct ItemPatch {
    /// The values to change, by field key. `null` clears a field.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub data: Data,
    /// Your own key, unique among the live items of the collection. `null` removes it.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_key: Patch<String>,
    /// The expected version, like `If-Match`. If the item has another version, the request is rejected with 409
    /// `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
    /// Whether to convert text to the type of its field. Missing choices are created.
    #[serde(default)]
    pub typecast: bool,
}

/// The new values of an item.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "data": { "name": "Wooden Train", "price": 39.9, "category": "toys", "stock": 12 } }))]
pub struct ItemReplacement {
    /// All values by field key. Fields that are not sent are cleared.
    #[schema(value_type = Object)]
    pub data: Data,
    /// Your own key, unique among the live items of the collection. `null` removes it. If not sent, it stays unchanged.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_key: Patch<String>,
    /// The expected version, like `If-Match`. If the item has another version, the request is rejected with 409
    /// `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
    /// Whether to convert text to the type of its field. Missing choices are created.
    #[serde(default)]
    pub typecast: bool,
}

/// How to read one item.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct ItemQuery {
    /// Whether to return the item even if it is in the trash.
    #[serde(default)]
    #[param(required = false)]
    pub trashed: bool,
}

/// How to delete an item.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct ItemDeletion {
    /// Whether to delete the item permanently. Otherwise it stays in the trash for 30 days.
    #[serde(default)]
    #[param(required = false)]
    pub permanent: bool,
}

/// Returns how strictly values are parsed.
pub fn mode(typecast: bool) -> Mode {
    if typecast { Mode::Typecast } else { Mode::Strict }
}

/// The new value of a field.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "value": 34.9 }))]
pub struct NewFieldValue {
    /// The value, in the form of the field's type. `null` clears the field.
    pub value: Value,
    /// The expected version, like `If-Match`. If the item has another version, the request is rejected with 409
    /// `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
    /// Whether to convert text to the type of its field.
    #[serde(default)]
    pub typecast: bool,
}

/// An addition to a number.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "field": "stock", "by": -1, "min": 0 }))]
pub struct Increment {
    /// The key of the field.
    #[schema(min_length = 1, max_length = 63)]
    pub field: String,
    /// The number to add. A negative number subtracts.
    #[schema(value_type = f64)]
    pub by: Number,
    /// The minimum of the sum, such as 0 for a stock.
    #[serde(default)]
    #[schema(value_type = Option<f64>)]
    pub min: Option<Number>,
    /// The maximum of the sum, such as the seats of a course.
    #[serde(default)]
    #[schema(value_type = Option<f64>)]
    pub max: Option<Number>,
}

/// How to unlock an item.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "force": true }))]
pub struct Unlocking {
    /// Whether to unlock the item even if another key locked it.
    #[serde(default)]
    pub force: bool,
}

/// Which comments to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct CommentQuery {
    /// Only replies to this comment.
    #[param(value_type = Option<i64>)]
    #[serde(default)]
    pub parent_id: Option<CommentId>,
}

/// A comment to add.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "body": "The last two are reserved." }))]
pub struct NewComment {
    /// The text in Markdown.
    #[schema(min_length = 1, max_length = 10_000, pattern = r"\S")]
    pub body: String,
    /// The id of the first comment of the thread to reply to.
    #[serde(default)]
    pub parent_id: Option<CommentId>,
    /// The key of the field that the comment is about.
    #[schema(min_length = 1, max_length = 63)]
    #[serde(default)]
    pub field_key: Option<String>,
    /// The ids of the mentioned users.
    #[schema(max_items = 50)]
    #[serde(default)]
    pub mentions: Vec<i64>,
    /// The attached files.
    #[schema(max_items = 20)]
    #[serde(default)]
    pub attachments: Vec<FileId>,
}

/// A change of a comment. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "resolved": true }))]
pub struct CommentPatch {
    /// The text in Markdown.
    #[schema(min_length = 1, max_length = 10_000, pattern = r"\S")]
    #[serde(default)]
    pub body: Option<String>,
    /// The ids of the mentioned users.
    #[schema(max_items = 50)]
    #[serde(default)]
    pub mentions: Option<Vec<i64>>,
    /// The attached files.
    #[schema(max_items = 20)]
    #[serde(default)]
    pub attachments: Option<Vec<FileId>>,
    /// Whether the thread is resolved. Only for the first comment of a thread.
    #[serde(default)]
    pub resolved: Option<bool>,
}

/// A file to attach.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "file_id": 1 }))]
pub struct NewAttachment {
    /// The id of the file.
    pub file_id: FileId,
}

/// The new place of an item: one of the three fields.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(min_properties = 1, max_properties = 1)]
#[schema(example = json!({ "after": 2 }))]
pub struct ItemPosition {
    /// The id of the item to place it before.
    #[serde(default)]
    #[schema(nullable = false)]
    pub before: Option<ItemId>,
    /// The id of the item to place it after.
    #[serde(default)]
    #[schema(nullable = false)]
    pub after: Option<ItemId>,
    /// The start or the end of the order.
    #[serde(default)]
    #[schema(nullable = false)]
    pub position: Option<End>,
}

string_enum! {
    /// An end of the manual order.
    pub enum End {
        /// Before all other items.
        First = "first",
        /// After all other items.
        Last = "last",
    }
}

/// How the copy of an item differs from the original.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "data": { "name": "Wooden Train (red)", "sku": null } }))]
pub struct ItemCopy {
    /// Values that replace those of the item, by field key. `null` clears a field.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub data: Data,
    /// The external key of the copy.
    #[schema(min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_key: Option<String>,
    /// Whether to convert text to the type of its field.
    #[serde(default)]
    pub typecast: bool,
}

/// The destination of an item.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "collection_id": 2, "dry_run": true }))]
pub struct ItemMove {
    /// The id of the destination collection.
    pub collection_id: CollectionId,
    /// For fields whose values belong in a field with another key: that key. `null` drops the value.
    #[serde(default)]
    pub mapping: BTreeMap<String, Option<String>>,
    /// Whether to report what would happen without moving the item.
    #[serde(default)]
    pub dry_run: bool,
    /// Whether to move the item even if values are lost.
    #[serde(default)]
    pub force: bool,
}

/// A comment on an item.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "body": "The last two are reserved.", "mentions": [], "attachments": [], "version": 1 }))]
pub struct ItemComment {
    /// The id of the comment.
    pub id: CommentId,
    /// Always `item_comment`.
    pub object: &'static str,
    /// The id of the item.
    pub item_id: ItemId,
    /// The id of the first comment of the thread. `null` for that comment itself.
    pub parent_id: Option<CommentId>,
    /// The key of the field that the comment is about. `null` if it is about the item.
    pub field_key: Option<String>,
    /// The text in Markdown. Empty for a deleted comment.
    pub body: String,
    /// The ids of the mentioned users.
    pub mentions: Vec<i64>,
    /// The attached files.
    pub attachments: Vec<FileId>,
    /// Who wrote the comment.
    pub author: Actor,
    /// When the thread was resolved. `null` while it is open, and for replies.
    pub resolved_at: Option<Timestamp>,
    /// When the text was last changed.
    pub edited_at: Option<Timestamp>,
    /// Whether the comment was deleted. It is kept for the order of its thread.
    pub deleted: bool,
    /// The version, incremented with every change.
    pub version: i64,
    /// When the comment was written.
    pub created_at: Timestamp,
    /// When the comment was last changed.
    pub updated_at: Timestamp,
}

/// A file attached to an item.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "manual.pdf", "mime_type": "application/pdf", "size": 48213,
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
}))]
pub struct ItemFile {
    /// The id of the file.
    pub id: FileId,
    /// Always `item_file`.
    pub object: &'static str,
    /// The id of the item.
    pub item_id: ItemId,
    /// The name of the file.
    pub name: String,
    /// The media type, detected from the content.
    pub mime_type: String,
    /// The size in bytes.
    pub size: i64,
    /// The SHA-256 digest of the content, in hexadecimal.
    pub sha256: String,
    /// Who attached the file.
    pub attached_by: Actor,
    /// When the object was attached.
    pub attached_at: Timestamp,
}
