//! The record kind of items, and their events.

use super::item::{self, Item};
use model::Result;
use operation::Event;
use records::Author;
use records::activity::{Action, Changes};
use records::print::Printer;
use records::rows::ItemRow;
use records::shape::{Kind, RecordChange, Shape, Shown};
use serde::ser::Error;
use serde::{Serialize, Serializer};
use store::Tx;
use utoipa::ToSchema;

/// The record kind of items. All their fields belong to the collection.
pub static ITEMS: Kind = Kind {
    number: 0,
    noun: "item",
    set_noun: "collection",
    external_key: "external_key",
    aliases: None,
    referenced_by: None,
    fields: Vec::new,
    param: |key| format!("data.{key}"),
    title: None,
    indexes: &[],
    print: item::print,
    complete: |_, _, _, _| Ok(()),
    match_keys: |_| Vec::new(),
    publish,
};

fn publish(tx: &mut Tx, author: &Author, change: &RecordChange<'_>) -> Result<()> {
    tx.emit(author.workspace, &author.cause, author.livemode, &ItemEvent::of(change))?;
    Ok(())
}

/// An event of an item.
#[derive(Event)]
#[event(scope = "items:read", subject = "item", id = "item.id")]
pub(crate) enum ItemEvent<'a> {
    /// An item was created.
    #[event(name = "item.created")]
    Created(ItemCreated<'a>),
    /// An item was changed. `changed` has the old and new values.
    #[event(name = "item.updated")]
    Updated(ItemChanged<'a>),
    /// An item was moved to the trash.
    #[event(name = "item.trashed")]
    Trashed(ItemChanged<'a>),
    /// An item was restored from the trash.
    #[event(name = "item.restored")]
    Restored(ItemChanged<'a>),
    /// An item was permanently deleted.
    #[event(name = "item.deleted")]
    Deleted(ItemChanged<'a>),
    /// An item was moved to another collection.
    #[event(name = "item.moved")]
    Moved(ItemChanged<'a>),
    /// An item was locked.
    #[event(name = "item.locked")]
    Locked(ItemChanged<'a>),
    /// An item was unlocked.
    #[event(name = "item.unlocked")]
    Unlocked(ItemChanged<'a>),
}

impl<'a> ItemEvent<'a> {
    /// Builds the event of a change.
    fn of(change: &RecordChange<'a>) -> Self {
        let item = StoredItem { shape: change.shape, row: change.row };
        let data = ItemChanged { item, changed: change.changed };
        match change.action {
            Action::Created => Self::Created(ItemCreated { item }),
            Action::Trashed => Self::Trashed(data),
            Action::Restored => Self::Restored(data),
            Action::Deleted => Self::Deleted(data),
            Action::Moved => Self::Moved(data),
            Action::Locked => Self::Locked(data),
            Action::Unlocked => Self::Unlocked(data),
            _ => Self::Updated(data),
        }
    }
}

// A doc comment here would be published as the schema's description; the variants have the text that callers read.
#[derive(Serialize, ToSchema)]
pub(crate) struct ItemCreated<'a> {
    #[schema(value_type = Item, inline)]
    item: StoredItem<'a>,
}

// As above.
#[derive(Serialize, ToSchema)]
pub(crate) struct ItemChanged<'a> {
    #[schema(value_type = Item, inline)]
    item: StoredItem<'a>,
    /// The changes by field, each with `old` and `new`.
    #[schema(value_type = Object)]
    changed: &'a Changes,
}

/// An item whose values are sent as they are stored, without being parsed.
#[derive(Clone, Copy)]
struct StoredItem<'a> {
    shape: &'a Shape,
    row: &'a ItemRow,
}

impl Serialize for StoredItem<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let data = Printer::whole(self.shape).values(self.row).map_err(S::Error::custom)?;
        Item::of(Shown { row: self.row, data: &data, expanded: None }).serialize(serializer)
    }
}
