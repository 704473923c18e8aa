//! Writing messages: each is one row, the newest of its conversation, and, where it is to be sent, a row of the outbox in
//! the same transaction.

use super::conversation::{Conversation, ConversationStatus};
use super::row::{MessageDirection, MessageRow, MessageSenderType, MessageStatus, MessageType, Sender};
use crate::schema::{conversations, message_attachments, message_outbox, messages};
use chatnet::MediaKind;
use diesel::prelude::*;
use model::{
    BroadcastId, Chain, ChannelId, ContactId, ConversationId, FileId, JsonText, MessageId, Result, RunId,
    Timestamp, WorkspaceId, text_enum,
};
use std::collections::HashSet;
use store::Tx;

/// What is sent before what: answers to people are not to wait for a broadcast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// Answers, and all other messages that somebody waits for.
    Live = 0,
    /// Messages of broadcasts.
    Broadcast = 1,
}

text_enum! {
    /// Whether a file of a message can be read.
    pub enum AttachmentStatus {
        /// The file is being read from the network.
        Pending = "pending",
        /// The file can be read.
        Ready = "ready",
        /// The file could not be read.
        Failed = "failed",
        /// The file was deleted when the time was over for which the business keeps files.
        Expired = "expired",
    }
}

text_enum! {
    /// Whether there is a transcript of a voice note.
    pub enum TranscriptStatus {
        /// It is being made.
        Pending = "pending",
        /// It is there.
        Ready = "ready",
        /// It could not be made.
        Failed = "failed",
        /// None is made: the file is no voice note, or the service has no transcriber.
        None = "none",
    }
}

/// A message to write.
#[derive(Debug, Clone)]
pub(crate) struct NewMessage {
    pub(crate) direction: MessageDirection,
    pub(crate) sender: Sender,
    pub(crate) message_type: MessageType,
    pub(crate) content: String,
    pub(crate) detail: Option<JsonText>,
    pub(crate) reply_to: Option<MessageId>,
    /// `None` for what contacts wrote.
    pub(crate) status: Option<MessageStatus>,
    pub(crate) client_key: Option<String>,
    pub(crate) provider_message_id: Option<String>,
    pub(crate) provider_at: Option<Timestamp>,
    pub(crate) run_id: Option<RunId>,
    pub(crate) broadcast_id: Option<BroadcastId>,
    pub(crate) attachment: Option<NewAttachment>,
    pub(crate) chain: Option<Chain>,
}

/// A file of a message.
#[derive(Debug, Clone)]
pub struct NewAttachment {
    /// What it is.
    pub kind: MediaKind,
    /// Where the file is ours already.
    pub file: Option<FileId>,
    /// Where it is to be read from the network.
    pub provider_media_id: Option<String>,
    /// Its MIME type.
    pub mime_type: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Whether it is a voice note.
    pub is_voice: bool,
    /// Whether a transcript is to be made.
    pub transcribe: bool,
}

/// A message that is to be sent.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The type of message.
    pub message_type: MessageType,
    /// What people read.
    pub content: String,
    /// A [`Detail`](super::detail::Detail) without which the type cannot be sent.
    pub detail: Option<JsonText>,
    /// Who sends it.
    pub sender: Sender,
    /// The message to which it replies or reacts.
    pub reply_to: Option<MessageId>,
    /// Names the send among all of its workspace: a second message with the key is refused by the database.
    pub client_key: Option<String>,
    /// The run whose answer it is.
    pub run_id: Option<RunId>,
    /// The broadcast that sends it.
    pub broadcast_id: Option<BroadcastId>,
    /// The file.
    pub attachment: Option<NewAttachment>,
    /// Its place in a chain of causes. `None` if nothing led to it.
    pub chain: Option<Chain>,
    /// What is sent before what.
    pub priority: Priority,
    /// When it is no longer sent.
    pub expires_at: Timestamp,
}

impl Outgoing {
    pub(super) fn into_message(self) -> NewMessage {
        NewMessage {
            direction: MessageDirection::Outbound,
            sender: self.sender,
            message_type: self.message_type,
            content: self.content,
            detail: self.detail,
            reply_to: self.reply_to,
            status: Some(MessageStatus::Queued),
            client_key: self.client_key,
            provider_message_id: None,
            provider_at: None,
            run_id: self.run_id,
            broadcast_id: self.broadcast_id,
            attachment: self.attachment,
            chain: self.chain,
        }
    }
}

/// A message as it is inserted.
#[derive(Insertable)]
#[diesel(table_name = messages)]
pub(super) struct NewRow<'a> {
    workspace_id: WorkspaceId,
    conversation_id: ConversationId,
    channel_id: ChannelId,
    contact_id: ContactId,
    direction: MessageDirection,
    sender_type: MessageSenderType,
    sender_id: Option<&'a str>,
    message_type: MessageType,
    content: &'a str,
    detail: Option<&'a JsonText>,
    reply_to_id: Option<MessageId>,
    status: Option<MessageStatus>,
    status_rank: i64,
    attempt: i64,
    client_key: Option<&'a str>,
    provider_message_id: Option<&'a str>,
    provider_at: Option<Timestamp>,
    run_id: Option<&'a RunId>,
    broadcast_id: Option<BroadcastId>,
    created_at: Timestamp,
    updated_at: Timestamp,
    chain: Option<JsonText>,
}

impl<'a> NewRow<'a> {
    pub(super) fn of(conversation: &Conversation, new: &'a NewMessage, now: Timestamp) -> Self {
        Self {
            workspace_id: conversation.workspace_id,
            conversation_id: conversation.id,
            channel_id: conversation.channel_id,
            contact_id: conversation.contact_id,
            direction: new.direction,
            sender_type: new.sender.kind,
            sender_id: new.sender.id.as_deref(),
            message_type: new.message_type,
            content: &new.content,
            detail: new.detail.as_ref(),
            reply_to_id: new.reply_to,
            status: new.status,
            status_rank: new.status.map_or(0, MessageStatus::rank),
            attempt: 1,
            client_key: new.client_key.as_deref(),
            provider_message_id: new.provider_message_id.as_deref(),
            provider_at: new.provider_at,
            run_id: new.run_id.as_ref(),
            broadcast_id: new.broadcast_id,
            created_at: now,
            updated_at: now,
            chain: new.chain.as_ref().map(JsonText::of),
        }
    }
}

/// Writes a message that is to be sent. The conversation is locked, or of this transaction.
pub fn enqueue(tx: &mut Tx, conversation: &Conversation, out: Outgoing) -> Result<MessageRow> {
    let (priority, expires_at) = (out.priority, out.expires_at);
    let row = write(tx, conversation, out.into_message())?;
    put_into_outbox(tx, &row, priority, expires_at)?;
    Ok(row)
}

/// Puts a message that is stored into the outbox.
pub(crate) fn put_into_outbox(
    tx: &mut Tx,
    row: &MessageRow,
    priority: Priority,
    expires_at: Timestamp,
) -> Result<()> {
    diesel::insert_into(message_outbox::table)
        .values((
            message_outbox::message_id.eq(row.id),
            message_outbox::channel_id.eq(row.channel_id),
            message_outbox::conversation_id.eq(row.conversation_id),
            message_outbox::priority.eq(priority as i64),
            message_outbox::due_at.eq(tx.now()),
            message_outbox::expires_at.eq(expires_at),
            message_outbox::attempts.eq(0),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Writes a message and makes it the newest of its conversation, which is locked, or of this transaction.
pub(crate) fn write(tx: &mut Tx, conversation: &Conversation, new: NewMessage) -> Result<MessageRow> {
    let row: MessageRow = diesel::insert_into(messages::table)
        .values(NewRow::of(conversation, &new, tx.now()))
        .returning(messages::all_columns)
        .get_result(tx.connection())?;
    if let Some(attachment) = &new.attachment {
        attach(tx, &row, attachment)?;
    }
    touch(tx, conversation, &row)?;
    super::terms::index(tx, std::slice::from_ref(&row))?;
    Ok(row)
}

pub(super) fn attach(tx: &mut Tx, row: &MessageRow, new: &NewAttachment) -> Result<()> {
    let now = tx.now();
    let is_here = new.file.is_some();
    let status = if is_here { AttachmentStatus::Ready } else { AttachmentStatus::Pending };
    let transcript = if new.transcribe { TranscriptStatus::Pending } else { TranscriptStatus::None };
    diesel::insert_into(message_attachments::table)
        .values((
            message_attachments::workspace_id.eq(row.workspace_id),
            message_attachments::message_id.eq(row.id),
            message_attachments::contact_id.eq(row.contact_id),
            message_attachments::media_type.eq(new.kind),
            message_attachments::status.eq(status),
            message_attachments::file_id.eq(new.file),
            message_attachments::provider_media_id.eq(&new.provider_media_id),
            message_attachments::mime_type.eq(&new.mime_type),
            message_attachments::name.eq(&new.name),
            message_attachments::is_voice.eq(new.is_voice),
            message_attachments::transcript_status.eq(transcript),
            message_attachments::attempts.eq(0),
            message_attachments::next_attempt_at.eq((!is_here).then_some(now)),
            message_attachments::created_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Makes a message the newest of its conversation. What a contact writes opens the conversation and counts as unread, and
/// what it is answered counts as read.
fn touch(tx: &mut Tx, conversation: &Conversation, row: &MessageRow) -> Result<()> {
    let now = tx.now();
    let of = conversations::table.find(conversation.id);
    let newest = (
        conversations::last_message_id.eq(row.id),
        conversations::last_message_at.eq(now),
        conversations::version.eq(conversations::version + 1),
        conversations::updated_at.eq(now),
    );
    match row.direction {
        MessageDirection::Inbound => {
            let last = last_inbound_at(conversation, row, now);
            diesel::update(of)
                .set((
                    newest,
                    conversations::status.eq(ConversationStatus::Open),
                    conversations::snoozed_until.eq(None::<Timestamp>),
                    conversations::closed_at.eq(None::<Timestamp>),
                    conversations::close_reason.eq(None::<String>),
                    conversations::unread_count.eq(conversations::unread_count + 1),
                    conversations::last_inbound_at.eq(last),
                ))
                .execute(tx.connection())?;
        }
        MessageDirection::Outbound => {
            let is_first = conversation.first_reply_at.is_none() && conversation.last_inbound_at.is_some();
            let first = conversation.first_reply_at.or_else(|| is_first.then_some(now));
            diesel::update(of)
                .set((
                    newest,
                    conversations::unread_count.eq(0),
                    conversations::last_outbound_at.eq(now),
                    conversations::first_reply_at.eq(first),
                ))
                .execute(tx.connection())?;
        }
    }
    Ok(())
}

/// When the contact last wrote, once it wrote this message.
pub(super) fn last_inbound_at(conversation: &Conversation, row: &MessageRow, now: Timestamp) -> Timestamp {
    let wrote_at = row.provider_at.unwrap_or(now).min(now);
    conversation.last_inbound_at.map_or(wrote_at, |before| before.max(wrote_at))
}

/// Those of the network's ids that a channel's messages have already.
pub(crate) fn known_provider_ids<'a>(
    read: &mut store::Read,
    channel: ChannelId,
    provider_ids: impl Iterator<Item = &'a str>,
) -> Result<HashSet<String>> {
    let found: Vec<Option<String>> = messages::table
        .filter(messages::channel_id.eq(channel))
        .filter(messages::provider_message_id.eq_any(provider_ids))
        .select(messages::provider_message_id)
        .load(read.connection())?;
    Ok(found.into_iter().flatten().collect())
}

/// A channel's message by the network's id.
pub(crate) fn by_provider_id(
    read: &mut store::Read,
    channel: ChannelId,
    provider_id: &str,
) -> Result<Option<MessageRow>> {
    let row = messages::table
        .filter(messages::channel_id.eq(channel))
        .filter(messages::provider_message_id.eq(provider_id))
        .select(MessageRow::as_select())
        .first(read.connection());
    Ok(row.optional()?)
}
