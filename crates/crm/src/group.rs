//! What this group adds to the service.

use crate::business::Business;
use crate::contacts::Contacts;
use crate::tasks::{TaskFileReferences, TaskTargets, TaskWork, Tasks};
use crate::team::Team;
use model::Result;
use operation::{Group, Registry};
use records::shape::Shapes;
use std::sync::Arc;

/// Adds the areas.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn areas(registry: Registry) -> Result<Registry> {
    registry.with::<Contacts>()?.with::<Tasks>()?.with::<Team>()?.with::<Business>()
}

/// What the areas need beside their operations.
pub fn group(shapes: &Arc<Shapes>) -> Group {
    Group::default()
        .open_work(TaskWork)
        .link_target(TaskTargets(shapes.clone()))
        .file_references(TaskFileReferences)
}
