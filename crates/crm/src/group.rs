//! What this group adds to the service.

use crate::business::Business;
use crate::contacts::Contacts;
use crate::team::Team;
use model::Result;
use operation::{Group, Registry};

/// Adds the areas.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn areas(registry: Registry) -> Result<Registry> {
    registry.with::<Contacts>()?.with::<Team>()?.with::<Business>()
}

/// What the areas need beside their operations.
pub fn group() -> Group {
    Group::default()
}
