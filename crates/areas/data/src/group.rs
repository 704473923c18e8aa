//! What collections, items, links, variables and files add to the service.

use crate::files::ItemReferences;
use crate::imports::ItemImports;
use crate::items::ITEMS;
use crate::{Collections, ItemLinks, Items, Media, VariableValues, Variables, collections, variables};
use model::Result;
use operation::{Declarations, Group, Parts, Services};
use ports::{CollectionDirectory, FileReferences, WorkspaceVariables};
use records::shape::{Kind, Shapes};
use std::sync::Arc;
use transfer::imports::Target;

/// Collections, items, links, variables and files.
pub const GROUP: Group = Group { declare, start };

fn declare(declarations: Declarations) -> Result<Declarations> {
    Ok(declarations
        .area::<Collections>()
        .area::<Items>()
        .area::<ItemLinks>()
        .area::<Variables>()
        .area::<Media>()
        .sealed([&variables::SEALED])
        .one_of::<&'static Kind>(&ITEMS)
        .one_of::<Arc<dyn Target>>(Arc::new(ItemImports)))
}

fn start(services: &Services) -> Result<Parts> {
    let shapes = services.get::<Shapes>()?;
    let parts = Parts::default()
        .jobs(collections::jobs(&shapes))
        .service(WorkspaceVariables::new(VariableValues::new(services.get()?)))
        .service(CollectionDirectory::new(collections::CollectionNames(shapes)))
        .one_of::<Arc<dyn FileReferences>>(Arc::new(ItemReferences));
    Ok(parts)
}
