//! Request bodies and responses of broadcasts and recipients.

pub(crate) mod preview;
pub(crate) mod states;
pub(crate) mod time_of_day;

use crate::model::preview::{BroadcastPreview, BroadcastTest};
use crate::model::time_of_day::BroadcastTimeOfDay;
use conversations::messages::MessageError;
use model::{
    Actor, BroadcastId, BroadcastRecipientId, ChannelId, ContactId, FileId, MessageId, Patch, SegmentId,
    Timestamp, text_enum,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

pub use crate::model::states::{
    BroadcastPauseReason, BroadcastRecipientState, BroadcastSkipReason, BroadcastStatus,
};

/// A value of the message template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "value": "{{contact.$name}}", "fallback": "there" }))]
pub struct BroadcastParam {
    /// The text. `{{contact.key}}` stands for the value of a contact field, such as `{{contact.$name}}`.
    #[schema(min_length = 1, max_length = 1_024, pattern = r"\S")]
    pub value: String,
    /// The text for contacts without a value. Required if `value` names a field; if it is empty, such contacts are left
    /// out.
    #[serde(default)]
    #[schema(max_length = 1_024)]
    pub fallback: Option<String>,
}

/// The values of a message template, by the number or name of the variable.
pub(crate) type Params = BTreeMap<String, BroadcastParam>;

/// The message template of a broadcast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "spring_sale", "language": "en",
    "params": { "1": { "value": "{{contact.$name}}", "fallback": "there" }, "2": { "value": "10 %" } },
}))]
pub struct BroadcastTemplate {
    /// The name.
    #[schema(min_length = 1, max_length = 512)]
    pub name: String,
    /// The language, such as `pt_BR`.
    #[schema(min_length = 2, max_length = 15)]
    pub language: String,
    /// The namespace. Only a template of this namespace is used.
    #[serde(default)]
    #[schema(max_length = 255)]
    pub namespace: Option<String>,
    /// The values of the variables in the body, by number.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, BroadcastParam>)]
    pub params: Params,
    /// The values of the variables in the header, by number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, BroadcastParam>)]
    pub header_params: Params,
    /// The values of the buttons, by their places from 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, BroadcastParam>)]
    pub button_params: Params,
    /// The id of the file above the text, if the template has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<FileId>,
}

/// Whom a broadcast is for: the contacts that fit every condition that is set, without those of `exclude`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "filter_tree": { "field": "$stage", "op": "eq", "value": "won" }, "exclude": { "broadcast_id": 1 },
}))]
pub struct BroadcastAudience {
    /// The id of a segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_id: Option<SegmentId>,
    /// Conditions that compare exact text, as `filters` of `GET /contacts`. All must hold, and none is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>, max_items = 100)]
    pub filters: Option<Vec<Value>>,
    /// A tree of conditions, as in `GET /contacts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub filter_tree: Option<Value>,
    /// The ids of contacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 10_000)]
    pub contact_ids: Option<Vec<ContactId>>,
    /// The id of a CSV file that lists contacts, whose header has one of the columns `id`, `phone`, `email` and
    /// `external_id`. All values of a line must name the same contact. Lines that name none, or several, are left out and
    /// counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_id: Option<FileId>,
    /// Who is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<BroadcastExclusion>,
}

/// Whom a broadcast leaves out: the contacts that fit any condition that is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "broadcast_id": 1 }))]
pub struct BroadcastExclusion {
    /// The id of a segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_id: Option<SegmentId>,
    /// Conditions that compare exact text, as `filters` of `GET /contacts`. All must hold, and none is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>, max_items = 100)]
    pub filters: Option<Vec<Value>>,
    /// A tree of conditions, as in `GET /contacts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub filter_tree: Option<Value>,
    /// The ids of contacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 10_000)]
    pub contact_ids: Option<Vec<ContactId>>,
    /// The id of another broadcast, whose message a contact was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast_id: Option<BroadcastId>,
}

/// When the messages of a broadcast are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "send_at": "2027-03-01T09:00:00Z", "time_zone": "Europe/Madrid", "contact_local_time": true,
    "quiet_hours": { "from": "21:00", "to": "08:00" },
}))]
pub struct BroadcastSchedule {
    /// When it starts. At once if not given.
    #[serde(default)]
    pub send_at: Option<Timestamp>,
    /// The time zone, such as `Europe/Madrid`. Required with `contact_local_time` and `quiet_hours`.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 64)]
    pub time_zone: Option<String>,
    /// Whether each contact is written to when the clocks of its own `$timezone` show the time of `send_at`. A contact
    /// without one has that of `time_zone`.
    #[serde(default)]
    pub contact_local_time: bool,
    /// The time of the day at which nothing is sent: by the clocks of `time_zone`, or with `contact_local_time` by those of
    /// each contact.
    #[serde(default)]
    pub quiet_hours: Option<BroadcastQuietHours>,
}

/// The time of the day at which nothing is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "from": "21:00", "to": "08:00" }))]
pub struct BroadcastQuietHours {
    /// When it begins.
    pub from: BroadcastTimeOfDay,
    /// When it ends, on the next day if that is before `from`.
    pub to: BroadcastTimeOfDay,
}

/// How fast a broadcast is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "rate_per_minute": 600 }))]
pub struct BroadcastThrottle {
    /// The most messages per minute. The channel may allow fewer.
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub rate_per_minute: i64,
}

/// How many broadcasts a contact may receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "messages": 2, "days": 7 }))]
pub struct BroadcastFrequencyCap {
    /// The most messages of broadcasts, this one included.
    #[schema(minimum = 1, maximum = 100)]
    pub messages: i64,
    /// In so many days.
    #[schema(minimum = 1, maximum = 365)]
    pub days: i64,
}

/// How many recipients a broadcast has, by their states. Each recipient counts once, and once more in `replied`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({
    "total": 1200, "pending": 0, "sending": 0, "sent": 100, "delivered": 500, "read": 540, "replied": 80, "failed": 10,
    "skipped": 50, "unknown": 0, "cancelled": 0, "unmatched": 0, "contradictory": 0,
}))]
pub struct BroadcastCounts {
    /// All recipients.
    pub total: i64,
    /// Those to whom nothing was sent yet.
    pub pending: i64,
    /// Those whose message waits for its turn, or is being sent.
    pub sending: i64,
    /// Those whose message the network accepted.
    pub sent: i64,
    /// Those whose message reached their device.
    pub delivered: i64,
    /// Those who read the message.
    pub read: i64,
    /// Those who wrote after they were sent the message.
    pub replied: i64,
    /// Those whom the message did not reach.
    pub failed: i64,
    /// Those who were left out.
    pub skipped: i64,
    /// Those whose message may have been sent.
    pub unknown: i64,
    /// Those to whom nothing was sent because the broadcast was cancelled.
    pub cancelled: i64,
    /// The lines of the file that lists the audience which name no contact. They are no recipients.
    pub unmatched: i64,
    /// The lines of the file whose values name different contacts. They are no recipients.
    pub contradictory: i64,
}

/// A broadcast: one message template for many contacts.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "name": "Spring sale", "status": "draft", "pause_reason": null, "version": 1 }))]
pub struct Broadcast {
    /// The id of the broadcast.
    pub id: BroadcastId,
    /// Always `broadcast`.
    pub object: &'static str,
    /// The name.
    pub name: String,
    /// The channel over which it is sent.
    pub channel_id: Option<ChannelId>,
    /// The message template and its values.
    pub template: Option<BroadcastTemplate>,
    /// Whom it is for.
    pub audience: Option<BroadcastAudience>,
    /// When it is sent.
    pub schedule: Option<BroadcastSchedule>,
    /// How fast it is sent. `null` for as fast as the channel allows.
    pub throttle: Option<BroadcastThrottle>,
    /// How many broadcasts a contact may receive.
    pub frequency_cap: Option<BroadcastFrequencyCap>,
    /// Where it stands.
    pub status: BroadcastStatus,
    /// Why it was paused.
    pub pause_reason: Option<BroadcastPauseReason>,
    /// When a broadcast that was paused continues by itself.
    pub resumes_at: Option<Timestamp>,
    /// How many recipients it has. `total` is final once it is sending.
    pub counts: BroadcastCounts,
    /// When it began to be sent.
    pub started_at: Option<Timestamp>,
    /// When it was completed or cancelled.
    pub completed_at: Option<Timestamp>,
    /// When it is likely to be completed.
    pub eta_at: Option<Timestamp>,
    /// Who would get it and what they would read. Only with `dry_run=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub preview: Option<BroadcastPreview>,
    /// The message to `test_contact_id`. Only if it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub test: Option<BroadcastTest>,
    /// The version, incremented with every change.
    pub version: i64,
    /// Who created the object.
    pub created_by: Actor,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// A broadcast to draft. What is missing can be added before it is sent.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "Spring sale" }))]
pub struct NewBroadcast {
    /// The name.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    pub(crate) name: String,
    /// The channel over which it is sent. Without one, sending chooses the workspace's first channel that has the template.
    #[serde(default)]
    pub(crate) channel_id: Option<ChannelId>,
    /// The message template and its values.
    #[serde(default)]
    pub(crate) template: Option<BroadcastTemplate>,
    /// Whom it is for.
    #[serde(default)]
    pub(crate) audience: Option<BroadcastAudience>,
    /// When it is sent; at once if not given.
    #[serde(default)]
    pub(crate) schedule: Option<BroadcastSchedule>,
    /// How fast it is sent; as fast as the channel allows if not given.
    #[serde(default)]
    pub(crate) throttle: Option<BroadcastThrottle>,
    /// How many broadcasts a contact may receive.
    #[serde(default)]
    pub(crate) frequency_cap: Option<BroadcastFrequencyCap>,
}

/// A change of a broadcast. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "throttle": { "rate_per_minute": 600 } }))]
pub struct BroadcastPatch {
    /// The name.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// The channel over which it is sent.
    #[schema(value_type = Option<ChannelId>)]
    #[serde(default)]
    pub(crate) channel_id: Patch<ChannelId>,
    /// The message template and its values.
    #[schema(value_type = Option<BroadcastTemplate>)]
    #[serde(default)]
    pub(crate) template: Patch<BroadcastTemplate>,
    /// Whom it is for.
    #[schema(value_type = Option<BroadcastAudience>)]
    #[serde(default)]
    pub(crate) audience: Patch<BroadcastAudience>,
    /// When it is sent. `null` for at once.
    #[schema(value_type = Option<BroadcastSchedule>)]
    #[serde(default)]
    pub(crate) schedule: Patch<BroadcastSchedule>,
    /// How fast it is sent. `null` for as fast as the channel allows.
    #[schema(value_type = Option<BroadcastThrottle>)]
    #[serde(default)]
    pub(crate) throttle: Patch<BroadcastThrottle>,
    /// How many broadcasts a contact may receive. `null` for any number.
    #[schema(value_type = Option<BroadcastFrequencyCap>)]
    #[serde(default)]
    pub(crate) frequency_cap: Patch<BroadcastFrequencyCap>,
    /// The expected version, like `If-Match`. If the broadcast has another version, the request is rejected with 409
    /// `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub(crate) version: Option<i64>,
}

text_enum! {
    /// To whom a completed broadcast is sent again.
    pub enum BroadcastRetry {
        /// To those whom the message did not reach.
        Failed = "failed",
        /// To those whose message may have been sent: they may get it twice.
        Unknown = "unknown",
    }
}

/// Whether a broadcast is only previewed.
#[derive(Debug, Clone, Copy, Default, Deserialize, IntoParams)]
pub struct BroadcastDryRun {
    /// Whether nothing is stored and nothing is sent: the answer has who would get the broadcast and what they would read.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

/// How a broadcast is sent.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "now": true }))]
pub struct BroadcastSending {
    /// Whether it starts at once, whatever `schedule.send_at` says.
    #[serde(default)]
    pub(crate) now: bool,
    /// To whom a completed broadcast is sent again.
    #[serde(default)]
    pub(crate) retry: Option<BroadcastRetry>,
    /// The id of a contact to whom the message is sent as a test. Nobody else gets it, the broadcast stays as it is, and the
    /// test is not counted.
    #[serde(default)]
    pub(crate) test_contact_id: Option<ContactId>,
}

/// A recipient of a broadcast.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "contact_id": 1, "address": "+5511987654321", "params": { "1": "Ana" }, "state": "delivered", "skip_reason": null,
    "attempt": 1, "error": null,
}))]
pub struct BroadcastRecipient {
    /// The id of the entry.
    pub id: BroadcastRecipientId,
    /// Always `broadcast_recipient`.
    pub object: &'static str,
    /// The broadcast.
    pub broadcast_id: BroadcastId,
    /// The contact.
    pub contact_id: ContactId,
    /// The telephone number or user id on the network.
    pub address: Option<String>,
    /// The values in the body of the message, as they were when the broadcast started, by number.
    #[schema(value_type = BTreeMap<String, String>)]
    pub params: BTreeMap<String, String>,
    /// Where the message stands.
    pub state: BroadcastRecipientState,
    /// Why the contact was left out.
    pub skip_reason: Option<BroadcastSkipReason>,
    /// When the message is sent at the earliest.
    pub not_before: Timestamp,
    /// How often the message was sent, this time included.
    pub attempt: i64,
    /// The message.
    pub message_id: Option<MessageId>,
    /// Why the message failed.
    pub error: Option<MessageError>,
    /// When the network accepted the message.
    pub sent_at: Option<Timestamp>,
    /// When the message reached the contact's device.
    pub delivered_at: Option<Timestamp>,
    /// When the contact read the message.
    pub read_at: Option<Timestamp>,
    /// When the contact wrote next.
    pub replied_at: Option<Timestamp>,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}
