//! Contacts that may be the same person as another.

use super::contact::Contact;
use super::find::{FindContact, contacts};
use super::matching::{LEAST_SCORE, MatchReason, Traits, match_keys};
use super::print::printed;
use super::system_fields::MATCH_KEYS;
use fields::filter::{Condition, Test};
use fields::sort::Sort;
use fields::{Filter, Part, Subject, SystemColumn};
use model::{Caller, ContactId, Error, ItemId, Result};
use operation::ports::ContactRef;
use operation::{OptIn, OptInList, Path, State, operation};
use records::query::{Planner, Query};
use records::rows::ItemRow;
use records::shape::{Shape, Shapes};
use serde::Serialize;
use serde_json::value::RawValue;
use store::Read;
use utoipa::ToSchema;

/// The most contacts that are compared with one.
const MOST_COMPARED: usize = 1_000;

/// So many of them are read at a time.
const PAGE: usize = 200;

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
    planner: State<Planner>,
) -> Result<OptInList<ContactDuplicate>> {
    let shape = contacts(read, &shapes.0, caller)?;
    let contact = contact_id.live(read, &shape)?;
    let after = page.page().after::<ItemId>()?.unwrap_or(ItemId(0));
    let most = usize::try_from(page.page().fetch()).unwrap_or(usize::MAX);
    let values = contact.values()?;
    let traits = Traits::of(&values);
    let mut duplicates = Vec::new();
    for other in sharing(read, &planner.0, &shape, match_keys(&values))? {
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

/// Contacts that share a match key, in the order of their ids.
fn sharing(read: &mut Read, planner: &Planner, shape: &Shape, keys: Vec<String>) -> Result<Vec<ItemRow>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let field = shape.field(MATCH_KEYS).ok_or_else(|| Error::internal("a system field is missing"))?;
    let test = Test::Has(keys.into_iter().map(Into::into).collect());
    let condition = Condition { subject: Subject::Field(field.id), family: field.family(), test };
    let by_id = [Part { subject: Subject::System(SystemColumn::Id), desc: false }];
    let query = Query::new(Filter::One(condition), Sort::of(&by_id), false);
    let (mut rows, mut after) = (Vec::new(), None);
    while rows.len() < MOST_COMPARED {
        let page = query.page(read, planner, shape, after.as_deref(), PAGE)?;
        let is_last = page.found.len() < PAGE;
        after = page.found.last().map(|found| found.place.clone());
        rows.extend(page.found.into_iter().map(|found| found.row));
        if is_last {
            break;
        }
    }
    Ok(rows)
}
