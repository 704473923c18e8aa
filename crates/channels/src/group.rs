//! What this group adds to the service.

use crate::channels;
use crate::conversations::Conversations;
use crate::messages::ContactMessages;
use crate::quick_replies::{QuickReplyFiles, QuickReplyVariables};
use auth::SealedTable;
use model::Result;
use operation::{Group, Registry};

/// The tables with sealed values.
pub const SEALED: &[&SealedTable] = &[&channels::SEALED];

/// Adds the areas.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn areas(registry: Registry) -> Result<Registry> {
    registry.with::<ContactMessages>()?.with::<Conversations>()
}

/// What the areas need beside their operations.
pub fn group() -> Group {
    Group::default()
        .contact_references(crate::messages::MessageReferences)
        .file_references(QuickReplyFiles)
        .variable_users(QuickReplyVariables)
}
