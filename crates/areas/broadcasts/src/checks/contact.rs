//! Checks whether a contact can receive a broadcast at this moment.

use crate::model::BroadcastSkipReason as Skip;
use channels::reach;
use chatnet::{Recipient, TemplateCategory};
use ports::ContactCard;

/// Returns the address of a contact.
pub(crate) fn address(card: &ContactCard) -> Option<String> {
    let (Recipient::Phone(address) | Recipient::UserId(address)) = reach(card)?;
    Some(address)
}

/// Returns the reason why a contact must not receive messages of this category.
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
