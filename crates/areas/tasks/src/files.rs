//! Files that are attached to tasks. Attaching a file does not change the version of the task.

use crate::comments::locked_task;
use crate::record::events::{TaskFileChanged, TaskFileEvent};
use crate::record::kind::TASKS;
use crate::record::model::{NewTaskFile, TaskFile};
use crate::schema::task_files;
use diesel::prelude::*;
use files::FileRow;
use model::{Caller, Code, Error, FileId, JsonText, Result, TaskId, Timestamp, WorkspaceId};
use operation::{Body, Created, Deleted, OptIn, OptInList, Path, State, operation};
use records::activity::{self, Action, Changes, change};
use records::rows::{self, Editor, ItemRow};
use records::sets;
use records::shape::Shapes;
use serde_json::{Value, json};
use std::collections::HashMap;
use store::{Read, Tx, each};

/// The most files of a task.
const MOST: i64 = 100;

/// Files attached to the task
///
/// Lists the files attached to the task, most recently uploaded first.
#[operation(get "/workspaces/{workspaceId}/tasks/{taskId}/files", scope = "tasks:read", ceiling = 100)]
pub fn list_task_files(
    read: &mut Read,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    page: OptIn,
    shapes: State<Shapes>,
) -> Result<OptInList<TaskFile>> {
    let shape = sets::for_read(read, &shapes.0, caller.workspace_id(), &TASKS)?;
    let task = rows::live(read, &shape, task_id.into())?;
    let after = page.page().after::<FileId>()?;
    let most = usize::try_from(page.page().fetch()).unwrap_or(usize::MAX);
    let found = attached(read, task.workspace_id, task_id)?;
    let found = found.into_iter().filter(|file| after.is_none_or(|after| file.id < after)).take(most);
    Ok(page.answer(found.collect(), |file| file.id.to_string()))
}

/// Attach a file
///
/// Attaches an uploaded file to the task. A file that is already attached is a 409 `duplicate_value`. A task can have up to
/// 100 files.
#[operation(post "/workspaces/{workspaceId}/tasks/{taskId}/files", scope = "tasks:write")]
pub fn attach_task_file(
    tx: &mut Tx,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    Body(new): Body<NewTaskFile>,
    shapes: State<Shapes>,
) -> Result<Created<TaskFile>> {
    let (editor, task) = locked_task(tx, caller, &shapes.0, task_id)?;
    if files::held(tx, task.workspace_id, &[new.file_id])?.is_empty() {
        return Err(Error::not_found("file").param("file_id"));
    }
    let count: i64 =
        task_files::table.filter(task_files::task_id.eq(task_id)).count().get_result(tx.connection())?;
    if count >= MOST {
        return Err(Error::new(Code::LimitReached, format!("A task has at most {MOST} files.")));
    }
    let row = (
        task_files::task_id.eq(task_id),
        task_files::file_id.eq(new.file_id),
        task_files::workspace_id.eq(task.workspace_id),
        task_files::attached_by.eq(&editor.author.cause.actor),
        task_files::attached_at.eq(tx.now()),
    );
    let added = each!(tx.connection(), |connection| diesel::insert_into(task_files::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    if added == 0 {
        return Err(Error::duplicate("file_id", "The file is already attached to the task.", new.file_id));
    }
    let file = one(tx, &task, new.file_id)?;
    publish(tx, &editor, &task, Action::Attached, &file, change(None, Some(&json!(file.id))))?;
    Ok(Created(file))
}

/// Detach a file
///
/// Removes the file from the task. The file itself is kept.
#[operation(delete "/workspaces/{workspaceId}/tasks/{taskId}/files/{fileId}", scope = "tasks:write")]
pub fn detach_task_file(
    tx: &mut Tx,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    Path(file_id): Path<FileId>,
    shapes: State<Shapes>,
) -> Result<Deleted<TaskFile>> {
    let (editor, task) = locked_task(tx, caller, &shapes.0, task_id)?;
    let file = one(tx, &task, file_id)?;
    diesel::delete(task_files::table.find((task_id, file_id))).execute(tx.connection())?;
    publish(tx, &editor, &task, Action::Detached, &file, change(Some(&json!(file.id)), None))?;
    Ok(Deleted::of("task_file", file_id))
}

/// Returns whether a task has files.
pub(super) fn has_any(read: &mut Read, task: TaskId) -> Result<bool> {
    let count: i64 =
        task_files::table.filter(task_files::task_id.eq(task)).count().get_result(read.connection())?;
    Ok(count > 0)
}

/// Returns the files of a task, the last uploaded first. There are at most 100, so they are read without paging.
fn attached(read: &mut Read, workspace: WorkspaceId, task: TaskId) -> Result<Vec<TaskFile>> {
    let rows: Vec<(FileId, JsonText, Timestamp)> = task_files::table
        .filter(task_files::task_id.eq(task))
        .filter(task_files::workspace_id.eq(workspace))
        .order(task_files::file_id.desc())
        .select((task_files::file_id, task_files::attached_by, task_files::attached_at))
        .load(read.connection())?;
    let ids: Vec<FileId> = rows.iter().map(|(id, ..)| *id).collect();
    let mut files: HashMap<FileId, FileRow> =
        files::among(read, workspace, &ids)?.into_iter().map(|file| (file.id, file)).collect();
    let mut attached = Vec::with_capacity(rows.len());
    for (id, attached_by, attached_at) in rows {
        let Some(file) = files.remove(&id) else { continue };
        attached.push(TaskFile {
            id,
            object: "task_file",
            task_id: task,
            name: file.name,
            mime_type: file.mime_type,
            size: file.size,
            attached_by: attached_by.parse()?,
            attached_at,
        });
    }
    Ok(attached)
}

fn one(read: &mut Read, task: &ItemRow, file: FileId) -> Result<TaskFile> {
    let found = attached(read, task.workspace_id, task.id.into())?;
    found.into_iter().find(|attached| attached.id == file).ok_or_else(|| Error::not_found("file"))
}

/// Records the activity entry and the event of an attached or detached file.
fn publish(
    tx: &mut Tx,
    editor: &Editor<'_>,
    task: &ItemRow,
    action: Action,
    file: &TaskFile,
    changed: Value,
) -> Result<()> {
    let changes = Changes::from_iter([("file".to_owned(), changed)]);
    activity::record(tx, &editor.author, task.collection_id, Some(task.id), action, &changes)?;
    let data = TaskFileChanged { task_id: file.task_id, file: file.clone() };
    let event = match action {
        Action::Attached => TaskFileEvent::Attached(data),
        _ => TaskFileEvent::Detached(data),
    };
    tx.emit(task.workspace_id, &editor.author.cause, editor.author.livemode, &event)?;
    Ok(())
}
