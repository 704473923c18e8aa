//! Request bodies of the operations on tasks, and responses other than the task itself.

use super::task::{RecurFrom, TaskAssignee, TaskItemRef, TaskPriority, TaskStatus};
use chrono::NaiveDate;
use model::{Actor, ContactId, FileId, Patch, TaskCommentId, TaskId, Timestamp};
use records::bulk::BulkMode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// When a task is to be due. One of `date` and `datetime` is required.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "date": "2030-12-01" }))]
pub struct NewTaskDue {
    /// The day.
    #[serde(default)]
    pub date: Option<NaiveDate>,
    /// The moment.
    #[serde(default)]
    pub datetime: Option<Timestamp>,
    /// The time zone in which the day ends, as a name of the IANA time zone database; that of the business if not given.
    #[schema(min_length = 1, max_length = 64)]
    #[serde(default)]
    pub time_zone: Option<String>,
}

/// How a task is to recur.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "rule": "FREQ=WEEKLY;BYDAY=MO", "time_zone": "Europe/Madrid" }))]
pub struct NewTaskRecurrence {
    /// The rule, as in RFC 5545, with the frequency `DAILY`, `WEEKLY`, `MONTHLY` or `YEARLY`. `COUNT` is the number of tasks
    /// in the series. The time of day is that of the due date.
    #[schema(min_length = 1, max_length = 300)]
    pub rule: String,
    /// The time zone on whose clocks the rule is followed; that of the due date, or else of the business, if not given.
    #[schema(min_length = 1, max_length = 64)]
    #[serde(default)]
    pub time_zone: Option<String>,
    /// From when the next due date is computed.
    #[serde(default)]
    pub from: RecurFrom,
}

/// An entry of a checklist to write.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "text": "Count the boxes" }))]
pub struct NewChecklistEntry {
    /// The id of an entry that the task has. Entries without one are new.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub id: Option<i64>,
    /// What is to be done.
    #[schema(min_length = 1, max_length = 500, pattern = r"\S")]
    pub text: String,
    /// Whether it is done.
    #[serde(default)]
    pub done: bool,
}

/// When a task is to remind of itself. One of `at` and `offset_minutes` is required.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "offset_minutes": 60 }))]
pub struct NewTaskReminder {
    /// The moment.
    #[serde(default)]
    pub at: Option<Timestamp>,
    /// How many minutes before the task is due. Without a due date it waits for one.
    #[schema(minimum = 0, maximum = 525_600)]
    #[serde(default)]
    pub offset_minutes: Option<i64>,
}

/// A task to create.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "title": "Call Ana about her order", "priority": "high", "labels": ["sales"], "checklist": [{ "text": "Look up the order" }],
}))]
pub struct NewTask {
    /// The title.
    #[schema(min_length = 1, max_length = 500, pattern = r"\S")]
    pub title: String,
    /// The description in Markdown.
    #[schema(max_length = 50_000)]
    #[serde(default)]
    pub description: Option<String>,
    /// The status; `todo` if not given.
    #[serde(default)]
    pub status: TaskStatus,
    /// Your own name for the status.
    #[schema(max_length = 60)]
    #[serde(default)]
    pub status_label: Option<String>,
    /// How urgent it is.
    #[serde(default)]
    pub priority: TaskPriority,
    /// To whom it is assigned.
    #[serde(default)]
    pub assignee: Option<TaskAssignee>,
    /// When it is due.
    #[serde(default)]
    pub due: Option<NewTaskDue>,
    /// When work on it can begin. Not after the due date.
    #[serde(default)]
    pub start_at: Option<Timestamp>,
    /// How long it takes, in minutes.
    #[schema(minimum = 0, maximum = 1_000_000)]
    #[serde(default)]
    pub estimate_minutes: Option<i64>,
    /// The labels. Upper case becomes lower case.
    #[schema(max_items = 100)]
    #[serde(default)]
    pub labels: Vec<String>,
    /// The checklist.
    #[schema(max_items = 100)]
    #[serde(default)]
    pub checklist: Vec<NewChecklistEntry>,
    /// The id of the task of which this is a subtask. Subtasks are at most 5 levels deep.
    #[serde(default)]
    pub parent_id: Option<TaskId>,
    /// The ids of the tasks that must be done before.
    #[schema(max_items = 50)]
    #[serde(default)]
    pub depends_on: Vec<TaskId>,
    /// How it recurs.
    #[serde(default)]
    pub recurrence: Option<NewTaskRecurrence>,
    /// When it reminds of itself, as long as it is open: each is a reminder that publishes `reminder.fired`.
    #[schema(max_items = 10)]
    #[serde(default)]
    pub reminders: Vec<NewTaskReminder>,
    /// The id of the contact whom it is about.
    #[serde(default)]
    pub contact_id: Option<ContactId>,
    /// The item that it is about.
    #[serde(default)]
    pub item_ref: Option<TaskItemRef>,
    /// The project that it belongs to.
    #[schema(max_length = 120)]
    #[serde(default)]
    pub project: Option<String>,
    /// Your own key, unique among tasks.
    #[schema(min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_key: Option<String>,
}

/// A change of a task. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "status": "in_progress", "priority": "urgent" }))]
pub struct TaskPatch {
    /// The title.
    #[schema(min_length = 1, max_length = 500, pattern = r"\S")]
    #[serde(default)]
    pub title: Option<String>,
    /// The description in Markdown.
    #[schema(value_type = Option<String>, max_length = 50_000)]
    #[serde(default)]
    pub description: Patch<String>,
    /// The status. `done` completes the task; a task that is done or cancelled is opened again by the others.
    #[serde(default)]
    pub status: Option<TaskStatus>,
    /// Your own name for the status.
    #[schema(value_type = Option<String>, max_length = 60)]
    #[serde(default)]
    pub status_label: Patch<String>,
    /// How urgent it is.
    #[serde(default)]
    pub priority: Option<TaskPriority>,
    /// To whom it is assigned.
    #[schema(value_type = Option<TaskAssignee>)]
    #[serde(default)]
    pub assignee: Patch<TaskAssignee>,
    /// When it is due.
    #[schema(value_type = Option<NewTaskDue>)]
    #[serde(default)]
    pub due: Patch<NewTaskDue>,
    /// When work on it can begin. Not after the due date.
    #[schema(value_type = Option<Timestamp>)]
    #[serde(default)]
    pub start_at: Patch<Timestamp>,
    /// How long it takes, in minutes.
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 1_000_000)]
    #[serde(default)]
    pub estimate_minutes: Patch<i64>,
    /// All labels. To add or remove one, use `PUT` or `DELETE` on its own address.
    #[schema(max_items = 100)]
    #[serde(default)]
    pub labels: Option<Vec<String>>,
    /// The whole checklist. Entries that are not sent are removed.
    #[schema(max_items = 100)]
    #[serde(default)]
    pub checklist: Option<Vec<NewChecklistEntry>>,
    /// The id of the task of which this is a subtask; `null` for none.
    #[schema(value_type = Option<TaskId>)]
    #[serde(default)]
    pub parent_id: Patch<TaskId>,
    /// The ids of all tasks that must be done before.
    #[schema(max_items = 50)]
    #[serde(default)]
    pub depends_on: Option<Vec<TaskId>>,
    /// How it recurs; `null` ends the series.
    #[schema(value_type = Option<NewTaskRecurrence>)]
    #[serde(default)]
    pub recurrence: Patch<NewTaskRecurrence>,
    /// When it reminds of itself: all moments.
    #[schema(max_items = 10)]
    #[serde(default)]
    pub reminders: Option<Vec<NewTaskReminder>>,
    /// The id of the contact whom it is about.
    #[schema(value_type = Option<ContactId>)]
    #[serde(default)]
    pub contact_id: Patch<ContactId>,
    /// The item that it is about.
    #[schema(value_type = Option<TaskItemRef>)]
    #[serde(default)]
    pub item_ref: Patch<TaskItemRef>,
    /// The project that it belongs to.
    #[schema(value_type = Option<String>, max_length = 120)]
    #[serde(default)]
    pub project: Patch<String>,
    /// Your own key, unique among tasks. `null` removes it.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_key: Patch<String>,
    /// Whether to complete the task even if it waits for others.
    #[serde(default)]
    pub force: bool,
    /// The expected version, like `If-Match`. If the task has another version, the request is rejected with 409
    /// `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}

/// Completing a task.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "force": true }))]
pub struct TaskCompletion {
    /// Whether to complete the task even if it waits for others.
    #[serde(default)]
    pub force: bool,
    /// The expected version, like `If-Match`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}

/// Changes of many tasks.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "mode": "partial", "rows": [{ "id": 1, "change": { "priority": "low" } }] }))]
pub struct TaskBulkUpdate {
    /// What happens to the request if some rows fail.
    #[serde(default)]
    pub mode: BulkMode,
    /// The changes, in order.
    #[schema(min_items = 1, max_items = 200)]
    pub rows: Vec<TaskBulkChange>,
}

/// A change of one of many tasks.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "id": 1, "change": { "priority": "low" } }))]
pub struct TaskBulkChange {
    /// The id of the task.
    pub id: TaskId,
    /// What to change of it.
    pub change: TaskPatch,
}

/// A comment to write.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "body": "She prefers to be called in the morning." }))]
pub struct NewTaskComment {
    /// The text in Markdown.
    #[schema(min_length = 1, max_length = 10_000, pattern = r"\S")]
    pub body: String,
}

/// A change of a comment.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "body": "She prefers to be called in the evening." }))]
pub struct TaskCommentPatch {
    /// The text in Markdown.
    #[schema(min_length = 1, max_length = 10_000, pattern = r"\S")]
    #[serde(default)]
    pub body: Option<String>,
    /// The expected version, like `If-Match`. If the comment has another version, the request is rejected with 409
    /// `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}

/// A file to attach to a task.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "file_id": 1 }))]
pub struct NewTaskFile {
    /// The id of the file.
    pub file_id: FileId,
}

/// The number of open tasks of an assignee.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "open": 3, "overdue": 1 }))]
pub struct AssigneeSummary {
    /// The assignee. `null` for tasks that are assigned to none.
    pub assignee: Option<TaskAssignee>,
    /// The number of open tasks.
    pub open: i64,
    /// How many of them are overdue.
    pub overdue: i64,
}

/// The number of tasks by status.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[schema(example = json!({ "backlog": 1, "todo": 3, "in_progress": 1, "done": 5, "cancelled": 0 }))]
pub struct StatusSummary {
    /// Planned for some day.
    pub backlog: i64,
    /// To be done.
    pub todo: i64,
    /// Begun.
    pub in_progress: i64,
    /// Done.
    pub done: i64,
    /// Given up.
    pub cancelled: i64,
}

/// The number of open tasks by when they are due, in the time zone of the business. Weeks begin on Monday.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[schema(example = json!({ "overdue": 1, "today": 1, "this_week": 0, "later": 2, "none": 1 }))]
pub struct DueSummary {
    /// Past their due date.
    pub overdue: i64,
    /// Due today.
    pub today: i64,
    /// Due after today, before the week ends.
    pub this_week: i64,
    /// Due after this week.
    pub later: i64,
    /// Without a due date.
    pub none: i64,
}

/// The tasks of a workspace, counted.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "time_zone": "Europe/Madrid", "total": 10, "open": 5, "ready": 3, "blocked": 1 }))]
pub struct TaskSummary {
    /// Always `task_summary`.
    pub object: &'static str,
    /// The time zone of the business.
    pub time_zone: String,
    /// All tasks.
    pub total: i64,
    /// Those that are neither done nor cancelled.
    pub open: i64,
    /// Those that can be worked on now, as with `ready=true`.
    pub ready: i64,
    /// Open tasks that wait for others.
    pub blocked: i64,
    /// By status.
    pub by_status: StatusSummary,
    /// Open tasks by assignee, those with the most first.
    pub by_assignee: Vec<AssigneeSummary>,
    /// Open tasks by due date.
    pub due: DueSummary,
}

/// A comment on a task.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "body": "She prefers to be called in the morning.", "version": 1 }))]
pub struct TaskComment {
    /// The id of the comment.
    pub id: TaskCommentId,
    /// Always `task_comment`.
    pub object: &'static str,
    /// The id of the task.
    pub task_id: TaskId,
    /// The text in Markdown.
    pub body: String,
    /// Who wrote the comment.
    pub author: Actor,
    /// When the text was last changed. `null` if it never was.
    pub edited_at: Option<Timestamp>,
    /// The version, incremented with every change.
    pub version: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// A file that is attached to a task.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "name": "invoice.pdf", "mime_type": "application/pdf", "size": 18204 }))]
pub struct TaskFile {
    /// The id of the file.
    pub id: FileId,
    /// Always `task_file`.
    pub object: &'static str,
    /// The id of the task.
    pub task_id: TaskId,
    /// The name.
    pub name: String,
    /// The media type.
    pub mime_type: String,
    /// The size in bytes.
    pub size: i64,
    /// Who attached it.
    pub attached_by: Actor,
    /// When it was attached.
    pub attached_at: Timestamp,
}
