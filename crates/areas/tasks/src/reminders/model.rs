//! Request bodies, responses and rows of reminders.

use crate::schema::reminders;
use diesel::prelude::*;
use model::{
    AgentId, ChannelId, ContactId, Error, FlowId, JsonText, KeyId, MemberId, Metadata, Patch, ReminderId,
    Result, TaskId, Timestamp, WorkspaceId, text_enum,
};
use ports::TemplateToSend;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The most characters of a title.
pub(super) const LONGEST_TITLE: usize = 200;

text_enum! {
    /// Where a reminder stands.
    pub enum ReminderStatus {
        /// It waits for its next date.
        Scheduled = "scheduled",
        /// It has fired, and no date follows.
        Fired = "fired",
        /// What it reminds of is done.
        Completed = "completed",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// Its last action failed, and no date follows. `last_error` says why.
        Failed = "failed",
    }
}

text_enum! {
    /// How a recurrence is written.
    pub enum RecurrenceType {
        /// A rule of RFC 5545.
        Rrule = "rrule",
        /// A cron expression of five fields.
        Cron = "cron",
    }
}

/// When a reminder comes again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "type": "rrule", "rule": "FREQ=WEEKLY;BYDAY=MO" }))]
pub struct Recurrence {
    /// How `rule` is written.
    #[serde(rename = "type")]
    pub kind: RecurrenceType,
    /// The rule, such as `FREQ=WEEKLY;BYDAY=MO,TH` or `0 9 * * mon-fri`, with at least 5 minutes between two dates. `COUNT`
    /// and `UNTIL` are fields of their own.
    #[schema(min_length = 1, max_length = 500)]
    pub rule: String,
    /// The last moment at which it can fire.
    #[serde(default)]
    pub until: Option<Timestamp>,
    /// The number of dates, also of those that were missed.
    #[schema(minimum = 1, maximum = 10_000)]
    #[serde(default)]
    pub count: Option<i64>,
}

text_enum! {
    /// What a reminder does when it fires, beside publishing `reminder.fired`.
    #[derive(Default)]
    pub enum ReminderActionType {
        /// Nothing else.
        #[default]
        Notify = "notify",
        /// Sends a message to the contact. The key needs `channels:send`, and cannot be a test key.
        SendMessage = "send_message",
        /// Runs an agent. The key needs `runs:execute`.
        RunAgent = "run_agent",
        /// Starts a run of a flow. The key needs `automations:execute`.
        StartFlow = "start_flow",
    }
}

/// What a reminder does when it fires.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "type": "run_agent", "config": { "input": "Summarize the open quotes of this week." } }))]
pub struct ReminderAction {
    /// The type of action.
    #[serde(rename = "type")]
    pub kind: ReminderActionType,
    /// The settings of the action.
    #[serde(default)]
    pub config: ReminderActionConfig,
}

/// The input of the run that a reminder starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ReminderInput {
    /// For an agent.
    Text(ReminderText),
    /// For a flow.
    Values(ReminderValues),
}

/// The input of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(value_type = String, min_length = 1, max_length = 10_000, pattern = r"\S")]
pub struct ReminderText(pub String);

/// The input of a flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(value_type = Object)]
pub struct ReminderValues(pub Map<String, Value>);

/// The settings of an action.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "input": "Summarize the open quotes of this week." }))]
pub struct ReminderActionConfig {
    /// For `run_agent`: the agent; the workspace's default agent if not given.
    #[serde(default)]
    pub agent_id: Option<AgentId>,
    /// For `run_agent`: the input of the run as text; the title and the note of the reminder if not given. For `start_flow`: the
    /// input of the run as an object of at most 10,000 characters of JSON; an empty object if not given.
    #[serde(default)]
    pub input: Option<ReminderInput>,
    /// For `start_flow`: the flow, which is published and active.
    #[serde(default)]
    pub flow_id: Option<FlowId>,
    /// For `send_message`: the text. It can be sent only within 24 hours of the contact's last message. Either this or
    /// `template` is required.
    #[schema(min_length = 1, max_length = 4_096, pattern = r"\S")]
    #[serde(default)]
    pub text: Option<String>,
    /// For `send_message`: the template.
    #[serde(default)]
    pub template: Option<TemplateToSend>,
    /// For `send_message`: the channel; the one on which the contact was last spoken to if not given.
    #[serde(default)]
    pub channel_id: Option<ChannelId>,
}

text_enum! {
    /// To whom a reminder can be assigned.
    #[derive(Default)]
    pub enum ReminderAssigneeType {
        /// A member of the team.
        #[default]
        User = "user",
    }
}

/// To whom a reminder is assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "type": "user", "id": 1 }))]
pub struct ReminderAssignee {
    /// The type of assignee; `user` if not given.
    #[serde(rename = "type", default)]
    pub kind: ReminderAssigneeType,
    /// The id of the team member.
    pub id: MemberId,
}

/// Why an action failed.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "code": "agent_inactive", "message": "The agent is not active. Activate it first." }))]
pub struct ReminderError {
    /// The error code.
    pub code: String,
    /// The reason, for people.
    pub message: String,
    /// When it failed.
    pub at: Timestamp,
}

impl ReminderError {
    /// Converts an error to its stored form.
    pub(super) fn of(error: &Error, at: Timestamp) -> JsonText {
        let code = error.code().as_str().to_owned();
        JsonText::of(&Self { code, message: error.message().to_owned(), at })
    }
}

/// A reminder.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "livemode": true, "title": "Call Ana about her order", "timezone": "Europe/Madrid",
    "due_at": "2026-11-23T08:00:00.000Z", "next_fire_at": "2026-11-23T08:00:00.000Z", "contact_id": 1, "fire_count": 0, "version": 1,
    "recurrence": null, "action": { "type": "notify" },
}))]
pub struct Reminder {
    /// The id of the reminder.
    pub id: ReminderId,
    /// Always `reminder`.
    pub object: &'static str,
    /// `false` if its action is that of a test key: its events are test events, and its runs are test runs.
    pub livemode: bool,
    /// What to think of.
    pub title: String,
    /// Anything else about it.
    pub note: Option<String>,
    /// Where the reminder stands.
    pub status: ReminderStatus,
    /// When it is due, or its recurrence begins.
    pub due_at: Timestamp,
    /// The time zone of its recurrence.
    pub timezone: String,
    /// When it comes again. `null` for a reminder that fires once.
    pub recurrence: Option<Recurrence>,
    /// The contact that it is about.
    pub contact_id: Option<ContactId>,
    /// The task whose reminder it is. Its title and its date are those of the task, and change with it.
    pub task_id: Option<TaskId>,
    /// To whom it is assigned.
    pub assignee: Option<ReminderAssignee>,
    /// What it does when it fires.
    pub action: ReminderAction,
    /// Whether a message of the contact cancels it.
    pub cancel_on_reply: bool,
    /// Until when it is silent. It then fires once, and its recurrence continues as before.
    pub snoozed_until: Option<Timestamp>,
    /// When it fires next.
    pub next_fire_at: Option<Timestamp>,
    /// When it last fired.
    pub last_fired_at: Option<Timestamp>,
    /// How often it has fired.
    pub fire_count: i64,
    /// Why its last action failed.
    pub last_error: Option<ReminderError>,
    /// Your own key-value data.
    pub metadata: Metadata,
    /// The version, incremented with every change.
    pub version: i64,
    /// Who created the object.
    pub created_by: model::Actor,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// A reminder to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "title": "Review the open quotes", "recurrence": { "type": "rrule", "rule": "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9;BYMINUTE=0" },
    "timezone": "Europe/Madrid",
}))]
pub struct NewReminder {
    /// What to think of.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    pub(super) title: String,
    /// Anything else about it.
    #[schema(max_length = 2000)]
    #[serde(default)]
    pub(super) note: Option<String>,
    /// When it is due: not more than a minute ago. Required unless there is a recurrence, which then begins now.
    #[serde(default)]
    pub(super) due_at: Option<Timestamp>,
    /// The time zone of the recurrence, such as `Europe/Madrid`; that of the business profile if not given.
    #[schema(min_length = 1, max_length = 64)]
    #[serde(default)]
    pub(super) timezone: Option<String>,
    /// When it comes again.
    #[serde(default)]
    pub(super) recurrence: Option<Recurrence>,
    /// The contact that it is about.
    #[serde(default)]
    pub(super) contact_id: Option<ContactId>,
    /// To whom it is assigned.
    #[serde(default)]
    pub(super) assignee: Option<ReminderAssignee>,
    /// What it does when it fires; `notify` if not given.
    #[serde(default)]
    pub(super) action: Option<ReminderAction>,
    /// Whether a message of the contact cancels it.
    #[serde(default)]
    pub(super) cancel_on_reply: bool,
    /// Your own key-value data.
    #[serde(default)]
    pub(super) metadata: Option<Metadata>,
}

impl NewReminder {
    /// Builds a reminder for a task. It fires once.
    pub(super) fn of_task(title: &str, due_at: Timestamp, contact_id: Option<ContactId>) -> Self {
        Self {
            title: title.to_owned(),
            note: None,
            due_at: Some(due_at),
            timezone: None,
            recurrence: None,
            contact_id,
            assignee: None,
            action: None,
            cancel_on_reply: false,
            metadata: None,
        }
    }
}

text_enum! {
    /// The status that a request gives a reminder.
    pub enum NewReminderStatus {
        /// What it reminds of is done: it does not fire any more.
        Completed = "completed",
        /// It does not fire any more.
        Cancelled = "cancelled",
    }
}

/// A change of a reminder. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "status": "completed" }))]
pub struct ReminderPatch {
    /// What to think of.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    #[serde(default)]
    pub(super) title: Option<String>,
    /// Anything else about it.
    #[schema(value_type = Option<String>, max_length = 2000)]
    #[serde(default)]
    pub(super) note: Patch<String>,
    /// When it is due: not more than a minute ago. The reminder is scheduled anew.
    #[serde(default)]
    pub(super) due_at: Option<Timestamp>,
    /// The time zone of the recurrence, such as `Europe/Madrid`. The recurrence begins anew.
    #[schema(min_length = 1, max_length = 64)]
    #[serde(default)]
    pub(super) timezone: Option<String>,
    /// When it comes again. The reminder is scheduled anew. `null` requires a `due_at` that has not passed.
    #[schema(value_type = Option<Recurrence>)]
    #[serde(default)]
    pub(super) recurrence: Patch<Recurrence>,
    /// The contact that it is about.
    #[schema(value_type = Option<ContactId>)]
    #[serde(default)]
    pub(super) contact_id: Patch<ContactId>,
    /// To whom it is assigned.
    #[schema(value_type = Option<ReminderAssignee>)]
    #[serde(default)]
    pub(super) assignee: Patch<ReminderAssignee>,
    /// What it does when it fires.
    #[serde(default)]
    pub(super) action: Option<ReminderAction>,
    /// Whether a message of the contact cancels it.
    #[serde(default)]
    pub(super) cancel_on_reply: Option<bool>,
    /// Until when it is silent. It then fires once, and its recurrence continues as before. `null` ends the silence.
    #[schema(value_type = Option<Timestamp>)]
    #[serde(default)]
    pub(super) snoozed_until: Patch<Timestamp>,
    /// Completes or cancels the reminder.
    #[serde(default)]
    pub(super) status: Option<NewReminderStatus>,
    /// Your own key-value data.
    #[serde(default)]
    pub(super) metadata: Option<Metadata>,
    /// The expected version, like `If-Match`. If the reminder has another version, the request is rejected with 409
    /// `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub(super) version: Option<i64>,
}

/// A row of `reminders`.
#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Identifiable, AsChangeset)]
#[diesel(table_name = reminders, treat_none_as_null = true)]
pub(super) struct ReminderRow {
    pub(super) id: ReminderId,
    pub(super) workspace_id: WorkspaceId,
    pub(super) livemode: bool,
    pub(super) title: String,
    pub(super) note: Option<String>,
    pub(super) status: ReminderStatus,
    pub(super) due_at: Timestamp,
    pub(super) timezone: String,
    pub(super) recurrence: Option<JsonText>,
    pub(super) contact_id: Option<ContactId>,
    pub(super) assignee_id: Option<MemberId>,
    pub(super) action: JsonText,
    pub(super) cancel_on_reply: bool,
    /// The next date of the recurrence, or the only one.
    pub(super) next_slot_at: Option<Timestamp>,
    /// The number of dates of the recurrence that have passed.
    pub(super) slots_done: i64,
    pub(super) snoozed_until: Option<Timestamp>,
    /// When it fires next.
    pub(super) wake_at: Option<Timestamp>,
    pub(super) last_fired_at: Option<Timestamp>,
    pub(super) fire_count: i64,
    pub(super) last_error: Option<JsonText>,
    /// The key that its action uses.
    pub(super) key_id: KeyId,
    pub(super) metadata: JsonText,
    pub(super) version: i64,
    pub(super) created_by: JsonText,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    pub(super) task_id: Option<TaskId>,
    /// The [`Chain`](model::Chain) of whoever set it last. It fires one step further.
    pub(super) chain: Option<JsonText>,
}

impl ReminderRow {
    pub(super) fn recurrence(&self) -> Result<Option<Recurrence>> {
        self.recurrence.as_ref().map(JsonText::parse).transpose()
    }

    pub(super) fn action(&self) -> Result<ReminderAction> {
        self.action.parse()
    }

    pub(super) fn zone(&self) -> Result<chrono_tz::Tz> {
        self.timezone.parse().map_err(|_| Error::internal("a stored time zone is unknown"))
    }

    /// Builds the response.
    pub(super) fn reminder(&self) -> Result<Reminder> {
        Ok(Reminder {
            id: self.id,
            object: "reminder",
            livemode: self.livemode,
            title: self.title.clone(),
            note: self.note.clone(),
            status: self.status,
            due_at: self.due_at,
            timezone: self.timezone.clone(),
            recurrence: self.recurrence()?,
            contact_id: self.contact_id,
            task_id: self.task_id,
            assignee: self.assignee_id.map(|id| ReminderAssignee { kind: ReminderAssigneeType::User, id }),
            action: self.action()?,
            cancel_on_reply: self.cancel_on_reply,
            snoozed_until: self.snoozed_until,
            next_fire_at: self.wake_at,
            last_fired_at: self.last_fired_at,
            fire_count: self.fire_count,
            last_error: self.last_error.as_ref().map(JsonText::parse).transpose()?,
            metadata: self.metadata.parse()?,
            version: self.version,
            created_by: self.created_by.parse()?,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}
