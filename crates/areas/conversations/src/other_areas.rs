//! The other areas that messages concern.

use crate::messages::BroadcastRecipients;
use ports::{MessageTakers, People};
use std::sync::Arc;

/// The other areas that messages concern: what changes messages calls them in the same transaction.
#[derive(Clone)]
pub struct OtherAreas {
    /// The contacts.
    pub people: People,
    /// The recipients of broadcasts.
    pub broadcasts: Arc<dyn BroadcastRecipients>,
    /// Who takes messages before an agent answers.
    pub takers: MessageTakers,
}
