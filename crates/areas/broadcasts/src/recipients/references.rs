//! The references of broadcasts to files and to contacts.
//!
//! Recipients move along when a contact is merged into another one, and lose their data when a contact is deleted.

use crate::model::{
    BroadcastAudience, BroadcastRecipientState as State, BroadcastSkipReason as Skip, BroadcastStatus,
    BroadcastTemplate,
};
use crate::recipients::withdraw::set_state;
use crate::schema::{broadcast_recipients, broadcasts};
use conversations::messages;
use diesel::prelude::*;
use model::{BroadcastId, ContactId, FileId, JsonText, MessageId, Result, WorkspaceId};
use ports::{ContactReferences, FileReferences, FileUse, Left};
use store::{Read, Tx};

/// Broadcasts as users of files, which they send or which list their audience.
pub(crate) struct BroadcastFiles;

impl FileReferences for BroadcastFiles {
    fn uses(&self, read: &mut Read, workspace: WorkspaceId, file: FileId, most: i64) -> Result<Vec<FileUse>> {
        let over = [BroadcastStatus::Completed, BroadcastStatus::Cancelling, BroadcastStatus::Cancelled];
        let sent = broadcasts::template.like(format!("%\"media\":{file}%"));
        let listing = broadcasts::audience.like(format!("%\"file_id\":{file}%"));
        let named: Vec<(BroadcastId, Option<JsonText>, Option<JsonText>)> = broadcasts::table
            .filter(broadcasts::workspace_id.eq(workspace))
            .filter(broadcasts::status.ne_all(over))
            .filter(sent.or(listing))
            .order(broadcasts::id)
            .select((broadcasts::id, broadcasts::template, broadcasts::audience))
            .load(read.connection())?;
        let is_needed = |template: Option<JsonText>, audience: Option<JsonText>| {
            let sent = template.and_then(|template| template.parse::<BroadcastTemplate>().ok()?.media);
            let listing = audience.and_then(|audience| audience.parse::<BroadcastAudience>().ok()?.file_id);
            sent == Some(file) || listing == Some(file)
        };
        let using = named
            .into_iter()
            .filter_map(|(id, template, audience)| is_needed(template, audience).then_some(id));
        let most = usize::try_from(most).unwrap_or_default();
        Ok(using.take(most).map(|id| FileUse { r#type: "broadcast", id: id.to_string() }).collect())
    }
}

/// Recipients as references to contacts.
pub(crate) struct RecipientReferences;

impl ContactReferences for RecipientReferences {
    fn tables(&self) -> &'static [&'static str] {
        &["broadcast_recipients"]
    }

    /// Moves the recipients of a merged contact to its survivor. If both are recipients of a broadcast, both rows
    /// remain, but they are one person: the merged contact gets no further message, and neither does the survivor if
    /// the merged contact has been sent one. If messages to both wait in the outbox, the one to the merged contact is
    /// withdrawn; it has moved to the conversation of the survivor.
    fn replace(&self, tx: &mut Tx, workspace: WorkspaceId, from: ContactId, to: ContactId) -> Result<()> {
        let now = tx.now();
        let of = |contact: ContactId| {
            broadcast_recipients::table
                .filter(broadcast_recipients::contact_id.eq(contact))
                .filter(broadcast_recipients::workspace_id.eq(workspace))
        };
        let moving: Vec<BroadcastId> =
            of(from).select(broadcast_recipients::broadcast_id).load(tx.connection())?;
        if moving.is_empty() {
            return Ok(());
        }
        let both: Vec<BroadcastId> = of(to)
            .filter(broadcast_recipients::broadcast_id.eq_any(&moving))
            .select(broadcast_recipients::broadcast_id)
            .load(tx.connection())?;
        let written_to = |contact: ContactId| {
            of(contact)
                .filter(broadcast_recipients::broadcast_id.eq_any(&both))
                .filter(broadcast_recipients::state.eq_any(WRITTEN))
                .select(broadcast_recipients::broadcast_id)
        };
        let twice: Vec<BroadcastId> = written_to(to).load(tx.connection())?;
        withdraw(tx, from, &twice)?;
        let written: Vec<BroadcastId> = written_to(from).load(tx.connection())?;
        skip(tx, from, &both)?;
        skip(tx, to, &written)?;
        diesel::update(of(from))
            .filter(broadcast_recipients::broadcast_id.ne_all(&both))
            .set((broadcast_recipients::contact_id.eq(to), broadcast_recipients::updated_at.eq(now)))
            .execute(tx.connection())?;
        Ok(())
    }

    fn forget(&self, tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<Left> {
        diesel::update(broadcast_recipients::table)
            .filter(broadcast_recipients::contact_id.eq(contact))
            .filter(broadcast_recipients::workspace_id.eq(workspace))
            .set((
                broadcast_recipients::address.eq(None::<String>),
                broadcast_recipients::params.eq(None::<JsonText>),
                broadcast_recipients::updated_at.eq(tx.now()),
            ))
            .execute(tx.connection())?;
        Ok(Left::Nothing)
    }
}

/// The states of a recipient that may have received a message.
const WRITTEN: [State; 5] = [State::Claimed, State::Sent, State::Delivered, State::Read, State::Unknown];

/// Withdraws the messages to a contact that wait in the outbox, and makes the recipients pending again.
fn withdraw(tx: &mut Tx, contact: ContactId, broadcasts: &[BroadcastId]) -> Result<()> {
    let claimed: Vec<Option<MessageId>> = broadcast_recipients::table
        .filter(broadcast_recipients::contact_id.eq(contact))
        .filter(broadcast_recipients::broadcast_id.eq_any(broadcasts))
        .filter(broadcast_recipients::state.eq(State::Claimed))
        .select(broadcast_recipients::message_id)
        .load(tx.connection())?;
    let claimed: Vec<MessageId> = claimed.into_iter().flatten().collect();
    let waiting = messages::withdraw(tx, &claimed)?;
    set_state(tx, &waiting, State::Pending)
}

/// Skips the pending recipients of a contact, and cancels their withdrawn messages.
fn skip(tx: &mut Tx, contact: ContactId, broadcasts: &[BroadcastId]) -> Result<()> {
    let unsent = || {
        broadcast_recipients::table
            .filter(broadcast_recipients::contact_id.eq(contact))
            .filter(broadcast_recipients::broadcast_id.eq_any(broadcasts))
            .filter(broadcast_recipients::state.eq(State::Pending))
    };
    let waiting: Vec<Option<MessageId>> =
        unsent().select(broadcast_recipients::message_id).load(tx.connection())?;
    messages::cancel(tx, &waiting.into_iter().flatten().collect::<Vec<_>>())?;
    let now = tx.now();
    diesel::update(unsent())
        .set((
            broadcast_recipients::state.eq(State::Skipped),
            broadcast_recipients::skip_reason.eq(Skip::Merged),
            broadcast_recipients::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}
