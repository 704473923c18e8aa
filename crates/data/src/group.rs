//! What this group adds to the service.

use crate::files::ItemReferences;
use crate::imports::ItemImports;
use crate::{Collections, ItemLinks, Items, Media, Variables, collections, variables};
use auth::SealedTable;
use model::Result;
use operation::{Group, Registry};
use records::shape::Shapes;
use std::sync::Arc;
use transfer::imports::Target;

/// Adds the areas.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn areas(registry: Registry) -> Result<Registry> {
    registry.with::<Collections>()?.with::<Items>()?.with::<ItemLinks>()?.with::<Variables>()?.with::<Media>()
}

/// The tables with sealed values.
pub const SEALED: &[&SealedTable] = &[&variables::SEALED];

/// What imports write items with.
pub fn import_targets() -> Vec<Arc<dyn Target>> {
    vec![Arc::new(ItemImports)]
}

/// Collections, items, links and variables.
pub fn group(shapes: &Arc<Shapes>) -> Group {
    Group::default().jobs(collections::jobs(shapes)).file_references(ItemReferences)
}
