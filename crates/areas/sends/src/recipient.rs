//! To whom a message goes, and over which channel.

use channels::ChannelRow;
use conversations::messages::Conversation;
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
    let spoken_over = Conversation::channels_of(read, workspace, contact)?;
    let enabled = channels::enabled(read, &spoken_over)?;
    let last = spoken_over.iter().find_map(|id| enabled.iter().find(|channel| channel.id == *id));
    if let Some(last) = last {
        return Ok(last.clone());
    }
    channels::first(read, workspace, None)
}
