//! Responses with previews and tests.

use crate::model::states::BroadcastSkipReason;
use chatnet::ResolvedMessage;
use model::{ChannelId, ContactId, MessageId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who would get a broadcast if it were sent now, and what they would read.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(example = json!({
    "channel_id": 1, "recipients": 1150, "failing": 0, "skipped": 50,
    "skip_reasons": [{ "reason": "opted_out", "count": 50 }], "unmatched": 0, "contradictory": 0, "complete": true,
}))]
pub struct BroadcastPreview {
    /// Always `broadcast_preview`.
    pub object: &'static str,
    /// The channel over which it would be sent.
    pub channel_id: ChannelId,
    /// How many contacts would get the message.
    pub recipients: i64,
    /// How many contacts have values that the template does not take. Their messages would fail.
    pub failing: i64,
    /// How many contacts would be left out.
    pub skipped: i64,
    /// How many of them for which reason.
    pub skip_reasons: Vec<BroadcastSkipCount>,
    /// The lines of the file that lists the audience which name no contact.
    pub unmatched: i64,
    /// The lines of the file whose values name different contacts.
    pub contradictory: i64,
    /// The messages to the first three contacts who would get one.
    pub messages: Vec<BroadcastPreviewMessage>,
    /// Whether the whole audience was counted. A preview ends after 100,000 contacts.
    pub complete: bool,
}

/// How many contacts would be left out for a reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "reason": "opted_out", "count": 50 }))]
pub struct BroadcastSkipCount {
    /// The reason.
    pub reason: BroadcastSkipReason,
    /// How many contacts.
    pub count: i64,
}

/// A message of a broadcast as a contact would read it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(example = json!({ "contact_id": 1, "address": "+5511987654321" }))]
pub struct BroadcastPreviewMessage {
    /// The contact.
    pub contact_id: ContactId,
    /// The telephone number or user id on the network.
    pub address: Option<String>,
    /// What the contact would read.
    pub message: ResolvedMessage,
}

/// The message of a broadcast that was sent to one contact as a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "contact_id": 1, "message_id": 1 }))]
pub struct BroadcastTest {
    /// The contact.
    pub contact_id: ContactId,
    /// The message. `null` for a dry run.
    pub message_id: Option<MessageId>,
    /// What the contact reads.
    pub message: ResolvedMessage,
}
