//! A conversation as it is stored: one for each channel and contact.

use crate::schema::conversations;
use diesel::prelude::*;
use model::{
    ChannelId, ContactId, ConversationId, Error, MessageId, Result, RunId, Timestamp, WorkspaceId, text_enum,
};
use std::collections::HashSet;
use store::{OnConflict, Read, Rows, Tx, for_no_key_update};

/// How long free messages may follow a contact's last message. At exactly this time the window is closed.
pub(crate) const WINDOW_SECONDS: i64 = 24 * 3_600;

text_enum! {
    /// The status of a conversation.
    pub enum ConversationStatus {
        /// Neither closed nor snoozed.
        Open = "open",
        /// Hidden until `snoozed_until`, or until the contact writes.
        Snoozed = "snoozed",
        /// Done. It opens again when the contact writes.
        Closed = "closed",
    }
}

/// A conversation as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = conversations)]
pub struct Conversation {
    /// The id.
    pub id: ConversationId,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The channel.
    pub channel_id: ChannelId,
    /// The contact.
    pub contact_id: ContactId,
    /// The status.
    pub status: ConversationStatus,
    /// How many messages of the contact are unread.
    pub unread_count: i64,
    /// The newest message; 0 before the first.
    pub last_message_id: MessageId,
    /// When the newest message was written.
    pub last_message_at: Timestamp,
    /// When the contact last wrote, by the network's clock.
    pub last_inbound_at: Option<Timestamp>,
    /// When the business last wrote.
    pub last_outbound_at: Option<Timestamp>,
    /// When the business first answered.
    pub first_reply_at: Option<Timestamp>,
    /// Until when it is snoozed.
    pub snoozed_until: Option<Timestamp>,
    /// When it was closed.
    pub closed_at: Option<Timestamp>,
    /// Why it was closed.
    pub close_reason: Option<String>,
    /// When the contact began to write what is to be answered.
    pub reply_since: Option<Timestamp>,
    /// When the agent is to answer.
    pub reply_due_at: Option<Timestamp>,
    /// The contact's epoch when `reply_run_id` began.
    pub reply_epoch: Option<i64>,
    /// The run that answers.
    pub reply_run_id: Option<RunId>,
    /// The last message that `reply_run_id` answers.
    pub reply_run_upto: Option<MessageId>,
    /// The last message that was answered, or is not to be.
    pub reply_upto: MessageId,
    /// Rises with each change.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Conversation {
    /// When the window for free messages closes or closed. `None` where the contact never wrote.
    pub fn window_expires_at(&self) -> Option<Timestamp> {
        self.last_inbound_at.map(|at| at.plus_seconds(WINDOW_SECONDS))
    }

    /// Whether free messages are allowed at this moment.
    pub fn is_open_at(&self, now: Timestamp) -> bool {
        self.window_expires_at().is_some_and(|end| now < end)
    }

    /// Returns the conversation of a channel with a contact, if there is one.
    pub fn find(read: &mut Read, channel: ChannelId, contact: ContactId) -> Result<Option<Self>> {
        let row = conversations::table
            .filter(conversations::contact_id.eq(contact))
            .filter(conversations::channel_id.eq(channel))
            .select(Self::as_select())
            .first(read.connection());
        Ok(row.optional()?)
    }

    /// Returns the channels of the conversations with a contact, the one with the newest message first.
    pub fn channels_of(
        read: &mut Read,
        workspace: WorkspaceId,
        contact: ContactId,
    ) -> Result<Vec<ChannelId>> {
        Ok(conversations::table
            .filter(conversations::contact_id.eq(contact))
            .filter(conversations::workspace_id.eq(workspace))
            .order(conversations::last_message_id.desc())
            .select(conversations::channel_id)
            .load(read.connection())?)
    }

    /// The conversation of a channel with a contact, locked; made where there is none.
    pub fn of(tx: &mut Tx, workspace: WorkspaceId, channel: ChannelId, contact: ContactId) -> Result<Self> {
        let all = Self::of_all(tx, workspace, channel, &[contact])?;
        all.into_iter().next().ok_or_else(|| Error::internal("a contact has no conversation"))
    }

    /// The conversations of a channel with contacts, which are in the order of their ids and each named once; locked and given
    /// in this order, and made where there are none. As many as one statement can name.
    pub fn of_all(
        tx: &mut Tx,
        workspace: WorkspaceId,
        channel: ChannelId,
        contacts: &[ContactId],
    ) -> Result<Vec<Self>> {
        let there = Self::locked(tx, channel, contacts)?;
        if there.len() == contacts.len() {
            return Ok(there);
        }
        let known: HashSet<ContactId> = there.iter().map(|conversation| conversation.contact_id).collect();
        let missing: Vec<ContactId> = contacts.iter().filter(|id| !known.contains(id)).copied().collect();
        Self::make(tx, workspace, channel, &missing)?;
        let all = Self::locked(tx, channel, contacts)?;
        if all.len() < contacts.len() {
            return Err(Error::internal("a conversation that was made is not there"));
        }
        Ok(all)
    }

    /// Makes conversations that another transaction may be making too.
    fn make(tx: &mut Tx, workspace: WorkspaceId, channel: ChannelId, contacts: &[ContactId]) -> Result<()> {
        let now = tx.now();
        Rows::of(contacts)
            .big_int("workspace_id", |_| workspace)
            .big_int("channel_id", |_| channel)
            .big_int("contact_id", |contact| *contact)
            .text("status", |_| ConversationStatus::Open)
            .big_int("unread_count", |_| 0)
            .big_int("last_message_id", |_| MessageId(0))
            .time("last_message_at", |_| now)
            .big_int("reply_upto", |_| MessageId(0))
            .big_int("version", |_| 1)
            .time("created_at", |_| now)
            .time("updated_at", |_| now)
            .insert_or(tx, "conversations", OnConflict::Ignore)?;
        Ok(())
    }

    /// Those that are there, locked in the order of their contacts.
    fn locked(tx: &mut Tx, channel: ChannelId, contacts: &[ContactId]) -> Result<Vec<Self>> {
        let rows = conversations::table
            .filter(conversations::contact_id.eq_any(contacts))
            .filter(conversations::channel_id.eq(channel))
            .order(conversations::contact_id);
        // Messages refer to them, and stronger locks would keep those from being written down.
        Ok(for_no_key_update(rows.select(Self::as_select())).load(tx.connection())?)
    }
}
