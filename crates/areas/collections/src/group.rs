//! Declares the group of collections, items and links.

use crate::imports::ItemImports;
use crate::items::{ITEMS, ItemReferences};
use crate::query::DatedItems;
use crate::{Collections, ItemLinks, Items, collections};
use model::Result;
use operation::{Declarations, Group, Parts, Services};
use ports::{CollectionDirectory, DatedRecords, FileReferences};
use records::shape::{Kind, Shapes};
use std::sync::Arc;
use transfer::imports::Target;

/// The group of collections: the areas Collections, Items and Item Links, with their jobs and ports.
pub const GROUP: Group = Group { declare, start };

fn declare(declarations: Declarations) -> Result<Declarations> {
    Ok(declarations
        .area::<Collections>()
        .area::<Items>()
        .area::<ItemLinks>()
        .one_of::<&'static Kind>(&ITEMS)
        .one_of::<Arc<dyn Target>>(Arc::new(ItemImports)))
}

fn start(services: &Services) -> Result<Parts> {
    let shapes = services.get::<Shapes>()?;
    let parts = Parts::default()
        .jobs(collections::jobs(&shapes))
        .one_of::<Arc<dyn DatedRecords>>(Arc::new(DatedItems {
            shapes: shapes.clone(),
            planner: services.get()?,
        }))
        .service(CollectionDirectory::new(collections::CollectionNames(shapes)))
        .one_of::<Arc<dyn FileReferences>>(Arc::new(ItemReferences));
    Ok(parts)
}
