//! Operations on collections with their fields and views, on items, and on links between items. The record engine
//! does the work.

pub mod collections;
pub mod exports;
mod group;
pub mod imports;
pub mod items;
pub mod links;

pub mod query;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;

pub use group::GROUP;

use operation::{Domain, EventType, Operations};
use records::definitions::FieldEvent;
use records::indexes::IndexEvent;

/// The area of collections: their fields, views and indexes.
pub struct Collections;

impl Domain for Collections {
    const AREA: &'static str = "Collections";
    const ORDER: u16 = 50;
    const DESCRIPTION: &'static str = "Collections are tables of items with their own fields. This area manages collections, their fields, \
         choices, views, groups, indexes and imports.";

    fn operations() -> Operations {
        let mut all = collections::operations();
        all.extend(imports::of_collections());
        all
    }

    fn event_types() -> Vec<EventType> {
        let mut all = EventType::of::<collections::CollectionEvent<'_>>();
        all.extend(EventType::of::<FieldEvent<'_>>());
        all.extend(EventType::of::<collections::views::ViewEvent<'_>>());
        all.extend(EventType::of::<IndexEvent>());
        all
    }
}

/// The area of items.
pub struct Items;

impl Domain for Items {
    const AREA: &'static str = "Items";
    const ORDER: u16 = 60;
    const DESCRIPTION: &'static str = "Items are the records of a collection. List, filter, search and aggregate them, write them one by \
         one or in bulk, and manage their comments, files, locks and trash.";

    fn operations() -> Operations {
        let mut all = query::operations();
        all.extend(items::operations());
        all.extend(imports::of_items());
        all.extend(exports::of_items());
        all
    }

    fn event_types() -> Vec<EventType> {
        let mut all = EventType::of::<items::ItemEvent<'_>>();
        all.extend(EventType::of::<items::CommentEvent>());
        all.extend(EventType::of::<items::FileEvent<'_>>());
        all.extend(EventType::of::<imports::ImportEvent>());
        all
    }
}

/// The area of links from items to other objects.
pub struct ItemLinks;

impl Domain for ItemLinks {
    const AREA: &'static str = "Item Links";
    const ORDER: u16 = 70;
    const DESCRIPTION: &'static str = "Links connect items with other items, files and runs: as values of relation fields, or as free links \
         with a role of your own.";

    fn operations() -> Operations {
        links::operations()
    }

    fn event_types() -> Vec<EventType> {
        EventType::of::<links::LinkEvent<'_>>()
    }
}
