//! The events that the data engine tells.

use crate::items::Item;
use operation::EventType;
use serde_json::{Value, json};

/// A change of an item: the item as it then is, and what changed of it.
pub(crate) fn item_types() -> Vec<EventType> {
    let of = |name, description, changed| {
        let kind = EventType::of::<Item>(name, description, "items:read").about("item", "item.id");
        EventType { schema: around(kind.schema, changed), ..kind }
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
