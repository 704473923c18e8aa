//! The JSON object of a task, and its stored values.

use chrono::{NaiveDate, NaiveDateTime};
use fields::Data;
use model::{
    Actor, AgentId, CollectionId, ContactId, ItemId, MemberId, Result, TaskId, Timestamp, text_enum,
};
use records::rows::ItemRow;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// The field with the assigned member of the team.
pub(crate) const ASSIGNEE_USER: &str = "assignee_user";
/// The field with the assigned agent.
pub(crate) const ASSIGNEE_AGENT: &str = "assignee_agent";
/// The field with the collection of the item that a task is about.
pub(crate) const ITEM_COLLECTION: &str = "item_collection_id";
/// The field with the item that a task is about.
pub(crate) const ITEM: &str = "item_id";

text_enum! {
    /// The status of a task.
    #[derive(Default)]
    pub enum TaskStatus {
        /// Planned for some day.
        Backlog = "backlog",
        /// To be done.
        #[default]
        Todo = "todo",
        /// Begun.
        InProgress = "in_progress",
        /// Done.
        Done = "done",
        /// Given up.
        Cancelled = "cancelled",
    }
}

impl TaskStatus {
    /// Returns whether the task is neither done nor cancelled.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Backlog | Self::Todo | Self::InProgress)
    }
}

text_enum! {
    /// How urgent a task is.
    #[derive(Default)]
    pub enum TaskPriority {
        /// Not said.
        #[default]
        None = "none",
        /// Low.
        Low = "low",
        /// Medium.
        Medium = "medium",
        /// High.
        High = "high",
        /// Urgent.
        Urgent = "urgent",
    }
}

text_enum! {
    /// Who can have a task.
    pub enum TaskAssigneeType {
        /// A member of the team.
        User = "user",
        /// An AI agent.
        Agent = "agent",
    }
}

/// To whom a task is assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "type": "user", "id": 1 }))]
pub struct TaskAssignee {
    /// The type of assignee.
    #[serde(rename = "type")]
    pub kind: TaskAssigneeType,
    /// The id of the team member or agent.
    pub id: i64,
}

/// The item that a task is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "collection_id": 1, "item_id": 1 }))]
pub struct TaskItemRef {
    /// The id of the item's collection.
    pub collection_id: CollectionId,
    /// The id of the item.
    pub item_id: ItemId,
}

/// When a task is due: on a day or at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "date": "2026-12-01", "time_zone": "Europe/Madrid" }))]
pub struct TaskDue {
    /// The day. `null` if the task is due at a moment.
    pub date: Option<NaiveDate>,
    /// The moment. `null` if the task is due on a day.
    pub datetime: Option<Timestamp>,
    /// The time zone in which the day ends, and in which the task recurs.
    pub time_zone: String,
}

/// When a task reminds of itself: at a moment, or before it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "at": null, "offset_minutes": 60 }))]
pub struct TaskReminder {
    /// The moment. `null` if it is before the task is due.
    pub at: Option<Timestamp>,
    /// How many minutes before the task is due. `null` for a moment.
    pub offset_minutes: Option<i64>,
}

impl TaskReminder {
    /// Returns the moment of the reminder for a task that is due at `due_at`. Returns `None` if it depends on a
    /// missing due date.
    pub(crate) fn moment(&self, due_at: Option<Timestamp>) -> Option<Timestamp> {
        self.at.or_else(|| Some(due_at?.plus_seconds(-60 * self.offset_minutes?)))
    }
}

/// An entry of a task's checklist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "id": 1, "text": "Count the boxes", "done": true }))]
pub struct ChecklistEntry {
    /// The id of the entry, unique in the task.
    pub id: i64,
    /// What is to be done.
    pub text: String,
    /// Whether it is done.
    pub done: bool,
}

/// How much of a task is done: its subtasks, except cancelled ones, and the entries of its checklist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "done": 1, "total": 3 }))]
pub struct TaskProgress {
    /// How many are done.
    pub done: i64,
    /// How many there are.
    pub total: i64,
}

text_enum! {
    /// From when the next due date of a recurring task is computed.
    #[derive(Default)]
    pub enum RecurFrom {
        /// From the due date of the task, so that the series keeps to its days.
        #[default]
        Due = "due",
        /// From the day on which the task is completed.
        Completion = "completion",
    }
}

/// How a task recurs. When it is completed, the next task of the series is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "rule": "FREQ=WEEKLY;BYDAY=MO", "time_zone": "Europe/Madrid", "occurrence": 2, "series_id": 1,
}))]
pub struct TaskRecurrence {
    /// The rule, as in RFC 5545.
    pub rule: String,
    /// The time zone on whose clocks the rule is followed.
    pub time_zone: String,
    /// From when the next due date is computed.
    pub from: RecurFrom,
    /// The number of this task in its series, from 1.
    pub occurrence: i64,
    /// The id of the first task of the series. `null` for the first task itself.
    pub series_id: Option<TaskId>,
    /// The id of the task that was created when this one was completed.
    pub next_id: Option<TaskId>,
}

/// The stored recurrence of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredRecurrence {
    #[serde(flatten)]
    pub(crate) shown: TaskRecurrence,
    #[serde(flatten)]
    pub(crate) skipped: SkippedTimes,
}

/// The local times of the rule that clocks skip on the day of the task. Only on that day the task moves to a later
/// time, and the series continues from these times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SkippedTimes {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) due_local: Option<NaiveDateTime>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start_local: Option<NaiveDateTime>,
}

/// A task.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "title": "Order wooden trains", "description": "The supplier needs two weeks.", "status": "in_progress", "priority": "high",
    "labels": ["stock"], "estimate_minutes": 30, "project": "Christmas", "external_key": "erp-4711", "comment_count": 1, "version": 2,
}))]
pub struct Task {
    /// The id of the task.
    pub id: TaskId,
    /// Always `task`.
    pub object: &'static str,
    /// The title.
    pub title: String,
    /// The description in Markdown.
    pub description: Option<String>,
    /// The status.
    pub status: TaskStatus,
    /// Your own name for the status.
    pub status_label: Option<String>,
    /// How urgent it is.
    pub priority: TaskPriority,
    /// To whom it is assigned.
    pub assignee: Option<TaskAssignee>,
    /// When it is due.
    pub due: Option<TaskDue>,
    /// From when on it is overdue: the moment at which it is due, or the end of the day.
    pub due_at: Option<Timestamp>,
    /// When work on it can begin.
    pub start_at: Option<Timestamp>,
    /// How long it takes, in minutes.
    pub estimate_minutes: Option<i64>,
    /// The labels, in lower case.
    pub labels: Vec<String>,
    /// The checklist.
    pub checklist: Vec<ChecklistEntry>,
    /// The id of the task of which this is a subtask.
    pub parent_id: Option<TaskId>,
    /// The ids of the tasks that must be done before.
    pub depends_on: Vec<TaskId>,
    /// Whether one of these is open.
    pub is_blocked: bool,
    /// How much of it is done.
    pub progress: TaskProgress,
    /// How it recurs.
    pub recurrence: Option<TaskRecurrence>,
    /// When it reminds of itself, as long as it is open.
    pub reminders: Vec<TaskReminder>,
    /// The id of the contact whom it is about.
    pub contact_id: Option<ContactId>,
    /// The item that it is about.
    pub item_ref: Option<TaskItemRef>,
    /// The project that it belongs to.
    pub project: Option<String>,
    /// Your own key, unique among tasks.
    pub external_key: Option<String>,
    /// The number of comments.
    pub comment_count: i64,
    /// When it was completed.
    pub completed_at: Option<Timestamp>,
    /// When it was cancelled.
    pub cancelled_at: Option<Timestamp>,
    /// The version, incremented with every change.
    pub version: i64,
    /// Who created the object.
    pub created_by: Actor,
    /// Who last changed the task.
    pub updated_by: Actor,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
    /// When the task was moved to the trash. `null` for a live task.
    pub trashed_at: Option<Timestamp>,
}

/// The stored values of a task.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Stored {
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) status: TaskStatus,
    pub(crate) status_label: Option<String>,
    pub(crate) priority: TaskPriority,
    pub(crate) assignee_user: Vec<i64>,
    pub(crate) assignee_agent: Option<i64>,
    pub(crate) due: Option<TaskDue>,
    pub(crate) due_at: Option<Timestamp>,
    pub(crate) start_at: Option<Timestamp>,
    pub(crate) estimate_minutes: Option<i64>,
    pub(crate) labels: Vec<String>,
    pub(crate) checklist: Vec<ChecklistEntry>,
    pub(crate) parent_id: Option<TaskId>,
    pub(crate) depends_on: Vec<TaskId>,
    pub(crate) is_blocked: bool,
    pub(crate) subtasks_done: i64,
    pub(crate) subtasks_total: i64,
    pub(crate) recurrence: Option<StoredRecurrence>,
    pub(crate) reminders: Vec<TaskReminder>,
    pub(crate) contact_id: Vec<ContactId>,
    pub(crate) item_collection_id: Option<CollectionId>,
    pub(crate) item_id: Option<ItemId>,
    pub(crate) project: Option<String>,
    pub(crate) completed_at: Option<Timestamp>,
    pub(crate) cancelled_at: Option<Timestamp>,
}

impl Stored {
    /// Parses the values of a row.
    pub(crate) fn of(row: &ItemRow) -> Result<Self> {
        row.data.parse()
    }

    /// Returns the assignee.
    pub(crate) fn assignee(&self) -> Option<TaskAssignee> {
        let user = self.assignee_user.first().map(|id| (TaskAssigneeType::User, *id));
        let agent = self.assignee_agent.map(|id| (TaskAssigneeType::Agent, id));
        user.or(agent).map(|(kind, id)| TaskAssignee { kind, id })
    }

    /// Returns the item that the task is about.
    pub(crate) fn item_ref(&self) -> Option<TaskItemRef> {
        Some(TaskItemRef { collection_id: self.item_collection_id?, item_id: self.item_id? })
    }

    /// Returns the team member to whom the task is assigned.
    pub(crate) fn member(&self) -> Option<MemberId> {
        self.assignee_user.first().copied().map(MemberId)
    }

    /// Returns whether the reminders have to be updated after a change from `before`.
    pub(crate) fn changes_reminders(&self, before: &Self) -> bool {
        let has_some = !self.reminders.is_empty() || !before.reminders.is_empty();
        has_some
            && (self.moments() != before.moments()
                || self.title != before.title
                || self.contact_id != before.contact_id)
    }

    /// Returns the moments of the reminders. A task that is not open has none.
    pub(crate) fn moments(&self) -> BTreeSet<Timestamp> {
        let open = self.reminders.iter().filter(|_| self.status.is_open());
        open.filter_map(|reminder| reminder.moment(self.due_at)).collect()
    }

    /// Returns the agent to whom the task is assigned.
    pub(crate) fn agent(&self) -> Option<AgentId> {
        self.assignee_agent.map(AgentId)
    }
}

/// Sets or clears the assignee in the values of a task.
pub(crate) fn set_assignee(data: &mut Data, assignee: Option<TaskAssignee>) {
    let of = |kind| assignee.filter(|assignee| assignee.kind == kind).map(|assignee| assignee.id);
    put(data, ASSIGNEE_USER, of(TaskAssigneeType::User).map(|id| json!([id])));
    put(data, ASSIGNEE_AGENT, of(TaskAssigneeType::Agent).map(Value::from));
}

/// Sets or clears the item in the values of a task.
pub(crate) fn set_item(data: &mut Data, item: Option<TaskItemRef>) {
    put(data, ITEM_COLLECTION, item.map(|item| json!(item.collection_id)));
    put(data, ITEM, item.map(|item| json!(item.item_id)));
}

/// Sets or removes a value of a record.
pub(crate) fn put(data: &mut Data, key: &str, value: Option<Value>) {
    match value {
        Some(value) => data.insert(key.to_owned(), value),
        None => data.shift_remove(key),
    };
}

impl Task {
    /// Builds the response from a row.
    pub(crate) fn of(row: &ItemRow) -> Result<Self> {
        let stored = Stored::of(row)?;
        let assignee = stored.assignee();
        let item_ref = stored.item_ref();
        let entries = || stored.checklist.iter();
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let progress = TaskProgress {
            done: stored.subtasks_done + count(entries().filter(|entry| entry.done).count()),
            total: stored.subtasks_total + count(entries().count()),
        };
        Ok(Self {
            id: row.id.into(),
            object: "task",
            title: stored.title,
            description: stored.description,
            status: stored.status,
            status_label: stored.status_label,
            priority: stored.priority,
            assignee,
            due: stored.due,
            due_at: stored.due_at,
            start_at: stored.start_at,
            estimate_minutes: stored.estimate_minutes,
            labels: stored.labels,
            checklist: stored.checklist,
            parent_id: stored.parent_id,
            depends_on: stored.depends_on,
            is_blocked: stored.is_blocked,
            progress,
            recurrence: stored.recurrence.map(|recurrence| recurrence.shown),
            reminders: stored.reminders,
            contact_id: stored.contact_id.first().copied(),
            item_ref,
            project: stored.project,
            external_key: row.external_key.clone(),
            comment_count: row.comment_count,
            completed_at: stored.completed_at,
            cancelled_at: stored.cancelled_at,
            version: row.version,
            created_by: row.created_by.parse()?,
            updated_by: row.updated_by.parse()?,
            created_at: row.created_at,
            updated_at: row.updated_at,
            trashed_at: row.trashed_at,
        })
    }
}
