//! What this group adds to the service.

use crate::broadcasts::{self, Broadcasts, RecipientReferences};
use crate::channels;
use auth::SealedTable;
use model::Result;
use operation::ports::People;
use operation::{Group, Registry};

/// The tables with sealed values.
pub const SEALED: &[&SealedTable] = &[&channels::SEALED];

/// Adds the areas.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn areas(registry: Registry) -> Result<Registry> {
    registry.with::<Broadcasts>()
}

/// What the areas need beside their operations.
pub fn group(people: &People) -> Group {
    Group::default()
        .contact_references(crate::messages::MessageReferences)
        .contact_references(RecipientReferences)
        .job(broadcasts::job(people))
}
