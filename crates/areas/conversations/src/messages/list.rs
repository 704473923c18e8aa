//! The messages of a contact, over all its channels.

use super::model::Message;
use super::print::print;
use super::row::{MessageRow, MessageType};
use crate::schema::messages;
use diesel::prelude::*;
use files::Files;
use model::{Caller, MessageId, Result};
use operation::{Domain, EventType, Operations, OptIn, OptInList, Path, State, operation};
use ports::{ContactRef, People};
use store::Read;

/// What was said to and by contacts. The other operations of the area belong to the group that keeps contacts.
pub struct ContactMessages;

impl Domain for ContactMessages {
    const AREA: &'static str = "Contacts";
    const ORDER: u16 = 160;
    const DESCRIPTION: &'static str = "";

    fn operations() -> Operations {
        vec![Box::new(ListContactMessages)]
    }

    fn event_types() -> Vec<EventType> {
        Vec::new()
    }
}

/// Messages with their attachments and transcripts
///
/// Lists what was said between the contact and the business over all channels, newest first. A reaction is listed under the
/// message to which it belongs.
#[operation(get "/contacts/{contactId}/messages", scope = "contacts:read", ceiling = 100)]
pub fn list_contact_messages(
    read: &mut Read,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    page: OptIn,
    people: State<People>,
    files: State<Files>,
) -> Result<OptInList<Message>> {
    let contact = people.0.find(read, caller.workspace_id(), &contact_id)?;
    let mut query = messages::table
        .filter(messages::contact_id.eq(contact.id))
        .filter(messages::workspace_id.eq(caller.workspace_id()))
        .filter(messages::message_type.ne(MessageType::Reaction))
        .order(messages::id.desc())
        .limit(page.page().fetch())
        .select(MessageRow::as_select())
        .into_boxed();
    if let Some(after) = page.page().after::<MessageId>()? {
        query = query.filter(messages::id.lt(after));
    }
    let rows: Vec<MessageRow> = query.load(read.connection())?;
    let printed = print(read, &files.0, &rows)?;
    Ok(page.answer(printed, |message| message.id.to_string()))
}
