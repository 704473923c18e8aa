//! What fits the trigger of an automation.

use crate::firings::row::FiringReason;
use model::{Chain, ContactId, EventId};
use serde_json::Value;

/// Something that fits the trigger of an automation.
#[derive(Debug, Clone)]
pub(crate) struct Occurrence {
    /// What it is called among all occurrences of the automation: the id of the event, or the slot of a timer.
    pub(crate) key: String,
    pub(crate) event: Option<EventId>,
    /// The type of the event, or that of the trigger.
    pub(crate) kind: String,
    /// `$trigger`.
    pub(crate) payload: Value,
    pub(crate) contact: Option<ContactId>,
    pub(crate) livemode: bool,
    /// The place in the chain of causes of what the occurrence leads to. `None` for what starts a chain.
    pub(crate) chain: Option<Chain>,
    /// Why it cannot fire, as its trigger sees it: it is noted, and nothing is started.
    pub(crate) missed: Option<FiringReason>,
}
