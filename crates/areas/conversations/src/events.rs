//! The events of messages.

use crate::messages::{Detail, Location, MessageError, MessageRow, MessageType};
use channels::ChannelType;
use chatnet::{MediaKind, MessageForm, MessageOrder, MessageProduct, MessageReferral};
use model::{ChannelId, ContactId, ConversationId, JsonText, MessageId, Result, RunId};
use operation::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// An event of a message.
#[expect(clippy::large_enum_variant, reason = "it is made, written and dropped, one at a time")]
#[derive(Event)]
#[event(scope = "conversations:read", subject = "contact", id = "contact_id", contact = "contact_id")]
pub(crate) enum MessageEvent {
    /// A contact sent a message. For a voice note `content` is `[Audio]`, and the event waits up to 30 seconds for the
    /// transcript and the file.
    #[event(name = "contact.message.received")]
    Received(MessageReceived),
    /// A message was sent to a contact: the network accepted it.
    #[event(name = "contact.message.sent")]
    Sent(MessageSent),
    /// A message was not sent, did not reach the contact, or may not have been sent.
    #[event(name = "contact.message.failed")]
    Failed(MessageFailed),
}

/// A contact sent a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageReceived {
    /// The id of the contact.
    pub(crate) contact_id: ContactId,
    /// The id of the message.
    pub(crate) message_id: MessageId,
    /// The id of the conversation.
    pub(crate) conversation_id: ConversationId,
    /// The id of the channel.
    pub(crate) channel_id: ChannelId,
    /// The network.
    pub(crate) channel_type: ChannelType,
    /// The type of message.
    #[serde(rename = "type")]
    pub(crate) kind: MessageType,
    /// What the contact wrote.
    pub(crate) content: String,
    /// The id of the button or row that the contact chose.
    pub(crate) reply_id: Option<String>,
    /// The place, for a message of the type `location`.
    pub(crate) location: Option<Location>,
    /// Cards of people, for a message of the type `contacts`, as the network has them.
    #[schema(value_type = Option<Vec<Object>>)]
    pub(crate) contacts: Option<serde_json::Value>,
    /// The order, for a message of the type `order`.
    pub(crate) order: Option<MessageOrder>,
    /// The answers, for a message of the type `form_reply`.
    pub(crate) form: Option<MessageForm>,
    /// The advertisement or post from which the contact came to write this message.
    pub(crate) referral: Option<MessageReferral>,
    /// The product about which the contact writes.
    pub(crate) product: Option<MessageProduct>,
    /// A message of the type `unsupported`, as the network has it.
    #[schema(value_type = Option<Object>)]
    pub(crate) raw: Option<serde_json::Value>,
    /// The files.
    pub(crate) attachments: Vec<ReceivedAttachment>,
    /// Where the dashboard shows the contact. `null` as long as there is no dashboard.
    pub(crate) app_url: Option<String>,
}

/// A file of a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceivedAttachment {
    /// What it is.
    #[serde(rename = "type")]
    pub(crate) kind: MediaKind,
    /// A permanent link to the file. `null` while it cannot be read.
    pub(crate) url: Option<String>,
    /// A link that works for 7 days.
    pub(crate) signed_url: Option<String>,
    /// What is said in a voice note, if that was known within 30 seconds.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transcript: Option<String>,
}

/// A message was sent to a contact.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageSent {
    /// The id of the contact.
    pub(crate) contact_id: ContactId,
    /// The id of the message.
    pub(crate) message_id: MessageId,
    /// The id of the conversation.
    pub(crate) conversation_id: ConversationId,
    /// The id of the channel.
    pub(crate) channel_id: ChannelId,
    /// The network.
    pub(crate) channel_type: ChannelType,
    /// The type of message.
    #[serde(rename = "type")]
    pub(crate) kind: MessageType,
    /// What the contact reads.
    pub(crate) content: String,
    /// The run whose answer it is.
    pub(crate) run_id: Option<RunId>,
    /// Where the dashboard shows the contact. `null` as long as there is no dashboard.
    pub(crate) app_url: Option<String>,
}

/// A message was not sent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageFailed {
    /// The id of the contact.
    pub(crate) contact_id: ContactId,
    /// The id of the message.
    pub(crate) message_id: MessageId,
    /// The id of the conversation.
    pub(crate) conversation_id: ConversationId,
    /// The id of the channel.
    pub(crate) channel_id: ChannelId,
    /// Why. `null` if the network did not answer, so that the message may have been sent.
    pub(crate) error: Option<MessageError>,
    /// Where the dashboard shows the contact. `null` as long as there is no dashboard.
    pub(crate) app_url: Option<String>,
}

impl MessageEvent {
    pub(crate) fn received(
        row: &MessageRow,
        kind: ChannelType,
        attachments: Vec<ReceivedAttachment>,
        app_url: Option<String>,
    ) -> Result<Self> {
        let detail: Detail = row.detail.as_ref().map(JsonText::parse).transpose()?.unwrap_or_default();
        Ok(Self::Received(MessageReceived {
            contact_id: row.contact_id,
            message_id: row.id,
            conversation_id: row.conversation_id,
            channel_id: row.channel_id,
            channel_type: kind,
            kind: row.message_type,
            content: row.content.clone(),
            reply_id: detail.reply_id,
            location: detail.location,
            contacts: detail.contacts,
            order: detail.order,
            form: detail.form,
            referral: detail.referral,
            product: detail.product,
            raw: detail.raw,
            attachments,
            app_url,
        }))
    }

    pub(crate) fn sent(row: &MessageRow, kind: ChannelType, app_url: Option<String>) -> Self {
        Self::Sent(MessageSent {
            contact_id: row.contact_id,
            message_id: row.id,
            conversation_id: row.conversation_id,
            channel_id: row.channel_id,
            channel_type: kind,
            kind: row.message_type,
            content: row.content.clone(),
            run_id: row.run_id.clone(),
            app_url,
        })
    }

    pub(crate) fn failed(row: &MessageRow, error: Option<MessageError>, app_url: Option<String>) -> Self {
        Self::Failed(MessageFailed {
            contact_id: row.contact_id,
            message_id: row.id,
            conversation_id: row.conversation_id,
            channel_id: row.channel_id,
            error,
            app_url,
        })
    }
}
