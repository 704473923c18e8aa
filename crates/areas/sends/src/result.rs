//! What a send answers.

use chatnet::{ResolvedMessage, SentTemplate};
use conversations::messages::{MessageRow, MessageStatus};
use model::{ChannelId, ContactId, ConversationId, MessageId};
use serde::Serialize;
use utoipa::ToSchema;

/// A message that was queued, or that would be.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "dry_run": false, "would_send": true, "message_id": 1, "status": "queued", "conversation_id": 1,
    "template": null, "checks": [],
}))]
pub struct SendResult {
    /// Always `send_result`.
    pub object: &'static str,
    /// Whether the message was only checked.
    pub dry_run: bool,
    /// Whether the message passed all checks.
    pub would_send: bool,
    /// The id of the message. `null` for a dry run.
    pub message_id: Option<MessageId>,
    /// How far the message has come. `null` for a dry run.
    pub status: Option<MessageStatus>,
    /// The id of the conversation. `null` for a dry run without one.
    pub conversation_id: Option<ConversationId>,
    /// The id of the channel.
    pub channel_id: ChannelId,
    /// To whom it is sent.
    pub recipient: MessageRecipient,
    /// What the contact will read.
    pub message: ResolvedMessage,
    /// The template with its values.
    pub template: Option<SentTemplate>,
    /// What was checked. Only for a dry run.
    pub checks: Vec<SendCheck>,
}

/// To whom a message is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "contact_id": 1, "phone": "+5511987654321" }))]
pub struct MessageRecipient {
    /// The id of the contact. `null` for a dry run with a number that no contact has.
    pub contact_id: Option<ContactId>,
    /// The telephone number.
    pub phone: Option<String>,
    /// The network's id of the person, if the number is not known.
    pub user_id: Option<String>,
}

/// Something that is checked before a message is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "name": "window_open", "ok": true }))]
pub struct SendCheck {
    /// What was checked: `not_handed_over` (where an agent sends that answers the contact), `channel_connected`, `recipient_reachable`, `recipient_not_blocked`, `recipient_opted_in`,
    /// `window_open`, `template_approved`, `params_match` or `retry_allowed`.
    pub name: &'static str,
    /// Whether it passed.
    pub ok: bool,
    /// The code of the error, if it did not.
    pub code: Option<&'static str>,
}

impl SendResult {
    /// With the message that was queued.
    pub(super) fn queued(self, row: &MessageRow) -> Self {
        Self {
            dry_run: false,
            message_id: Some(row.id),
            status: row.status,
            conversation_id: Some(row.conversation_id),
            checks: Vec::new(),
            ..self
        }
    }
}
