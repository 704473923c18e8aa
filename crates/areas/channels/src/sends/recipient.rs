//! To whom a message goes, and over which channel.

use crate::channels::{self, ChannelRow, ChannelStatus};
use crate::messages::Conversation;
use crate::schema::{channels as table, conversations, message_templates};
use diesel::prelude::*;
use model::{ChannelId, Code, ContactId, Error, Result, WorkspaceId};
use ports::{ChatIdentity, ContactCard, ContactRef, People};
use store::{Read, Tx};

/// How a request names the contact.
#[derive(Debug, Clone, Copy)]
pub(super) struct To<'a> {
    pub(super) contact_id: Option<ContactId>,
    pub(super) phone: Option<&'a str>,
}

impl To<'_> {
    /// The contact. A number that no contact has is that of a new one, unless nothing is to be written: then there is none.
    ///
    /// # Errors
    /// `validation_error` where not exactly one of both is given, or the number is none; `not_found`.
    pub(super) fn contact(
        self,
        tx: &mut Tx,
        people: &People,
        workspace: WorkspaceId,
        dry_run: bool,
    ) -> Result<Option<ContactCard>> {
        match (self.contact_id, self.phone) {
            (Some(id), None) => {
                let found = people.find(tx, workspace, &id.into());
                found.map(Some).map_err(|error| match error.code() {
                    Code::NotFound => error.param("contact_id"),
                    _ => error,
                })
            }
            (None, Some(phone)) => {
                let Ok(named) = format!("phone:{phone}").parse::<ContactRef>();
                match people.find(tx, workspace, &named) {
                    Err(error) if error.code() == Code::NotFound => {}
                    found => return found.map(Some),
                }
                // Contacts have numbers from which they wrote, whether the numbering plan has them or not. For a new one it must.
                let phone = people.phone(tx, workspace, phone).map_err(|error| error.param("to"))?;
                if dry_run {
                    return Ok(None);
                }
                let new = ChatIdentity { phone: Some(phone), ..ChatIdentity::default() };
                people.receive(tx, workspace, &new).map(Some)
            }
            _ => Err(Error::invalid("contact_id", "or `to` is required, and not both")),
        }
    }
}

/// The conversation of a channel with a contact, if there is one.
pub(super) fn conversation(
    read: &mut Read,
    channel: ChannelId,
    contact: ContactId,
) -> Result<Option<Conversation>> {
    let row = conversations::table
        .filter(conversations::contact_id.eq(contact))
        .filter(conversations::channel_id.eq(channel))
        .select(Conversation::as_select())
        .first(read.connection());
    Ok(row.optional()?)
}

/// The channel that is asked for, or the one over which the contact was last spoken to, or the workspace's first.
///
/// # Errors
/// `not_found` with `param` = `channel_id`, `no_channel`.
pub(super) fn channel_for(
    read: &mut Read,
    workspace: WorkspaceId,
    contact: ContactId,
    asked: Option<ChannelId>,
) -> Result<ChannelRow> {
    if let Some(id) = asked {
        return channels::live(read, workspace, id).map_err(|error| error.param("channel_id"));
    }
    let last: Option<ChannelRow> = conversations::table
        .inner_join(table::table.on(table::id.eq(conversations::channel_id)))
        .filter(conversations::contact_id.eq(contact))
        .filter(conversations::workspace_id.eq(workspace))
        .filter(table::status.ne(ChannelStatus::Disabled))
        .order(conversations::last_message_id.desc())
        .select(ChannelRow::as_select())
        .first(read.connection())
        .optional()?;
    if let Some(last) = last {
        return Ok(last);
    }
    first_channel(read, workspace, None)
}

/// The workspace's first channel, if there is one that has a template with this name and language the first of those.
///
/// # Errors
/// `no_channel`.
pub fn first_channel(
    read: &mut Read,
    workspace: WorkspaceId,
    template: Option<(&str, &str)>,
) -> Result<ChannelRow> {
    let channels = table::table
        .filter(table::workspace_id.eq(workspace))
        .filter(table::status.ne(ChannelStatus::Disabled))
        .order(table::id)
        .select(ChannelRow::as_select());
    if let Some((name, language)) = template {
        let having = message_templates::table
            .filter(message_templates::workspace_id.eq(workspace))
            .filter(message_templates::name.eq(name))
            .filter(message_templates::language.eq(language))
            .select(message_templates::channel_id);
        let first = channels.filter(table::id.eq_any(having)).first(read.connection()).optional()?;
        if let Some(first) = first {
            return Ok(first);
        }
    }
    let first: Option<ChannelRow> = channels.first(read.connection()).optional()?;
    let message = "The workspace has no channel over which the contact can be reached.";
    first.ok_or_else(|| Error::new(Code::NoChannel, message))
}
