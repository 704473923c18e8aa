//! Tags of contacts.

use super::model::ContactTag;
use super::operations::{ContactAnswer, change_data, shown};
use crate::record::find::{FindContact, contacts, editor};
use fields::{Data, value};
use model::{Caller, Error, Result};
use operation::{Path, Rows, State, operation};
use ports::ContactRef;
use records::indexes;
use records::rows::ItemRow;
use records::shape::Shapes;
use serde_json::Value;
use store::{Read, Tx};

/// The most tags to list, the most frequent first.
const MOST_LISTED: i64 = 1_000;

/// Tags in use with their counts
///
/// Lists the tags of live contacts, the most frequent first, at most 1,000.
#[operation(get "/contacts/tags", scope = "contacts:read")]
pub fn list_contact_tags(
    read: &mut Read,
    caller: &Caller,
    shapes: State<Shapes>,
) -> Result<Rows<ContactTag>> {
    let shape = contacts(read, &shapes.0, caller)?;
    let counted = indexes::count_words(read, &shape, "$tags", MOST_LISTED)?;
    let tag = |(name, contact_count)| ContactTag { name, object: "contact_tag", contact_count };
    Ok(Rows(counted.into_iter().map(tag).collect()))
}

/// Add a tag
///
/// Upper case becomes lower case. A tag that the contact has already changes nothing.
#[operation(put "/contacts/{contactId}/tags/{tag}", scope = "contacts:write")]
pub fn add_contact_tag(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Path(tag): Path<String>,
    shapes: State<Shapes>,
) -> Result<ContactAnswer> {
    let tag = value::tag(&tag).map_err(|problem| Error::invalid("tag", problem.message))?;
    change_tags(tx, caller, &contact_id, &shapes, |tags| {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    })
}

/// Remove a tag
///
/// A tag that the contact does not have is a 404.
#[operation(delete "/contacts/{contactId}/tags/{tag}", scope = "contacts:write")]
pub fn remove_contact_tag(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Path(tag): Path<String>,
    shapes: State<Shapes>,
) -> Result<ContactAnswer> {
    let tag = value::tag(&tag).map_err(|_| Error::not_found("tag"))?;
    let mut had = false;
    let answer = change_tags(tx, caller, &contact_id, &shapes, |tags| {
        had = tags.contains(&tag);
        tags.retain(|other| *other != tag);
    })?;
    if had { Ok(answer) } else { Err(Error::not_found("tag")) }
}

fn change_tags(
    tx: &mut Tx,
    caller: &Caller,
    contact: &ContactRef,
    shapes: &State<Shapes>,
    change: impl FnOnce(&mut Vec<String>),
) -> Result<ContactAnswer> {
    let editor = editor(tx, &shapes.0, caller)?;
    let row = contact.locked(tx, &editor.shape)?;
    let mut tags = tags_of(&row)?;
    change(&mut tags);
    let data = Data::from_iter([("$tags".to_owned(), Value::from(tags))]);
    let row = change_data(tx, &editor, row, &data)?.row;
    shown(&editor.shape, &row)
}

fn tags_of(row: &ItemRow) -> Result<Vec<String>> {
    let data = row.values()?;
    let tags = data.get("$tags").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Ok(tags.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}
