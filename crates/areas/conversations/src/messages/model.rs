//! A message, as callers see it.

use super::detail::Location;
use super::enqueue::{AttachmentStatus, TranscriptStatus};
use super::row::{MessageDirection, MessageError, MessageSenderType, MessageStatus, MessageType};
use channels::ChannelType;
use chatnet::{
    Interactive, MediaKind, MessageForm, MessageOrder, MessageProduct, MessageReferral, SentTemplate,
};
use model::{
    AttachmentId, BroadcastId, ChannelId, ContactId, ConversationId, FileId, MessageId, RunId, Timestamp,
};
use serde::Serialize;
use utoipa::ToSchema;

/// A message of a conversation.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "direction": "inbound", "type": "text", "content": "Is the espresso machine still available?", "status": null,
    "provider_message_id": "wamid.HBgNNTUxMTk4NzY1NDMyMQ", "attempt": 1,
}))]
pub struct Message {
    /// The id of the message.
    pub id: MessageId,
    /// Always `message`.
    pub object: &'static str,
    /// The conversation.
    pub conversation_id: ConversationId,
    /// The contact.
    pub contact_id: ContactId,
    /// The channel.
    pub channel_id: ChannelId,
    /// The network of the channel.
    pub channel_type: ChannelType,
    /// Who wrote to whom.
    pub direction: MessageDirection,
    /// Who sent it.
    pub sender: MessageSender,
    /// The type of message.
    #[serde(rename = "type")]
    pub kind: MessageType,
    /// The text as it is shown: the text, the caption, or `[Audio]` for a voice note. Empty for a deleted message.
    pub content: String,
    /// Its files.
    pub attachments: Vec<MessageAttachment>,
    /// The template, for a message of the type `template`.
    pub template: Option<SentTemplate>,
    /// The buttons or list, for a message of the type `interactive`.
    pub interactive: Option<Interactive>,
    /// The place, for a message of the type `location`.
    pub location: Option<Location>,
    /// Cards of people, for a message of the type `contacts`, as the network has them.
    #[schema(value_type = Option<Vec<Object>>)]
    pub contacts: Option<serde_json::Value>,
    /// The id of the button or row that the contact chose.
    pub reply_id: Option<String>,
    /// The order, for a message of the type `order`.
    pub order: Option<MessageOrder>,
    /// The answers, for a message of the type `form_reply`.
    pub form: Option<MessageForm>,
    /// The advertisement or post from which the contact came to write this message.
    pub referral: Option<MessageReferral>,
    /// The product about which the contact writes.
    pub product: Option<MessageProduct>,
    /// A message of the type `unsupported`, as the network has it.
    #[schema(value_type = Option<Object>)]
    pub raw: Option<serde_json::Value>,
    /// The message to which it replies.
    pub reply_to: Option<MessageId>,
    /// The latest reaction of each sender.
    pub reactions: Vec<MessageReaction>,
    /// How far it has come. `null` for what contacts wrote.
    pub status: Option<MessageStatus>,
    /// The statuses that the network reported, in the order in which they came.
    pub status_history: Vec<MessageStatusChange>,
    /// Why it was not sent, or did not reach the contact.
    pub error: Option<MessageError>,
    /// The network's id of the message.
    pub provider_message_id: Option<String>,
    /// When it was sent, by the network's clock.
    pub provider_timestamp: Option<Timestamp>,
    /// When it was edited.
    pub edited_at: Option<Timestamp>,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
    /// The broadcast to which it belongs.
    pub broadcast_id: Option<BroadcastId>,
    /// The run of the agent that wrote it.
    pub run_id: Option<RunId>,
    /// How often sending it was asked for.
    pub attempt: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// Who sent a message.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "type": "contact", "id": "1042" }))]
pub struct MessageSender {
    /// The type of sender.
    #[serde(rename = "type")]
    pub kind: MessageSenderType,
    /// The id of the contact, agent, person, key, reminder or broadcast, as text.
    pub id: Option<String>,
}

/// A file of a message.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "type": "audio", "mime_type": "audio/ogg", "size": 48_213, "duration_ms": 4_200, "name": "voice.ogg",
    "permanent_url": "https://svc.example/f/6Hn0rAq1xXo2bqVJYp2N3Q", "signed_url": "https://svc.example/d/eyJs.c2ln",
    "transcript": "Do you deliver on Saturdays?", "transcript_status": "ready", "status": "ready",
}))]
pub struct MessageAttachment {
    /// The id of the attachment.
    pub id: AttachmentId,
    /// The type of file.
    #[serde(rename = "type")]
    pub kind: MediaKind,
    /// Whether the file can be read.
    pub status: AttachmentStatus,
    /// A permanent link. Everyone who knows it can read the file. `null` until the file can be read.
    pub permanent_url: Option<String>,
    /// A link that works for seven days.
    pub signed_url: Option<String>,
    /// The file.
    pub file_id: Option<FileId>,
    /// The name of the file.
    pub name: Option<String>,
    /// The media type.
    pub mime_type: Option<String>,
    /// The size in bytes.
    pub size: Option<i64>,
    /// The duration of a sound or video in milliseconds.
    pub duration_ms: Option<i64>,
    /// What is said in a voice note.
    pub transcript: Option<String>,
    /// Whether there is a transcript.
    pub transcript_status: TranscriptStatus,
}

/// A reaction to a message.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "emoji": "👍", "sender": "contact" }))]
pub struct MessageReaction {
    /// The emoji.
    pub emoji: String,
    /// Who reacted.
    pub sender: MessageSenderType,
    /// When.
    pub at: Timestamp,
}

/// A status that the network reported of a message.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "status": "delivered" }))]
pub struct MessageStatusChange {
    /// The status.
    pub status: MessageStatus,
    /// When, by the network's clock.
    pub at: Timestamp,
    /// Why the message failed.
    pub error: Option<MessageError>,
}
