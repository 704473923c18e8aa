//! Network addresses of contacts.

use chatnet::Recipient;
use fields::phone;
use ports::ContactCard;

/// Returns the address of a contact on the network: the telephone number, or else the network's id of the person.
pub fn reach(contact: &ContactCard) -> Option<Recipient> {
    let phone = contact.text("$phone").filter(|phone| !phone.is_empty());
    if let Some(phone) = phone {
        return Some(Recipient::Phone(phone.to_owned()));
    }
    let id = contact.text("$chat_user_id").filter(|id| !id.is_empty())?;
    // Rows from versions up to 0.25 may have a number as the user id, if it is in no numbering plan.
    let number = Some(id).filter(|id| id.starts_with('+')).and_then(phone::of_network);
    Some(number.map_or_else(|| Recipient::UserId(id.to_owned()), Recipient::Phone))
}
