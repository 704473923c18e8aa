//! What the parts of callbacks are applied with.

use crate::other_areas::OtherAreas;
use channels::{ChannelRow, ChannelSettings};
use chatnet::Party;
use ports::{ChatIdentity, FileUses};

/// What the parts of callbacks are applied with.
pub(crate) struct UpdateContext<'a> {
    pub(crate) channel: &'a ChannelRow,
    pub(crate) settings: &'a ChannelSettings,
    pub(crate) areas: &'a OtherAreas,
    /// What refers to files.
    pub(crate) file_uses: &'a FileUses,
    /// Whether voice notes can be transcribed.
    pub(crate) transcribes: bool,
}

/// A person of the network, for the contacts.
pub(super) fn identity(party: &Party) -> ChatIdentity {
    ChatIdentity {
        user_id: party.user_id.clone(),
        phone: party.phone.clone(),
        username: party.username.clone(),
        name: party.name.clone(),
    }
}
