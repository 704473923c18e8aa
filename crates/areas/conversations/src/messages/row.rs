//! A message as it is stored.

use crate::schema::messages;
use chatnet::MediaKind;
use diesel::prelude::*;
use model::{
    BroadcastId, ChannelId, ContactId, ConversationId, JsonText, MessageId, RunId, Timestamp, WorkspaceId,
    text_enum,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

text_enum! {
    /// Who sent a message to whom.
    pub enum MessageDirection {
        /// The contact to the business.
        Inbound = "inbound",
        /// The business to the contact.
        Outbound = "outbound",
    }
}

text_enum! {
    /// The type of sender.
    pub enum MessageSenderType {
        /// The contact.
        Contact = "contact",
        /// An agent.
        Agent = "agent",
        /// A person of the team.
        User = "user",
        /// A request with an API key.
        Api = "api",
        /// A flow.
        Flow = "flow",
        /// A reminder.
        Reminder = "reminder",
        /// A broadcast.
        Broadcast = "broadcast",
        /// The business's own device.
        Device = "device",
        /// The service, such as the confirmation of an opt-out.
        System = "system",
    }
}

text_enum! {
    /// The type of message.
    pub enum MessageType {
        /// Text.
        Text = "text",
        /// A picture.
        Image = "image",
        /// A sound or voice note.
        Audio = "audio",
        /// A video.
        Video = "video",
        /// Any other file.
        Document = "document",
        /// A sticker.
        Sticker = "sticker",
        /// A place.
        Location = "location",
        /// Cards of people.
        Contacts = "contacts",
        /// A text with buttons or a list.
        Interactive = "interactive",
        /// A message template with its values.
        Template = "template",
        /// A reaction to another message.
        Reaction = "reaction",
        /// A button that the contact pressed.
        ButtonReply = "button_reply",
        /// A row of a list that the contact chose.
        ListReply = "list_reply",
        /// An order of products.
        Order = "order",
        /// The answer to a form.
        FormReply = "form_reply",
        /// A notice of the service.
        System = "system",
        /// A type that the service does not understand.
        Unsupported = "unsupported",
    }
}

text_enum! {
    /// How far a message has come.
    pub enum MessageStatus {
        /// Waiting to be sent.
        Queued = "queued",
        /// Being handed to the network.
        Sending = "sending",
        /// The network accepted it.
        Sent = "sent",
        /// It reached the contact's device.
        Delivered = "delivered",
        /// The contact read it.
        Read = "read",
        /// It was not sent, or did not reach the contact: see `error`.
        Failed = "failed",
        /// The network did not answer, so it may have been sent. It is not sent again unless asked for.
        Unknown = "unknown",
        /// It was cancelled before it was sent.
        Cancelled = "cancelled",
        /// It waited too long to be sent.
        Expired = "expired",
    }
}

impl MessageType {
    /// Returns the type of a message with a file.
    pub fn of_media(kind: MediaKind) -> Self {
        match kind {
            MediaKind::Image => Self::Image,
            MediaKind::Audio => Self::Audio,
            MediaKind::Video => Self::Video,
            MediaKind::Document => Self::Document,
            MediaKind::Sticker => Self::Sticker,
        }
    }
}

impl MessageStatus {
    /// The place in a message's life. A status applies only if its rank is higher than that of the message, so that
    /// statuses that come late or twice take nothing back.
    pub fn rank(self) -> i64 {
        match self {
            Self::Queued => 0,
            Self::Sending | Self::Unknown => 1,
            // Of a message that failed a later `delivered` is believed, because the contact may have several devices; a
            // later `sent` is not.
            Self::Sent | Self::Failed | Self::Cancelled | Self::Expired => 2,
            Self::Delivered => 3,
            Self::Read => 4,
        }
    }

    /// Whether this status replaces `before`.
    pub(crate) fn follows(self, before: Self) -> bool {
        let is_failure_of_sent = self == Self::Failed && before == Self::Sent;
        let is_unanswered = self == Self::Unknown && before == Self::Sending;
        let is_over = matches!(before, Self::Cancelled | Self::Expired);
        !is_over && (self.rank() > before.rank() || is_failure_of_sent || is_unanswered)
    }
}

/// Why a message was not sent, or did not reach the contact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "code": "undeliverable", "message": "Message undeliverable.", "provider_code": 131026, "retryable": false }))]
pub struct MessageError {
    /// The reason.
    pub code: chatnet::RefusalCode,
    /// For people, in English.
    pub message: String,
    /// The network's number for the error.
    pub provider_code: Option<i64>,
    /// Whether sending again may help.
    pub retryable: bool,
}

/// Messages that have the same status for the same reason.
#[derive(Debug)]
pub struct Alike {
    /// The status.
    pub status: MessageStatus,
    /// The reason.
    pub error: Option<JsonText>,
    /// The messages.
    pub ids: Vec<MessageId>,
}

impl Alike {
    /// Messages that are sent, put together, so that one statement changes many.
    pub fn among<'a>(rows: impl IntoIterator<Item = &'a MessageRow>) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for row in rows {
            let Some(status) = row.status else { continue };
            let mut known = groups.iter_mut();
            match known.find(|group| group.status == status && group.error == row.error) {
                Some(group) => group.ids.push(row.id),
                None => groups.push(Self { status, error: row.error.clone(), ids: vec![row.id] }),
            }
        }
        groups
    }
}

/// Who sent a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    /// The type of sender.
    pub kind: MessageSenderType,
    /// The id of the contact, agent, key or broadcast.
    pub id: Option<String>,
}

/// A message as it is stored.
#[derive(Debug, Clone, Queryable, QueryableByName, Selectable)]
#[diesel(table_name = messages)]
pub struct MessageRow {
    /// The id.
    pub id: MessageId,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The conversation.
    pub conversation_id: ConversationId,
    /// The channel.
    pub channel_id: ChannelId,
    /// The contact.
    pub contact_id: ContactId,
    /// Who sent it to whom.
    pub direction: MessageDirection,
    /// The type of sender.
    pub sender_type: MessageSenderType,
    /// The id of the contact, agent, key, reminder or broadcast that sent it.
    pub sender_id: Option<String>,
    /// The type of message.
    pub message_type: MessageType,
    /// What people read: the text, the caption, the title of a button, `[Audio]` for a voice note.
    pub content: String,
    /// What the type has beside its content, as JSON: `template`, `interactive`, `location` and so on.
    pub detail: Option<JsonText>,
    /// The message to which it replies or reacts.
    pub reply_to_id: Option<MessageId>,
    /// `None` for what contacts wrote.
    pub status: Option<MessageStatus>,
    /// The rank of the status.
    pub status_rank: i64,
    /// A [`MessageError`].
    pub error: Option<JsonText>,
    /// From 1; each time that it is sent again it rises.
    pub attempt: i64,
    /// Names the send among all of its workspace.
    pub client_key: Option<String>,
    /// The network's id of the message.
    pub provider_message_id: Option<String>,
    /// When, by the network's clock.
    pub provider_at: Option<Timestamp>,
    /// The run whose answer it is.
    pub run_id: Option<RunId>,
    /// The broadcast that sent it.
    pub broadcast_id: Option<BroadcastId>,
    /// When its author last edited it.
    pub edited_at: Option<Timestamp>,
    /// When its author took it back.
    pub deleted_at: Option<Timestamp>,
    /// When it was written.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Its [`Chain`](model::Chain) of causes, with which the events of its statuses go on.
    pub chain: Option<JsonText>,
}

#[cfg(test)]
mod tests {
    use super::MessageStatus::{self, *};

    #[test]
    fn statuses_only_rise() {
        let then = |statuses: &[MessageStatus]| {
            statuses.iter().fold(Queued, |now, next| if next.follows(now) { *next } else { now })
        };
        assert_eq!(then(&[Sending, Sent, Delivered, Read]), Read);
        assert_eq!(then(&[Read, Delivered, Sent]), Read);
        assert_eq!(then(&[Sending, Unknown]), Unknown);
        assert_eq!(then(&[Unknown, Sent]), Sent);
        assert_eq!(then(&[Sent, Failed]), Failed);
        assert_eq!(then(&[Sent, Failed, Sent]), Failed);
        assert_eq!(then(&[Sent, Failed, Delivered]), Delivered);
        assert_eq!(then(&[Delivered, Failed]), Delivered);
        assert_eq!(then(&[Expired, Sent]), Expired);
    }
}
