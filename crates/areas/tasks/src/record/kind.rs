//! The record kind of tasks.

use super::events::TaskEvent;
use super::fields::task_fields;
use super::graph;
use super::task::Task;
use crate::reminders;
use crate::schema::{task_comments, task_files};
use diesel::prelude::*;
use model::{ItemId, TaskId};
use model::{Result, WorkspaceId};
use records::Author;
use records::activity::Action;
use records::shape::{Kind, RecordChange, push_json};
use store::Tx;

/// The record kind of tasks.
pub static TASKS: Kind = Kind {
    number: 2,
    noun: "task",
    set_noun: "task list",
    external_key: "external_key",
    aliases: None,
    referenced_by: None,
    fields: task_fields,
    param: |key| key.to_owned(),
    title: Some("title"),
    indexes: &["labels", "parent_id", "contact_id", "item_id", "assignee_user", "due_at"],
    print: |shown, out| push_json(out, &Task::of(shown.row)?),
    complete: |_, _, _, _| Ok(()),
    match_keys: |_| Vec::new(),
    publish,
};

fn publish(tx: &mut Tx, author: &Author, change: &RecordChange<'_>) -> Result<()> {
    if change.action == Action::Deleted {
        purge(tx, author.workspace, change.row.id)?;
    }
    if let Some(event) = TaskEvent::of(change)? {
        tx.emit(author.workspace, &author.cause, author.livemode, &event)?;
    }
    Ok(())
}

/// Deletes the rows of a permanently deleted task.
fn purge(tx: &mut Tx, workspace: WorkspaceId, task: ItemId) -> Result<()> {
    let task = TaskId::from(task);
    diesel::delete(task_comments::table)
        .filter(task_comments::task_id.eq(task))
        .filter(task_comments::workspace_id.eq(workspace))
        .execute(tx.connection())?;
    diesel::delete(task_files::table)
        .filter(task_files::task_id.eq(task))
        .filter(task_files::workspace_id.eq(workspace))
        .execute(tx.connection())?;
    reminders::delete_of_task(tx, workspace, task)?;
    graph::remove(tx, workspace, task)
}
