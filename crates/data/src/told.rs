//! The events that the data engine tells.

use crate::items::{Item, ItemComment, ItemFile};
use model::{CollectionId, ItemId};
use operation::EventType;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// A comment on an item was written, changed or deleted.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is read; the operations on comments write the same fields")]
struct CommentTold {
    /// The comment, as it then is.
    comment: ItemComment,
    /// The item.
    item_id: ItemId,
    /// Its collection.
    collection_id: CollectionId,
}

/// A file was attached to an item, or detached.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is read; the operations on files write the same fields")]
struct FileTold {
    /// The file.
    file: ItemFile,
    /// The item.
    item_id: ItemId,
    /// Its collection.
    collection_id: CollectionId,
}

/// A change of an item: the item as it then is, and what changed of it.
pub(crate) fn item_types() -> Vec<EventType> {
    let of = |name, description, changed| {
        let kind = EventType::of::<Item>(name, description, "items:read").about("item", "item.id");
        EventType { schema: around(kind.schema, changed), ..kind }
    };
    let comment = |name, description| {
        EventType::of::<CommentTold>(name, description, "items:read").about("item", "item_id")
    };
    let file = |name, description| {
        EventType::of::<FileTold>(name, description, "items:read").about("item", "item_id")
    };
    vec![
        of("item.created", "An item was created.", false),
        of("item.updated", "An item was changed; `changed` has the old and the new values.", true),
        of("item.trashed", "An item was put into the trash.", true),
        of("item.restored", "An item was taken out of the trash.", true),
        of("item.deleted", "An item was deleted for good.", true),
        of("item.moved", "An item was moved to another collection.", true),
        of("item.locked", "An item was locked.", true),
        of("item.unlocked", "An item was unlocked.", true),
        comment("item.comment.created", "Somebody commented on an item."),
        comment("item.comment.updated", "A comment was changed, or its thread resolved or reopened."),
        comment("item.comment.deleted", "A comment was deleted; what it said is gone."),
        file("item.file.attached", "A file was attached to an item."),
        file("item.file.detached", "A file was detached from an item."),
    ]
}

/// The schema of data that holds an item.
fn around(mut item: Value, changed: bool) -> Value {
    let parts = item.as_object_mut().and_then(|item| item.remove("$defs")).unwrap_or_else(|| json!({}));
    let changes = json!({ "type": "object", "description": "By field: `old` and `new`." });
    if changed {
        let properties = json!({ "item": item, "changed": changes });
        json!({ "type": "object", "required": ["item", "changed"], "properties": properties, "$defs": parts })
    } else {
        json!({ "type": "object", "required": ["item"], "properties": { "item": item }, "$defs": parts })
    }
}
