//! The record kind of items, and their events.

use super::item::{self, Item};
use model::{Error, JsonText, Result};
use operation::Event;
use records::Author;
use records::activity::{Action, Changes};
use records::print::Printer;
use records::rows::ItemRow;
use records::shape::{Kind, RecordChange, Shape};
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
    print: |_, row, data, out| item::print(row, data, out),
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
#[event(scope = "items:read", subject = "item", id = "item.id", print_with = "ItemChanged::print")]
pub(crate) enum ItemEvent<'a> {
    /// An item was created.
    #[event(name = "item.created", print_with = "ItemCreated::print")]
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
#[derive(ToSchema)]
pub(crate) struct ItemCreated<'a> {
    #[schema(value_type = Item, inline)]
    item: StoredItem<'a>,
}

impl ItemCreated<'_> {
    fn print(&self) -> Result<JsonText> {
        let mut data = self.item.printed()?;
        data.push('}');
        Ok(JsonText::printed(data))
    }
}

// As above.
#[derive(ToSchema)]
pub(crate) struct ItemChanged<'a> {
    #[schema(value_type = Item, inline)]
    item: StoredItem<'a>,
    /// The changes by field, each with `old` and `new`.
    #[schema(value_type = Object)]
    changed: &'a Changes,
}

impl ItemChanged<'_> {
    fn print(&self) -> Result<JsonText> {
        let mut data = self.item.printed()?;
        data.push_str(r#","changed":"#);
        data.push_str(&serde_json::to_string(self.changed).map_err(Error::internal)?);
        data.push('}');
        Ok(JsonText::printed(data))
    }
}

/// An item as it is stored. Its values are printed without parsing.
#[derive(Clone, Copy)]
struct StoredItem<'a> {
    shape: &'a Shape,
    row: &'a ItemRow,
}

impl StoredItem<'_> {
    /// Prints the event's data up to the end of the item; the caller appends further members.
    fn printed(&self) -> Result<String> {
        let mut data = String::with_capacity(self.row.data.as_str().len() + 1024);
        data.push_str(r#"{"item":"#);
        Printer::whole(self.shape).print(self.row, &mut data)?;
        Ok(data)
    }
}
