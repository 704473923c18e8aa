//! A conversation, as callers see it.

use crate::messages::{ConversationStatus, MessageDirection, MessageSender, MessageStatus, MessageType};
use channels::ChannelType;
use model::{ChannelId, ContactId, ConversationId, MemberId, MessageId, Timestamp, text_enum};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

text_enum! {
    /// Who answers the contact.
    pub enum ConversationHandler {
        /// The agent.
        Agent = "agent",
        /// A person: the autopilot of the contact is off.
        Human = "human",
    }
}

/// What is said between a contact and the business over a channel.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "status": "open", "handler": "agent", "unread_count": 1, "version": 7 }))]
pub struct Conversation {
    /// The id of the conversation.
    pub id: ConversationId,
    /// Always `conversation`.
    pub object: &'static str,
    /// The contact.
    pub contact_id: ContactId,
    /// The channel.
    pub channel_id: ChannelId,
    /// The network of the channel.
    pub channel_type: ChannelType,
    /// The status.
    pub status: ConversationStatus,
    /// Who answers the contact.
    pub handler: ConversationHandler,
    /// The member of the team to whom the contact is assigned.
    pub assignee: Option<MemberId>,
    /// How many messages the contact wrote since it was last answered.
    pub unread_count: i64,
    /// The beginning of the last message.
    pub last_message: Option<MessagePreview>,
    /// When the last message was written.
    pub last_message_at: Timestamp,
    /// When free messages are allowed.
    pub window: ConversationWindow,
    /// When the contact was first answered.
    pub first_reply_at: Option<Timestamp>,
    /// Until when the conversation is snoozed.
    pub snoozed_until: Option<Timestamp>,
    /// When the conversation was closed.
    pub closed_at: Option<Timestamp>,
    /// Why the conversation was closed.
    pub close_reason: Option<String>,
    /// A link that opens the conversation in the dashboard. `null` as long as there is none, or if the contact is in the trash.
    pub app_url: Option<String>,
    /// The version, incremented with every change.
    pub version: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// When free messages are allowed: for 24 hours after the contact's last message.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "open": true }))]
pub struct ConversationWindow {
    /// Whether they are allowed now.
    pub open: bool,
    /// When the window closes or closed. `null` if the contact never wrote.
    pub expires_at: Option<Timestamp>,
}

/// The beginning of a message.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "direction": "inbound", "type": "text", "content": "Do you deliver on Saturdays?" }))]
pub struct MessagePreview {
    /// The id of the message.
    pub id: MessageId,
    /// Who wrote to whom.
    pub direction: MessageDirection,
    /// Who sent it.
    pub sender: MessageSender,
    /// The type of message.
    #[serde(rename = "type")]
    pub kind: MessageType,
    /// The first 200 characters.
    pub content: String,
    /// How far it has come. `null` for what contacts wrote.
    pub status: Option<MessageStatus>,
    /// When it was written.
    pub created_at: Timestamp,
}

/// Which conversations a list has.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub(super) struct ConversationFilter {
    /// Only conversations with this status.
    #[param(inline)]
    #[serde(default)]
    pub(super) status: Option<ConversationStatus>,
    /// Only conversations of this channel.
    #[param(value_type = Option<i64>)]
    #[serde(default)]
    pub(super) channel_id: Option<ChannelId>,
    /// Only conversations with this contact.
    #[param(value_type = Option<i64>)]
    #[serde(default)]
    pub(super) contact_id: Option<ContactId>,
    /// Only conversations with unread messages (`true`) or without (`false`).
    #[serde(default)]
    pub(super) unread: Option<bool>,
    /// Only conversations that are assigned to this member of the team, or to nobody (`none`).
    #[param(value_type = Option<String>, pattern = "^(none|[1-9][0-9]{0,18})$", example = "none")]
    #[serde(default)]
    pub(super) assignee: Option<AssigneeFilter>,
    /// Only conversations that the agent answers, or only those that a person answers.
    #[param(inline)]
    #[serde(default)]
    pub(super) handler: Option<ConversationHandler>,
}

/// To whom a conversation is assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) enum AssigneeFilter {
    Nobody,
    Member(MemberId),
}

impl TryFrom<String> for AssigneeFilter {
    type Error = &'static str;

    fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
        match text.as_str() {
            "none" => Ok(Self::Nobody),
            id => id
                .parse()
                .map(|id| Self::Member(MemberId(id)))
                .map_err(|_| "must be the id of a member or `none`"),
        }
    }
}

/// What is searched for.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub(super) struct MessageSearch {
    /// The words that a message must have, in any order. Upper and lower case and accents make no difference, and the last
    /// word may be the beginning of one.
    #[param(min_length = 1, max_length = 200, example = "saturday")]
    pub(super) q: String,
    /// Only messages of this channel.
    #[param(value_type = Option<i64>)]
    #[serde(default)]
    pub(super) channel_id: Option<ChannelId>,
    /// Only messages to and from this contact.
    #[param(value_type = Option<i64>)]
    #[serde(default)]
    pub(super) contact_id: Option<ContactId>,
}

text_enum! {
    /// The order of messages.
    #[derive(Default)]
    pub enum MessageOrder {
        /// Oldest first.
        Asc = "asc",
        /// Newest first.
        #[default]
        Desc = "desc",
    }
}

/// How messages are listed.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub(super) struct MessageListing {
    /// The order. Newest first if not given.
    #[param(inline)]
    #[serde(default)]
    pub(super) order: MessageOrder,
}
