//! What callers send about items.

use fields::Data;
use fields::value::Mode;
use model::{Actor, CollectionId, CommentId, FileId, ItemId, Patch, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// An item to be created.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewItem {
    /// Its values, by the key of their field. Fields that are not named get their defaults.
    #[schema(value_type = Object)]
    pub data: Data,
    /// A key of your own, unique among the live items of the collection.
    #[schema(min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_key: Option<String>,
    /// Whether text is read as what a field wants: `"12.5"` as a number, a label as its choice. A choice that does not
    /// exist yet is made.
    #[serde(default)]
    pub typecast: bool,
}

/// A change of an item. What is not sent stays as it is.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemPatch {
    /// Values, by the key of their field: only these fields change, and `null` clears one.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub data: Data,
    /// A key of your own, unique among the live items of the collection; `null` removes it.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_key: Patch<String>,
    /// The version that is meant; the change is refused where the item has another by now. `If-Match` says the same.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
    /// Whether text is read as what a field wants. A choice that does not exist yet is made.
    #[serde(default)]
    pub typecast: bool,
}

/// An item's new values.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemReplacement {
    /// All its values, by the key of their field. Fields that are not named lose theirs.
    #[schema(value_type = Object)]
    pub data: Data,
    /// A key of your own, unique among the live items of the collection; `null` removes it, and one that is not sent
    /// stays.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_key: Patch<String>,
    /// The version that is meant; the change is refused where the item has another by now. `If-Match` says the same.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
    /// Whether text is read as what a field wants. A choice that does not exist yet is made.
    #[serde(default)]
    pub typecast: bool,
}

/// How to read one item.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct ItemQuery {
    /// Whether an item in the trash is shown too.
    #[serde(default)]
    #[param(required = false)]
    pub trashed: bool,
}

/// How to delete an item.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct ItemDeletion {
    /// Whether to delete it for good, at once. Otherwise it stays in the trash for 30 days.
    #[serde(default)]
    #[param(required = false)]
    pub permanent: bool,
}

/// How values are read.
pub fn mode(typecast: bool) -> Mode {
    if typecast { Mode::Typecast } else { Mode::Strict }
}

/// A field's new value.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFieldValue {
    /// The value, as the field's type has it; `null` clears the field.
    pub value: Value,
    /// The version that is meant; the change is refused where the item has another by now. `If-Match` says the same.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
    /// Whether text is read as what the field wants.
    #[serde(default)]
    pub typecast: bool,
}

/// Something to add to a number.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Increment {
    /// The key of the field.
    #[schema(min_length = 1, max_length = 63)]
    pub field: String,
    /// What to add; a negative number takes away.
    #[schema(value_type = f64)]
    pub by: Number,
    /// The least that the sum may be, such as 0 for a stock.
    #[serde(default)]
    #[schema(value_type = Option<f64>)]
    pub min: Option<Number>,
    /// The most that the sum may be, such as the seats of a course.
    #[serde(default)]
    #[schema(value_type = Option<f64>)]
    pub max: Option<Number>,
}

/// How to unlock an item.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Unlocking {
    /// Whether to unlock what somebody else locked.
    #[serde(default)]
    pub force: bool,
}

/// Which comments to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct CommentQuery {
    /// Only answers to this comment.
    #[param(value_type = Option<i64>)]
    #[serde(default)]
    pub parent_id: Option<CommentId>,
}

/// A comment to be written.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewComment {
    /// What it says, in Markdown.
    #[schema(min_length = 1, max_length = 10_000, pattern = r"\S")]
    pub body: String,
    /// The comment that it answers, which is the first of its thread.
    #[serde(default)]
    pub parent_id: Option<CommentId>,
    /// The key of the field that it is about.
    #[schema(min_length = 1, max_length = 63)]
    #[serde(default)]
    pub field_key: Option<String>,
    /// The people whom it calls, by their ids.
    #[schema(max_items = 50)]
    #[serde(default)]
    pub mentions: Vec<i64>,
    /// Files that come with it.
    #[schema(max_items = 20)]
    #[serde(default)]
    pub attachments: Vec<FileId>,
}

/// A change of a comment. What is not sent stays as it is.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommentPatch {
    /// What it says.
    #[schema(min_length = 1, max_length = 10_000, pattern = r"\S")]
    #[serde(default)]
    pub body: Option<String>,
    /// The people whom it calls.
    #[schema(max_items = 50)]
    #[serde(default)]
    pub mentions: Option<Vec<i64>>,
    /// Files that come with it.
    #[schema(max_items = 20)]
    #[serde(default)]
    pub attachments: Option<Vec<FileId>>,
    /// Whether the thread that it begins is resolved.
    #[serde(default)]
    pub resolved: Option<bool>,
}

/// A file to be attached.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAttachment {
    /// The file.
    pub file_id: FileId,
}

/// Where an item is to stand: one of the three.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(min_properties = 1, max_properties = 1)]
pub struct ItemPosition {
    /// The item to place it before.
    #[serde(default)]
    #[schema(nullable = false)]
    pub before: Option<ItemId>,
    /// The item to place it after.
    #[serde(default)]
    #[schema(nullable = false)]
    pub after: Option<ItemId>,
    /// Before or behind all others.
    #[serde(default)]
    #[schema(nullable = false)]
    pub position: Option<End>,
}

/// An end of the manual order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Before all others.
    First,
    /// Behind all others.
    Last,
}

/// What is to be different in a copy of an item.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemCopy {
    /// Values that the copy has instead of the item's; `null` clears one.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub data: Data,
    /// The copy's own external key.
    #[schema(min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_key: Option<String>,
    /// Whether text is read as what a field wants.
    #[serde(default)]
    pub typecast: bool,
}

/// Where an item is to be moved.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemMove {
    /// The collection that it is to go to.
    pub collection_id: CollectionId,
    /// For fields whose values are to go to a field with another key: that key; `null` leaves the value out.
    #[serde(default)]
    pub mapping: BTreeMap<String, Option<String>>,
    /// Whether only to tell what would be done.
    #[serde(default)]
    pub dry_run: bool,
    /// Whether to move it even if something is lost.
    #[serde(default)]
    pub force: bool,
}

/// A comment on an item.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ItemComment {
    /// The comment.
    pub id: CommentId,
    /// Always `item_comment`.
    pub object: &'static str,
    /// The item that it is on.
    pub item_id: ItemId,
    /// The comment that it answers; `null` for the first of a thread.
    pub parent_id: Option<CommentId>,
    /// The key of the field that it is about; `null` where it is about the item.
    pub field_key: Option<String>,
    /// What it says, in Markdown. Empty for a deleted comment.
    pub body: String,
    /// The people whom it calls, by their ids.
    pub mentions: Vec<i64>,
    /// The files that come with it.
    pub attachments: Vec<FileId>,
    /// Who wrote it.
    pub author: Actor,
    /// When its thread was resolved; `null` while it is open, and for answers.
    pub resolved_at: Option<Timestamp>,
    /// When what it says was last changed.
    pub edited_at: Option<Timestamp>,
    /// Whether it was deleted. It stays for the sake of its thread.
    pub deleted: bool,
    /// Raised with every change.
    pub version: i64,
    /// When it was written.
    pub created_at: Timestamp,
    /// When anything of it last changed.
    pub updated_at: Timestamp,
}

/// A file that is attached to an item.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ItemFile {
    /// The file.
    pub id: FileId,
    /// Always `item_file`.
    pub object: &'static str,
    /// The item.
    pub item_id: ItemId,
    /// The file's name.
    pub name: String,
    /// What it is, found by looking at its bytes.
    pub mime_type: String,
    /// Its size in bytes.
    pub size: i64,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Who attached it.
    pub attached_by: Actor,
    /// When it was attached.
    pub attached_at: Timestamp,
}
