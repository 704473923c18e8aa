//! Settings of triggers by the clock, and data as their occurrences have it.

use model::{CollectionId, string_enum};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

string_enum! {
    /// A unit of time.
    #[schema(as = AutomationIntervalUnit)]
    pub enum IntervalUnit {
        /// Minutes.
        Minutes = "minutes",
        /// Hours.
        Hours = "hours",
        /// Days, at the same time of day.
        Days = "days",
        /// Weeks, at the same time of the same day.
        Weeks = "weeks",
    }
}

string_enum! {
    /// Which slots are made up for that were missed while the service was down.
    #[derive(Default)]
    #[schema(as = AutomationCatchUp)]
    pub enum CatchUp {
        /// None.
        None = "none",
        /// The latest one.
        #[default]
        Latest = "latest",
        /// The latest ten, in order.
        All = "all",
    }
}

string_enum! {
    /// What a slot does while the firing of an earlier slot has a run that has not ended.
    #[derive(Default)]
    #[schema(as = AutomationOverlap)]
    pub enum Overlap {
        /// It is skipped.
        Skip = "skip",
        /// It waits until the run has ended.
        Queue = "queue",
        /// It fires.
        #[default]
        Allow = "allow",
    }
}

string_enum! {
    /// Whose time zone a time is in.
    #[derive(Default)]
    #[schema(as = AutomationZone)]
    pub enum DateZone {
        /// That of the business.
        #[default]
        Workspace = "workspace",
        /// That of the contact, or of the business if it is not known.
        Contact = "contact",
    }
}

string_enum! {
    /// Whose dates are meant.
    #[schema(as = AutomationDateObject)]
    pub enum DateObject {
        /// Contacts.
        Contact = "contact",
        /// Items of a collection.
        Item = "item",
    }
}

/// An interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationInterval, example = json!({ "n": 2, "unit": "hours" }))]
pub struct Interval {
    /// How many.
    #[schema(minimum = 1, maximum = 10_000)]
    pub n: i64,
    /// Of what.
    pub unit: IntervalUnit,
}

/// Settings of `schedule`: an automation fires at moments that a rule gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationSchedule, example = json!({ "cron": "0 9 * * mon-fri", "timezone": "Europe/Madrid" }))]
pub struct Schedule {
    /// A cron expression with five fields: minute, hour, day of the month, month, day of the week. Where both fields of
    /// days are given, either matches. A time that clocks skip is as much later as they jump; one that occurs twice fires
    /// once, unless the hour is `*`.
    #[schema(min_length = 1, max_length = 200)]
    #[serde(default)]
    pub cron: Option<String>,
    /// An interval, in place of `cron`. It counts from `active_from`, or from the creation of the automation.
    #[serde(default)]
    pub every: Option<Interval>,
    /// The IANA time zone of the rule. Not given, that of the business.
    #[schema(max_length = 64)]
    #[serde(default)]
    pub timezone: Option<String>,
    /// Which missed slots are made up for.
    #[serde(default)]
    pub catch_up: CatchUp,
    /// What a slot does while an earlier one has a run that has not ended.
    #[serde(default)]
    pub overlap: Overlap,
}

/// How long before or after a date. Days are calendar days: the time of day stays the same when clocks are changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationOffset, example = json!({ "days": -3 }))]
pub struct Offset {
    /// Days, negative before the date.
    #[schema(minimum = -3650, maximum = 3650)]
    #[serde(default)]
    pub days: i64,
    /// Hours.
    #[schema(minimum = -1000, maximum = 1000)]
    #[serde(default)]
    pub hours: i64,
    /// Minutes.
    #[schema(minimum = -10_000, maximum = 10_000)]
    #[serde(default)]
    pub minutes: i64,
}

/// Settings of `date_field`: an automation fires at a date that a contact or an item has, once for each record and value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationDateField, example = json!({
    "object": "contact", "field": "renewal", "offset": { "days": -3 }, "at": "09:00", "timezone": "contact"
}))]
pub struct DateField {
    /// Whose dates.
    pub object: DateObject,
    /// The collection, for items.
    #[serde(default)]
    pub collection_id: Option<CollectionId>,
    /// The key of a field of type `date` or `datetime`.
    #[schema(min_length = 1, max_length = 100)]
    pub field: String,
    /// How long before or after the date.
    #[serde(default)]
    pub offset: Offset,
    /// The time of day, such as `09:00`. Not given, it is 9:00 for a day, and the time of the value for a moment.
    #[schema(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$")]
    #[serde(default)]
    pub at: Option<String>,
    /// Whose time zone.
    #[serde(default)]
    pub timezone: DateZone,
}

/// Settings of `task.due`: an automation fires when an open task is due, once for each task and due value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationTaskDue, example = json!({ "offset": { "hours": -2 } }))]
pub struct TaskDue {
    /// How long before or after the task is due.
    #[serde(default)]
    pub offset: Offset,
}

/// Settings of `no_reply`: an automation fires when a contact has not answered our last message for so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationNoReply, example = json!({ "minutes": 120 }))]
pub struct NoReply {
    /// For how many minutes.
    #[schema(minimum = 1, maximum = 525_600)]
    pub minutes: i64,
    /// Only messages over this channel. A reply over any channel counts.
    #[serde(default)]
    pub channel_id: Option<i64>,
}

/// Settings of `conversation.idle`: an automation fires when nobody has written in a conversation for so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationConversationIdle, example = json!({ "minutes": 1440 }))]
pub struct ConversationIdle {
    /// For how many minutes.
    #[schema(minimum = 1, maximum = 525_600)]
    pub minutes: i64,
    /// Only conversations over this channel.
    #[serde(default)]
    pub channel_id: Option<i64>,
}

pub(super) fn schedule_sample() -> Value {
    json!({ "slot": "2027-01-04T08:00:00.000Z", "is_missed": false })
}

pub(super) fn date_field_sample() -> Value {
    json!({
        "field": "renewal", "value": "2027-01-07", "contact_id": 1,
        "contact": { "id": 1, "name": "Ana Souza", "data": { "$name": "Ana Souza", "renewal": "2027-01-07" } },
    })
}

pub(super) fn task_due_sample() -> Value {
    json!({
        "due_at": "2027-01-07T12:00:00.000Z", "task_id": 1,
        "task": { "id": 1, "title": "Call Ana", "status": "todo", "contact_id": 1 },
    })
}

pub(super) fn silence_sample() -> Value {
    json!({
        "contact_id": 1, "conversation_id": 1, "channel_id": 1, "message_id": 4711,
        "since": "2027-01-04T08:00:00.000Z", "minutes": 120,
    })
}
