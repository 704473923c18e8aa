//! Creates tasks without a request, for the demo.

use super::change::Change;
use super::editor::TaskEditor;
use crate::record::model::NewTask;
use ::model::{Error, Result, TaskId};
use ports::AgentDirectory;
use records::Author;
use records::shape::Shapes;
use serde_json::Value;
use store::Tx;

/// Creates a task from the body of `POST …/tasks`.
///
/// # Errors
/// The errors of that operation.
pub fn create(
    tx: &mut Tx,
    author: Author,
    shapes: &Shapes,
    agents: &AgentDirectory,
    body: Value,
) -> Result<TaskId> {
    let new: NewTask = serde_json::from_value(body).map_err(Error::internal)?;
    let tasks = TaskEditor::open_as(tx, author, shapes, agents)?;
    Ok(tasks.create(tx, &Change::from(new))?.id.into())
}
