//! The events that the data engine tells.

use crate::collections::Collection;
use crate::collections::views::CollectionView;
use crate::imports::Import;
use crate::items::{ItemComment, ItemFile};
use crate::links::{self, ItemLink};
use model::{CollectionId, ItemId, Scope, schema_of};
use operation::EventType;
use records::definitions::CollectionField;
use records::rows::Item;
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

/// A link was made or removed.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is read; the operations on links write the same field")]
struct LinkTold {
    /// The link.
    link: ItemLink,
}

/// An import ended.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is read; the job writes the same field")]
struct ImportTold {
    /// The import, as it ended.
    import: Import,
}

/// A change of an item: the item as it then is, and what changed of it.
pub(crate) fn item_types() -> Vec<EventType> {
    let of = |name, description, changed| {
        let kind = EventType::untyped(name, description, Scope::ItemsRead, schema_of::<Item>())
            .about("item", "item.id");
        EventType { schema: around(kind.schema, changed), ..kind }
    };
    let comment = |name, description| {
        EventType::untyped(name, description, Scope::ItemsRead, schema_of::<CommentTold>())
            .about("item", "item_id")
    };
    let file = |name, description| {
        EventType::untyped(name, description, Scope::ItemsRead, schema_of::<FileTold>())
            .about("item", "item_id")
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
    .into_iter()
    .chain(import_types())
    .collect()
}

/// Links that were made and removed by the operations on links; values of relation fields are changes of their items.
pub(crate) fn link_types() -> Vec<EventType> {
    let link = |name, description| {
        EventType::untyped(name, description, Scope::ItemsRead, schema_of::<LinkTold>())
            .about("item", "link.from.item_id")
    };
    vec![
        link(links::CREATED, "An item was linked to something."),
        link(links::DELETED, "A link of an item was removed."),
    ]
}

/// Imports that ended.
fn import_types() -> [EventType; 2] {
    let import = |name, description| {
        EventType::untyped(name, description, Scope::ItemsRead, schema_of::<ImportTold>())
            .about("collection", "import.collection_id")
    };
    [
        import("import.completed", "An import has read all its rows, some of which may have failed."),
        import("import.failed", "An import ended before it had read all its rows."),
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

/// A change of a collection, or of its fields and views: the object as callers see it, and what changed of it.
pub(crate) fn collection_types() -> Vec<EventType> {
    let collection = |name, description, changed| {
        let kind = EventType::untyped(name, description, Scope::CollectionsRead, schema_of::<Collection>());
        within(kind, "collection", "collection.id", changed)
    };
    let field = |name, description, changed| {
        let kind =
            EventType::untyped(name, description, Scope::CollectionsRead, schema_of::<CollectionField>());
        within(kind, "field", "collection_id", changed)
    };
    let view = |name, description, changed| {
        let kind =
            EventType::untyped(name, description, Scope::CollectionsRead, schema_of::<CollectionView>());
        within(kind, "view", "collection_id", changed)
    };
    vec![
        collection("collection.created", "A collection was created.", false),
        collection("collection.updated", "A collection was changed, or the order of its fields.", true),
        collection("collection.deleted", "A collection was deleted with its items.", false),
        collection("collection.archived", "A collection was made read-only.", true),
        collection("collection.unarchived", "An archived collection was brought back.", true),
        field("field.created", "A field was added.", false),
        field("field.updated", "A field was changed; values of items may follow in the background.", true),
        field("field.deleted", "A field was deleted with its values.", false),
        view("view.created", "A view was saved.", false),
        view("view.updated", "A view was changed.", true),
        view("view.deleted", "A view was deleted.", false),
        EventType::untyped(
            "index.ready",
            "An index was built; queries use it.",
            Scope::CollectionsRead,
            json!({ "type": "object", "required": ["index"], "properties": { "index": { "type": "object" } } }),
        )
        .about("collection", "index.collection_id"),
    ]
}

/// The type whose data holds `name`, an object of the type's own schema. Order is kept by collection.
fn within(kind: EventType, name: &'static str, path: &'static str, changed: bool) -> EventType {
    let mut own = kind.schema.clone();
    let parts = own.as_object_mut().and_then(|own| own.remove("$defs")).unwrap_or_else(|| json!({}));
    let mut properties = serde_json::Map::from_iter([(name.to_owned(), own)]);
    let mut required = vec![name];
    if name != "collection" {
        properties.insert("collection_id".to_owned(), json!({ "type": "integer" }));
        required.push("collection_id");
    }
    if changed {
        let changes = json!({ "type": "object", "description": "By name: `old` and `new`." });
        properties.insert("changed".to_owned(), changes);
        required.push("changed");
    }
    let schema = json!({ "type": "object", "required": required, "properties": properties, "$defs": parts });
    EventType { schema, ..kind }.about("collection", path)
}
