//! Writing messages: each is one row, the newest of its conversation, and, where it is to be sent, a row of the outbox in
//! the same transaction. One message is a set of one.

use super::conversation::{Conversation, ConversationStatus};
use super::row::{MessageDirection, MessageRow, MessageStatus, MessageType, Sender};
use crate::schema::messages;
use chatnet::MediaKind;
use diesel::prelude::*;
use model::{
    BroadcastId, Chain, ChannelId, ConversationId, Error, FileId, JsonText, MessageId, Result, RunId,
    Timestamp, text_enum,
};
use std::collections::{HashMap, HashSet};
use store::{OnConflict, Rows, Tx};

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
    fn into_message(self) -> NewMessage {
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

/// Writes a message that is to be sent. The conversation is locked, or of this transaction.
pub fn enqueue(tx: &mut Tx, conversation: &Conversation, out: Outgoing) -> Result<MessageRow> {
    one(enqueue_all(tx, vec![(conversation, out)])?)
}

/// Writes messages that are to be sent, one to each conversation. The conversations are locked, or of this transaction. Returns the
/// messages in their order.
pub fn enqueue_all(tx: &mut Tx, out: Vec<(&Conversation, Outgoing)>) -> Result<Vec<MessageRow>> {
    let waits: Vec<Waits> =
        out.iter().map(|(_, out)| Waits { priority: out.priority, until: out.expires_at }).collect();
    let new: Vec<(&Conversation, NewMessage)> =
        out.into_iter().map(|(conversation, out)| (conversation, out.into_message())).collect();
    let rows = write_all(tx, &new)?;
    put_all_into_outbox(tx, &rows.iter().zip(waits).collect::<Vec<_>>())?;
    Ok(rows)
}

/// How a message waits to be sent.
#[derive(Debug, Clone, Copy)]
struct Waits {
    priority: Priority,
    /// When it is no longer sent.
    until: Timestamp,
}

/// Puts a message that is stored into the outbox.
pub(crate) fn put_into_outbox(
    tx: &mut Tx,
    row: &MessageRow,
    priority: Priority,
    expires_at: Timestamp,
) -> Result<()> {
    put_all_into_outbox(tx, &[(row, Waits { priority, until: expires_at })])
}

fn put_all_into_outbox(tx: &mut Tx, messages: &[(&MessageRow, Waits)]) -> Result<()> {
    let now = tx.now();
    Rows::of(messages)
        .big_int("message_id", |(row, _)| row.id)
        .big_int("channel_id", |(row, _)| row.channel_id)
        .big_int("conversation_id", |(row, _)| row.conversation_id)
        .big_int("priority", |(_, waits)| waits.priority as i64)
        .time("due_at", |_| now)
        .time("expires_at", |(_, waits)| waits.until)
        .big_int("attempts", |_| 0)
        .insert(tx, "message_outbox")
}

/// Writes a message and makes it the newest of its conversation, which is locked, or of this transaction.
pub(crate) fn write(tx: &mut Tx, conversation: &Conversation, new: NewMessage) -> Result<MessageRow> {
    one(write_all(tx, &[(conversation, new)])?)
}

fn one(rows: Vec<MessageRow>) -> Result<MessageRow> {
    rows.into_iter().next().ok_or_else(|| Error::internal("a message was not written"))
}

/// Writes messages, one to each conversation, and makes them the newest of these. The conversations are locked, or of this
/// transaction. Returns the messages in their order.
pub(crate) fn write_all(tx: &mut Tx, new: &[(&Conversation, NewMessage)]) -> Result<Vec<MessageRow>> {
    let mut written: HashMap<ConversationId, MessageRow> =
        insert(tx, new)?.into_iter().map(|row| (row.conversation_id, row)).collect();
    let rows: Vec<MessageRow> = new.iter().filter_map(|(of, _)| written.remove(&of.id)).collect();
    let attachments =
        rows.iter().zip(new).filter_map(|(row, (_, new))| Some((row, new.attachment.as_ref()?)));
    attach(tx, &attachments.collect::<Vec<_>>())?;
    touch(tx, new, &rows)?;
    super::terms::index(tx, &rows)?;
    Ok(rows)
}

fn insert(tx: &mut Tx, new: &[(&Conversation, NewMessage)]) -> Result<Vec<MessageRow>> {
    let now = tx.now();
    let rows = Rows::of(new)
        .big_int("workspace_id", |(of, _)| of.workspace_id)
        .big_int("conversation_id", |(of, _)| of.id)
        .big_int("channel_id", |(of, _)| of.channel_id)
        .big_int("contact_id", |(of, _)| of.contact_id)
        .text("direction", |(_, new)| new.direction)
        .text("sender_type", |(_, new)| new.sender.kind)
        .text("sender_id", |(_, new)| new.sender.id.as_deref())
        .text("message_type", |(_, new)| new.message_type)
        .text("content", |(_, new)| new.content.as_str())
        .text("detail", |(_, new)| new.detail.as_ref())
        .big_int("reply_to_id", |(_, new)| new.reply_to)
        .text("status", |(_, new)| new.status)
        .big_int("status_rank", |(_, new)| new.status.map_or(0, MessageStatus::rank))
        .big_int("attempt", |_| 1)
        .text("client_key", |(_, new)| new.client_key.as_deref())
        .text("provider_message_id", |(_, new)| new.provider_message_id.as_deref())
        .time("provider_at", |(_, new)| new.provider_at)
        .text("run_id", |(_, new)| new.run_id.as_ref())
        .big_int("broadcast_id", |(_, new)| new.broadcast_id)
        .time("created_at", |_| now)
        .time("updated_at", |_| now)
        .text("chain", |(_, new)| new.chain.as_ref().map(JsonText::of));
    rows.insert_returning(tx, "messages", OnConflict::Fail, "*")
}

fn attach(tx: &mut Tx, files: &[(&MessageRow, &NewAttachment)]) -> Result<()> {
    let now = tx.now();
    let status = |new: &NewAttachment| match new.file {
        Some(_) => AttachmentStatus::Ready,
        None => AttachmentStatus::Pending,
    };
    let transcript = |new: &NewAttachment| match new.transcribe {
        true => TranscriptStatus::Pending,
        false => TranscriptStatus::None,
    };
    Rows::of(files)
        .big_int("workspace_id", |(row, _)| row.workspace_id)
        .big_int("message_id", |(row, _)| row.id)
        .big_int("contact_id", |(row, _)| row.contact_id)
        .text("media_type", |(_, new)| new.kind)
        .text("status", |(_, new)| status(new))
        .big_int("file_id", |(_, new)| new.file)
        .text("provider_media_id", |(_, new)| new.provider_media_id.as_deref())
        .text("mime_type", |(_, new)| new.mime_type.as_deref())
        .text("name", |(_, new)| new.name.as_deref())
        .bool("is_voice", |(_, new)| new.is_voice)
        .text("transcript_status", |(_, new)| transcript(new))
        .big_int("attempts", |_| 0)
        .time("next_attempt_at", |(_, new)| new.file.is_none().then_some(now))
        .time("created_at", |_| now)
        .insert(tx, "message_attachments")
}

/// Makes messages the newest of their conversations. What a contact writes opens the conversation and counts as unread, and
/// what it is answered counts as read.
fn touch(tx: &mut Tx, new: &[(&Conversation, NewMessage)], rows: &[MessageRow]) -> Result<()> {
    let now = tx.now();
    let of_direction = |direction: MessageDirection| -> Vec<(&Conversation, &MessageRow)> {
        let all = new.iter().zip(rows).map(|((of, _), row)| (*of, row));
        all.filter(|(_, row)| row.direction == direction).collect()
    };
    Rows::of(&of_direction(MessageDirection::Inbound))
        .big_int("id", |(of, _)| of.id)
        .big_int("message_id", |(_, row)| row.id)
        .time("wrote_at", |(of, row)| last_inbound_at(of, row, now))
        .given_time("now", now)
        .given_text("open", ConversationStatus::Open)
        .execute(
            tx,
            "UPDATE conversations SET last_message_id = newest.message_id, last_message_at = {now}, version = version + 1,
                updated_at = {now}, status = {open}, snoozed_until = NULL, closed_at = NULL, close_reason = NULL,
                unread_count = unread_count + 1, last_inbound_at = newest.wrote_at
            FROM {newest} WHERE conversations.id = newest.id",
        )?;
    Rows::of(&of_direction(MessageDirection::Outbound))
        .big_int("id", |(of, _)| of.id)
        .big_int("message_id", |(_, row)| row.id)
        .given_time("now", now)
        .execute(
            tx,
            "UPDATE conversations SET last_message_id = newest.message_id, last_message_at = {now}, version = version + 1,
                updated_at = {now}, unread_count = 0, last_outbound_at = {now},
                first_reply_at = CASE WHEN first_reply_at IS NULL AND last_inbound_at IS NOT NULL THEN {now}
                    ELSE first_reply_at END
            FROM {newest} WHERE conversations.id = newest.id",
        )?;
    Ok(())
}

/// When the contact last wrote, once it wrote this message.
fn last_inbound_at(conversation: &Conversation, row: &MessageRow, now: Timestamp) -> Timestamp {
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
