//! Possible duplicates of a contact.

use crate::record::contact::Contact;
use crate::record::find::{FindContact, contacts};
use crate::record::matching::{LEAST_SCORE, MatchReason, Traits};
use crate::record::print::printed;
use model::{Caller, ContactId, Error, ItemId, Result};
use operation::{OptIn, OptInList, Path, State, operation};
use ports::ContactRef;
use records::search;
use records::shape::Shapes;
use serde::Serialize;
use serde_json::value::RawValue;
use store::Read;
use utoipa::ToSchema;

/// The most contacts to compare with one.
const MOST_COMPARED: usize = 1_000;

/// A contact that may be the same person.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "score": 0.8, "reasons": ["same_phone_variant"] }))]
pub struct ContactDuplicate {
    /// The id of the other contact.
    pub id: ContactId,
    /// Always `contact_duplicate`.
    pub object: &'static str,
    /// How likely both are the same person, from 0.5 to 1.
    pub score: f64,
    /// Why.
    pub reasons: Vec<MatchReason>,
    /// The other contact.
    #[schema(value_type = Contact)]
    pub contact: Box<RawValue>,
}

/// Contacts that may be the same person, with the reason
///
/// Compares the contact with those that have a telephone number, e-mail address, name or company in common with it, at
/// most 1,000, and lists those with a score of at least 0.5 in the order of their ids. To make one contact of two, use
/// `POST /contacts/{contactId}/merge`.
#[operation(get "/contacts/{contactId}/duplicates", scope = "contacts:read", ceiling = 50)]
pub fn list_contact_duplicates(
    read: &mut Read,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    page: OptIn,
    shapes: State<Shapes>,
) -> Result<OptInList<ContactDuplicate>> {
    let shape = contacts(read, &shapes.0, caller)?;
    let contact = contact_id.live(read, &shape)?;
    let after = page.page().after::<ItemId>()?.unwrap_or(ItemId(0));
    let most = usize::try_from(page.page().fetch()).unwrap_or(usize::MAX);
    let values = contact.values()?;
    let traits = Traits::of(&values);
    let mut duplicates = Vec::new();
    for other in search::sharing(read, &shape, &values, MOST_COMPARED)? {
        if other.id <= after || other.id == contact.id || duplicates.len() >= most {
            continue;
        }
        let (score, reasons) = traits.compare(&Traits::of(&other.values()?));
        if score >= LEAST_SCORE {
            let shown = RawValue::from_string(printed(&shape, &other)?).map_err(Error::internal)?;
            let object = "contact_duplicate";
            duplicates.push(ContactDuplicate { id: other.id.into(), object, score, reasons, contact: shown });
        }
    }
    Ok(page.answer(duplicates, |duplicate| duplicate.id.to_string()))
}
