//! The events of tasks.

use super::model::{TaskComment, TaskFile};
use super::task::{Task, TaskStatus};
use model::{Result, TaskId};
use operation::Event;
use records::activity::{Action, Changes};
use records::shape::RecordChange;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// An event of a task.
#[derive(Event)]
#[event(scope = "tasks:read", subject = "task", id = "task_id")]
pub(crate) enum TaskEvent<'a> {
    /// A task was created.
    #[event(name = "task.created")]
    Created(TaskChanged<'a>),
    /// A task was changed. `changed` has the old and new values.
    #[event(name = "task.updated")]
    Updated(TaskChanged<'a>),
    /// A task was completed.
    #[event(name = "task.completed")]
    Completed(TaskChanged<'a>),
    /// A task was cancelled.
    #[event(name = "task.cancelled")]
    Cancelled(TaskChanged<'a>),
    /// A task that was done or cancelled was opened again.
    #[event(name = "task.reopened")]
    Reopened(TaskChanged<'a>),
    /// A task was moved to the trash.
    #[event(name = "task.trashed")]
    Trashed(TaskChanged<'a>),
    /// A task was permanently deleted.
    #[event(name = "task.deleted")]
    Deleted(TaskChanged<'a>),
}

/// A change of a task.
#[derive(Serialize, ToSchema)]
pub(crate) struct TaskChanged<'a> {
    /// The id of the task.
    task_id: TaskId,
    /// The task after the change.
    task: Task,
    /// The changes by field, each with `old` and `new`.
    #[schema(value_type = Object)]
    changed: &'a Changes,
}

impl<'a> TaskEvent<'a> {
    /// Builds the event of a change. Returns `None` for other actions, such as a comment, which have their own
    /// events.
    ///
    /// # Errors
    /// `internal_error` if the stored values are damaged.
    pub(crate) fn of(change: &RecordChange<'a>) -> Result<Option<Self>> {
        let event = match change.action {
            Action::Created => Self::Created,
            Action::Trashed => Self::Trashed,
            Action::Deleted => Self::Deleted,
            Action::Updated => by_status(change.changed),
            _ => return Ok(None),
        };
        let task = Task::of(change.row)?;
        Ok(Some(event(TaskChanged { task_id: task.id, task, changed: change.changed })))
    }
}

/// Chooses the event of an update by the change of the status.
fn by_status<'a>(changed: &Changes) -> fn(TaskChanged<'a>) -> TaskEvent<'a> {
    let status = |side: &str| {
        let word = changed.get("status").and_then(|entry| entry.get(side)).and_then(Value::as_str);
        word.and_then(TaskStatus::parse)
    };
    match (status("old"), status("new")) {
        (_, Some(TaskStatus::Done)) => TaskEvent::Completed,
        (_, Some(TaskStatus::Cancelled)) => TaskEvent::Cancelled,
        (Some(old), Some(_)) if !old.is_open() => TaskEvent::Reopened,
        _ => TaskEvent::Updated,
    }
}

/// An event of a comment on a task.
#[derive(Event)]
#[event(scope = "tasks:read", subject = "task", id = "task_id")]
pub(crate) enum TaskCommentEvent {
    /// A comment was written on a task.
    #[event(name = "task.comment.created")]
    Created(TaskCommentChanged),
    /// A comment on a task was changed.
    #[event(name = "task.comment.updated")]
    Updated(TaskCommentChanged),
    /// A comment on a task was deleted.
    #[event(name = "task.comment.deleted")]
    Deleted(TaskCommentChanged),
}

/// A comment on a task was written, changed or deleted.
#[derive(Serialize, ToSchema)]
pub(crate) struct TaskCommentChanged {
    /// The id of the task.
    pub(crate) task_id: TaskId,
    /// The comment after the change.
    pub(crate) comment: TaskComment,
}

/// An event of a file of a task.
#[derive(Event)]
#[event(scope = "tasks:read", subject = "task", id = "task_id")]
pub(crate) enum TaskFileEvent {
    /// A file was attached to a task.
    #[event(name = "task.file.attached")]
    Attached(TaskFileChanged),
    /// A file was detached from a task.
    #[event(name = "task.file.detached")]
    Detached(TaskFileChanged),
}

/// A file was attached to a task or detached from it.
#[derive(Serialize, ToSchema)]
pub(crate) struct TaskFileChanged {
    /// The id of the task.
    pub(crate) task_id: TaskId,
    /// The file.
    pub(crate) file: TaskFile,
}
