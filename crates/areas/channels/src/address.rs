//! The addresses of contacts on the network.

use chatnet::Recipient;
use fields::phone;
use ports::ContactCard;

/// Where a contact is reached over the network: by its number, or by the network's id of the person.
pub fn reach(contact: &ContactCard) -> Option<Recipient> {
    let phone = contact.text("$phone").filter(|phone| !phone.is_empty());
    if let Some(phone) = phone {
        return Some(Recipient::Phone(phone.to_owned()));
    }
    let id = contact.text("$chat_user_id").filter(|id| !id.is_empty())?;
    // Versions up to 0.25 kept a number that is in no numbering plan as a user id.
    let number = Some(id).filter(|id| id.starts_with('+')).and_then(phone::of_network);
    Some(number.map_or_else(|| Recipient::UserId(id.to_owned()), Recipient::Phone))
}
