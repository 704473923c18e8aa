//! Whether a contact can be sent a broadcast at this moment.

use crate::model::BroadcastSkipReason as Skip;
use channels::reach;
use chatnet::{Recipient, TemplateCategory};
use ports::ContactCard;

/// Where a contact is reached.
pub(crate) fn address(card: &ContactCard) -> Option<String> {
    let (Recipient::Phone(address) | Recipient::UserId(address)) = reach(card)?;
    Some(address)
}

/// Why nothing of a category may be sent to a contact, whatever the message.
pub(crate) fn refusal(card: &ContactCard, category: TemplateCategory) -> Option<Skip> {
    if card.is_blocked {
        Some(Skip::Blocked)
    } else if category == TemplateCategory::Marketing && card.is_opted_out {
        Some(Skip::OptedOut)
    } else if reach(card).is_none() {
        Some(Skip::NoAddress)
    } else {
        None
    }
}
