//! A conversation without a network, for the demo and for tests.

use crate::messages::{
    AttachmentStatus, Conversation, Detail, MessageDirection, MessageRow, MessageSenderType, MessageStatus,
    MessageType, NewAttachment, NewMessage, Sender, TranscriptStatus, terms, write,
};
use crate::schema::{message_attachments, message_statuses, messages};
use channels::{ChannelRow, live};
use chatnet::{MediaKind, SentTemplate};
use diesel::prelude::*;
use model::{
    AttachmentId, ChannelId, ContactId, ConversationId, FileId, JsonText, MessageId, Result, WorkspaceId,
};
use std::collections::BTreeMap;
use store::Tx;

/// What was made.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The conversation.
    pub conversation: ConversationId,
    /// Its messages, oldest first. The third is the voice note; the last is the contact's reaction to the fifth.
    pub messages: Vec<MessageId>,
    /// The voice note.
    pub voice: AttachmentId,
}

/// What is said in the voice note.
const SPOKEN: &str = "Do you deliver on Saturdays?";

/// Writes a conversation of a contact over a channel: six messages with a voice note and its transcript, a template and
/// statuses, and a reaction. Nothing is sent. `voice`: the file of the voice note; without one it cannot be read.
///
/// # Errors
/// `not_found` where the workspace has no such channel.
pub fn create(
    tx: &mut Tx,
    workspace: WorkspaceId,
    channel: ChannelId,
    contact: ContactId,
    voice: Option<FileId>,
) -> Result<Sample> {
    let channel = live(tx, workspace, channel)?;
    let mut talk = Talk { channel, contact, messages: Vec::new() };
    talk.contact_says(tx, MessageType::Text, "Is the espresso machine still available?", None)?;
    let answer = "Yes, it is. We have three of them.";
    let answer = talk.business_says(tx, MessageSenderType::Agent, MessageType::Text, answer, None)?;
    history(tx, &answer, &[MessageStatus::Sent, MessageStatus::Delivered, MessageStatus::Read])?;
    let attachment = NewAttachment {
        kind: MediaKind::Audio,
        file: voice,
        provider_media_id: None,
        mime_type: Some("audio/ogg".to_owned()),
        name: Some("voice.ogg".to_owned()),
        is_voice: true,
        transcribe: true,
    };
    let spoken = talk.contact_says(tx, MessageType::Audio, "[Audio]", Some(attachment))?;
    let voice = transcribe(tx, &spoken, voice.is_some())?;
    let answer = "We do, until noon.";
    let answer = talk.business_says(tx, MessageSenderType::User, MessageType::Text, answer, None)?;
    history(tx, &answer, &[MessageStatus::Sent, MessageStatus::Delivered])?;
    let template = SentTemplate {
        name: "order_shipped".to_owned(),
        language: "en".to_owned(),
        namespace: "shop".to_owned(),
        params: BTreeMap::from([("1".to_owned(), "4711".to_owned())]),
        header_params: BTreeMap::new(),
        button_params: BTreeMap::new(),
    };
    let detail = Detail { template: Some(template), ..Detail::default() };
    let text = "Your order 4711 is on its way.";
    let shipped =
        talk.business_says(tx, MessageSenderType::Api, MessageType::Template, text, Some(&detail))?;
    history(tx, &shipped, &[MessageStatus::Sent, MessageStatus::Delivered])?;
    talk.contact_says(tx, MessageType::Text, "Great, thank you!", None)?;
    talk.contact_reacts(tx, shipped.id, "👍")?;
    Ok(Sample { conversation: shipped.conversation_id, messages: talk.messages, voice })
}

struct Talk {
    channel: ChannelRow,
    contact: ContactId,
    messages: Vec<MessageId>,
}

impl Talk {
    fn say(&mut self, tx: &mut Tx, new: NewMessage) -> Result<MessageRow> {
        let channel = &self.channel;
        let conversation = Conversation::of(tx, channel.workspace_id, channel.id, self.contact)?;
        let row = write(tx, &conversation, new)?;
        self.messages.push(row.id);
        Ok(row)
    }

    fn contact_says(
        &mut self,
        tx: &mut Tx,
        message_type: MessageType,
        content: &str,
        attachment: Option<NewAttachment>,
    ) -> Result<MessageRow> {
        let sender = Sender { kind: MessageSenderType::Contact, id: Some(self.contact.to_string()) };
        let at = tx.now();
        let new = NewMessage { attachment, provider_at: Some(at), ..message(sender, message_type, content) };
        self.say(tx, NewMessage { direction: MessageDirection::Inbound, status: None, ..new })
    }

    fn contact_reacts(&mut self, tx: &mut Tx, to: MessageId, emoji: &str) -> Result<MessageRow> {
        let sender = Sender { kind: MessageSenderType::Contact, id: Some(self.contact.to_string()) };
        let detail = Detail { emoji: Some(emoji.to_owned()), ..Detail::default() };
        let new = NewMessage {
            direction: MessageDirection::Inbound,
            status: None,
            reply_to: Some(to),
            detail: Some(JsonText::of(&detail)),
            ..message(sender, MessageType::Reaction, emoji)
        };
        self.say(tx, new)
    }

    fn business_says(
        &mut self,
        tx: &mut Tx,
        kind: MessageSenderType,
        message_type: MessageType,
        content: &str,
        detail: Option<&Detail>,
    ) -> Result<MessageRow> {
        let new = message(Sender { kind, id: None }, message_type, content);
        self.say(tx, NewMessage { detail: detail.map(JsonText::of), ..new })
    }
}

/// A message of the business that was sent.
fn message(sender: Sender, message_type: MessageType, content: &str) -> NewMessage {
    NewMessage {
        direction: MessageDirection::Outbound,
        sender,
        message_type,
        content: content.to_owned(),
        detail: None,
        reply_to: None,
        status: Some(MessageStatus::Sent),
        client_key: None,
        provider_message_id: None,
        provider_at: None,
        run_id: None,
        broadcast_id: None,
        attachment: None,
        chain: None,
    }
}

/// Writes the statuses of a message; the last is its own.
fn history(tx: &mut Tx, row: &MessageRow, statuses: &[MessageStatus]) -> Result<()> {
    let now = tx.now();
    for status in statuses {
        diesel::insert_into(message_statuses::table)
            .values((
                message_statuses::message_id.eq(row.id),
                message_statuses::status.eq(status),
                message_statuses::reported_at.eq(now),
                message_statuses::created_at.eq(now),
            ))
            .execute(tx.connection())?;
        diesel::update(messages::table.find(row.id))
            .set((messages::status.eq(status), messages::status_rank.eq(status.rank())))
            .execute(tx.connection())?;
    }
    Ok(())
}

fn transcribe(tx: &mut Tx, row: &MessageRow, has_file: bool) -> Result<AttachmentId> {
    let status = if has_file { AttachmentStatus::Ready } else { AttachmentStatus::Failed };
    let of = message_attachments::table.filter(message_attachments::message_id.eq(row.id));
    let id = diesel::update(of)
        .set((
            message_attachments::status.eq(status),
            message_attachments::next_attempt_at.eq(None::<model::Timestamp>),
            message_attachments::transcript.eq(SPOKEN),
            message_attachments::transcript_status.eq(TranscriptStatus::Ready),
            message_attachments::duration_ms.eq(2_400),
        ))
        .returning(message_attachments::id)
        .get_result(tx.connection())?;
    terms::reindex(tx, row, Some(SPOKEN))?;
    Ok(id)
}
