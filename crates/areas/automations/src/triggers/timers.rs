//! Settings of triggers by the clock.

use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// Settings of `schedule`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationSchedule, example = json!({ "cron": "0 9 * * 1-5" }))]
pub struct Schedule {
    /// Minute, hour, day of month, month and day of week.
    #[schema(max_length = 200)]
    #[serde(default)]
    pub cron: Option<String>,
}

/// Settings of `date_field`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationDateField, example = json!({ "field": "renewal" }))]
pub struct DateField {
    /// The field.
    #[schema(max_length = 200)]
    pub field: String,
}

/// Settings of `no_reply`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationNoReply, example = json!({ "minutes": 60 }))]
pub struct NoReply {
    /// Minutes since our last message.
    #[schema(minimum = 1, maximum = 525_600)]
    pub minutes: i64,
}

/// Settings of `task.due`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationTaskDue, example = json!({ "offset_minutes": -60 }))]
pub struct TaskDue {
    /// Minutes after the task is due, or before if negative.
    #[schema(minimum = -525_600, maximum = 525_600)]
    #[serde(default)]
    pub offset_minutes: i64,
}

/// Settings of `conversation.idle`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationConversationIdle, example = json!({ "minutes": 1440 }))]
pub struct ConversationIdle {
    /// Minutes since the last message.
    #[schema(minimum = 1, maximum = 525_600)]
    pub minutes: i64,
}

pub(super) fn schedule_sample() -> Value {
    json!({ "slot": "2027-01-04T09:00:00.000Z" })
}

pub(super) fn date_field_sample() -> Value {
    json!({ "contact_id": 1, "field": "renewal", "value": "2027-01-07" })
}

pub(super) fn no_reply_sample() -> Value {
    json!({ "contact_id": 1, "conversation_id": 1, "channel_id": 1, "minutes": 60 })
}
