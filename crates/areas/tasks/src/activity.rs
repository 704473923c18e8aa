//! The activity log of a task.

use crate::record::kind::TASKS;
use model::{Actor, Caller, JsonText, Result, TaskId, Timestamp};
use operation::{OptIn, OptInList, Path, State, operation};
use records::activity::{Action, ActivityRow, of_item};
use records::shape::Shapes;
use records::{Source, rows, sets};
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// An activity on a task.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "id": 1042, "action": "updated", "changed": { "priority": { "old": "none", "new": "high" } },
    "source": { "request_id": "req_01m7w4n5e0k3p8r2v6x9b1d4f7" },
}))]
pub struct TaskActivity {
    /// The id of the entry.
    pub id: i64,
    /// Always `task_activity`.
    pub object: &'static str,
    /// The id of the task.
    pub task_id: TaskId,
    /// The type of activity.
    pub action: Action,
    /// The changes by field, each with `old` and `new`.
    #[schema(value_type = Object)]
    pub changed: JsonText,
    /// Who performed the action.
    pub actor: Actor,
    /// What caused the change.
    pub source: Source,
    /// Shared by all changes of one bulk request.
    pub operation_id: Option<String>,
    /// When the action was performed.
    pub created_at: Timestamp,
}

/// Who changed what
///
/// Lists what was done to the task, newest first.
#[operation(get "/workspaces/{workspaceId}/tasks/{taskId}/activity", scope = "tasks:read", ceiling = 100)]
pub fn list_task_activity(
    read: &mut Read,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    page: OptIn,
    shapes: State<Shapes>,
) -> Result<OptInList<TaskActivity>> {
    let shape = sets::for_read(read, &shapes.0, caller.workspace_id(), &TASKS)?;
    let task = rows::live(read, &shape, task_id.into())?;
    let rows = of_item(read, task.workspace_id, task.id, page.page())?;
    let entries = rows.into_iter().map(|row| entry(row, task_id)).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(entries, |entry| entry.id.to_string()))
}

fn entry(row: ActivityRow, task_id: TaskId) -> Result<TaskActivity> {
    let entry = row.entry()?;
    Ok(TaskActivity {
        id: entry.id,
        object: "task_activity",
        task_id,
        action: entry.action,
        changed: entry.changed,
        actor: entry.actor,
        source: entry.source,
        operation_id: entry.operation_id,
        created_at: entry.created_at,
    })
}
