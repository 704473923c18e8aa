//! Operations that create, read, change and delete tasks.

use super::change::Change;
use super::editor::TaskEditor;
use crate::record::kind::TASKS;
use crate::record::model::{NewTask, TaskBulkUpdate, TaskCompletion, TaskPatch};
use crate::record::task::{Stored, Task, TaskAssignee, TaskStatus, put};
use fields::value;
use model::{Caller, Error, Patch, Result, TaskId};
use operation::{Body, Created, Deleted, ExpectedVersion, IfMatch, Json, Path, State, With, operation};
use ports::AgentDirectory;
use records::bulk::{self, BulkReport, BulkStatus};
use records::rows::{self, ItemRow};
use records::sets;
use records::shape::Shapes;
use serde_json::Value;
use store::{Read, Tx};

/// A response with a task and its version as `ETag`.
type TaskAnswer = With<Json<Task>>;

fn shown(row: &ItemRow) -> Result<TaskAnswer> {
    Ok(With::etag(row.version, Json(Task::of(row)?)))
}

/// Create a task
///
/// An `external_key` that another task has is a 409 `duplicate_value` with the id of that task, so that a request can be
/// repeated safely. A task that depends on open tasks is blocked until they are done or cancelled.
#[operation(post "/workspaces/{workspaceId}/tasks", scope = "tasks:write")]
pub fn create_task(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<NewTask>,
    shapes: State<Shapes>,
    agents: State<AgentDirectory>,
) -> Result<With<Created<Task>>> {
    let tasks = TaskEditor::open(tx, caller, &shapes.0, &agents.0)?;
    let row = tasks.create(tx, &Change::from(new))?;
    Ok(With::etag(row.version, Created(Task::of(&row)?)))
}

/// One task
///
/// Returns a task that is not in the trash.
#[operation(get "/workspaces/{workspaceId}/tasks/{taskId}", scope = "tasks:read")]
pub fn get_task(
    read: &mut Read,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    shapes: State<Shapes>,
) -> Result<TaskAnswer> {
    let shape = sets::for_read(read, &shapes.0, caller.workspace_id(), &TASKS)?;
    shown(&rows::live(read, &shape, task_id.into())?)
}

/// Change a task
///
/// Fields that are not sent stay unchanged; `null` clears a field. The status `done` completes the task, as
/// `POST …/complete` does. A request that changes nothing leaves the version unchanged.
#[operation(patch "/workspaces/{workspaceId}/tasks/{taskId}", scope = "tasks:write")]
pub fn update_task(
    tx: &mut Tx,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    Body(patch): Body<TaskPatch>,
    if_match: IfMatch,
    shapes: State<Shapes>,
    agents: State<AgentDirectory>,
) -> Result<TaskAnswer> {
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let tasks = TaskEditor::open(tx, caller, &shapes.0, &agents.0)?;
    change_one(tx, &tasks, task_id, expected, &Change::from(patch))
}

/// Locks a task and changes it.
fn change_one(
    tx: &mut Tx,
    tasks: &TaskEditor<'_>,
    id: TaskId,
    expected: ExpectedVersion,
    change: &Change,
) -> Result<TaskAnswer> {
    tasks.lock(tx, &[(id, change)])?;
    let row = tasks.live(tx, id)?;
    rows::expect_version(&tasks.records.shape, &row, expected)?;
    shown(&tasks.change(tx, row, change)?.row)
}

/// Delete a task
///
/// Moves the task to the trash with its subtasks, where they are deleted permanently after 30 days. Tasks that depended on
/// them no longer do.
#[operation(delete "/workspaces/{workspaceId}/tasks/{taskId}", scope = "tasks:write")]
pub fn delete_task(
    tx: &mut Tx,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    if_match: IfMatch,
    shapes: State<Shapes>,
    agents: State<AgentDirectory>,
) -> Result<Deleted<Task>> {
    let tasks = TaskEditor::open(tx, caller, &shapes.0, &agents.0)?;
    tasks.trash(tx, task_id, |shape, row| rows::expect_version(shape, row, if_match.into()))?;
    Ok(Deleted::of("task", task_id))
}

/// Mark it done; a recurring task makes its next
///
/// A task that waits for open tasks is a 409 `task_blocked` with their ids in `details.blocked_by`, unless `force` is sent.
/// Completing a recurring task creates the next task of its series once, with the id `recurrence.next_id`. A task that is
/// done already stays as it is; one that is cancelled is a 409 `invalid_state`.
#[operation(post "/workspaces/{workspaceId}/tasks/{taskId}/complete", scope = "tasks:write")]
pub fn complete_task(
    tx: &mut Tx,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    Body(completion): Body<TaskCompletion>,
    if_match: IfMatch,
    shapes: State<Shapes>,
    agents: State<AgentDirectory>,
) -> Result<TaskAnswer> {
    let expected = ExpectedVersion::new(if_match, completion.version)?;
    let tasks = TaskEditor::open(tx, caller, &shapes.0, &agents.0)?;
    change_one(tx, &tasks, task_id, expected, &Change::to_status(TaskStatus::Done, completion.force))
}

/// Open it again
///
/// A task that is done or cancelled gets the status `todo`. The next task of its series is moved to the trash if nothing was
/// done with it. A task that is open stays as it is.
#[operation(post "/workspaces/{workspaceId}/tasks/{taskId}/reopen", scope = "tasks:write")]
pub fn reopen_task(
    tx: &mut Tx,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    if_match: IfMatch,
    shapes: State<Shapes>,
    agents: State<AgentDirectory>,
) -> Result<TaskAnswer> {
    let tasks = TaskEditor::open(tx, caller, &shapes.0, &agents.0)?;
    let change = Change::to_status(TaskStatus::Todo, false);
    tasks.lock(tx, &[(task_id, &change)])?;
    let row = tasks.live(tx, task_id)?;
    rows::expect_version(&tasks.records.shape, &row, if_match.into())?;
    if Stored::of(&row)?.status.is_open() {
        return shown(&row);
    }
    shown(&tasks.change(tx, row, &change)?.row)
}

/// Assign it to a team member or an agent
///
/// Replaces the assignee. A task has one assignee at most.
#[operation(put "/workspaces/{workspaceId}/tasks/{taskId}/assignee", scope = "tasks:write")]
pub fn assign_task(
    tx: &mut Tx,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    Body(assignee): Body<TaskAssignee>,
    if_match: IfMatch,
    shapes: State<Shapes>,
    agents: State<AgentDirectory>,
) -> Result<TaskAnswer> {
    let tasks = TaskEditor::open(tx, caller, &shapes.0, &agents.0)?;
    let change = Change { assignee: Patch::Set(assignee), ..Change::default() };
    // In this operation the body is the assignee itself, so errors name its members without a prefix.
    let in_body = |error: Error| match error.param_name() {
        Some("assignee.id") => error.param("id"),
        _ => error,
    };
    change_one(tx, &tasks, task_id, if_match.into(), &change).map_err(in_body)
}

/// Take the assignee off
///
/// Returns the task. A task without an assignee stays as it is.
#[operation(delete "/workspaces/{workspaceId}/tasks/{taskId}/assignee", scope = "tasks:write")]
pub fn unassign_task(
    tx: &mut Tx,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    if_match: IfMatch,
    shapes: State<Shapes>,
    agents: State<AgentDirectory>,
) -> Result<TaskAnswer> {
    let tasks = TaskEditor::open(tx, caller, &shapes.0, &agents.0)?;
    let change = Change { assignee: Patch::Clear, ..Change::default() };
    change_one(tx, &tasks, task_id, if_match.into(), &change)
}

/// Add a subtask
///
/// Creates a task below this one. Subtasks are at most 5 levels deep. `parent_id` is that of the path and cannot be sent.
#[operation(post "/workspaces/{workspaceId}/tasks/{taskId}/subtasks", scope = "tasks:write")]
pub fn create_subtask(
    tx: &mut Tx,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    Body(new): Body<NewTask>,
    shapes: State<Shapes>,
    agents: State<AgentDirectory>,
) -> Result<With<Created<Task>>> {
    let tasks = TaskEditor::open(tx, caller, &shapes.0, &agents.0)?;
    tasks.live(tx, task_id)?;
    if new.parent_id.is_some_and(|parent| parent != task_id) {
        return Err(Error::invalid("parent_id", "must be the task of the path, or not be sent"));
    }
    let row = tasks.create(tx, &Change::from(NewTask { parent_id: Some(task_id), ..new }))?;
    Ok(With::etag(row.version, Created(Task::of(&row)?)))
}

/// Change up to 200 tasks
///
/// Changes tasks in the order of the rows, so that a row sees the changes of earlier rows. In the mode `atomic`, one invalid
/// row rejects the whole request; in the mode `partial`, valid rows are stored and the others are reported. The report has
/// one result for each row.
#[operation(post "/workspaces/{workspaceId}/tasks/bulk-update", scope = "tasks:write", body_mib = 16)]
pub fn bulk_update_tasks(
    tx: &mut Tx,
    caller: &Caller,
    Body(bulk): Body<TaskBulkUpdate>,
    shapes: State<Shapes>,
    agents: State<AgentDirectory>,
) -> Result<Json<BulkReport>> {
    let mut tasks = TaskEditor::open(tx, caller, &shapes.0, &agents.0)?;
    tasks.records = tasks.records.in_bulk(caller);
    let rows: Vec<(TaskId, ExpectedVersion, Change)> = bulk
        .rows
        .into_iter()
        .map(|row| (row.id, ExpectedVersion::of_body(row.change.version), row.change.into()))
        .collect();
    let changes: Vec<(TaskId, &Change)> = rows.iter().map(|(id, _, change)| (*id, change)).collect();
    if rows.iter().any(|(_, _, change)| change.external_key != Patch::Keep) {
        tasks.records.alone(tx, "in bulk")?;
    }
    tasks.lock(tx, &changes)?;
    let report =
        bulk::each_row(tx, &tasks.records, bulk.mode, bulk::ROWS, &rows, |tx, (id, expected, change)| {
            let below = |error: Error| error.below("change");
            let row = tasks.live(tx, *id).map_err(|error| error.param("id"))?;
            rows::expect_version(&tasks.records.shape, &row, *expected).map_err(below)?;
            let written = tasks.change(tx, row, change).map_err(below)?;
            let status = if written.changed { BulkStatus::Updated } else { BulkStatus::Unchanged };
            Ok((status, written.row.id))
        })?;
    Ok(Json(report))
}

/// Add a label
///
/// Upper case becomes lower case. A label that the task has already changes nothing.
#[operation(put "/workspaces/{workspaceId}/tasks/{taskId}/labels/{label}", scope = "tasks:write")]
pub fn add_task_label(
    tx: &mut Tx,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    Path(label): Path<String>,
    shapes: State<Shapes>,
    agents: State<AgentDirectory>,
) -> Result<TaskAnswer> {
    let label = value::tag(&label).map_err(|problem| Error::invalid("label", problem.message))?;
    let tasks = TaskEditor::open(tx, caller, &shapes.0, &agents.0)?;
    change_labels(tx, &tasks, task_id, |labels| {
        if !labels.contains(&label) {
            labels.push(label);
        }
    })
}

/// Remove a label
///
/// Returns the task. A label that the task does not have is a 404.
#[operation(delete "/workspaces/{workspaceId}/tasks/{taskId}/labels/{label}", scope = "tasks:write")]
pub fn remove_task_label(
    tx: &mut Tx,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    Path(label): Path<String>,
    shapes: State<Shapes>,
    agents: State<AgentDirectory>,
) -> Result<TaskAnswer> {
    let label = value::tag(&label).map_err(|_| Error::not_found("label"))?;
    let tasks = TaskEditor::open(tx, caller, &shapes.0, &agents.0)?;
    let mut had = false;
    let answer = change_labels(tx, &tasks, task_id, |labels| {
        had = labels.contains(&label);
        labels.retain(|other| *other != label);
    })?;
    if had { Ok(answer) } else { Err(Error::not_found("label")) }
}

fn change_labels(
    tx: &mut Tx,
    tasks: &TaskEditor<'_>,
    id: TaskId,
    edit: impl FnOnce(&mut Vec<String>),
) -> Result<TaskAnswer> {
    let mut change = Change::default();
    tasks.lock(tx, &[(id, &change)])?;
    let row = tasks.live(tx, id)?;
    let mut labels = Stored::of(&row)?.labels;
    edit(&mut labels);
    put(&mut change.data, "labels", Some(Value::from(labels)));
    let in_path = |error: Error| match error.param_name() {
        Some("labels") => error.param("label"),
        _ => error,
    };
    shown(&tasks.change(tx, row, &change).map_err(in_path)?.row)
}
