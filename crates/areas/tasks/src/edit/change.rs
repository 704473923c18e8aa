//! The changes of a request, in one form for creating and for updating tasks.

use crate::record::model::{
    NewChecklistEntry, NewTask, NewTaskDue, NewTaskRecurrence, NewTaskReminder, TaskPatch,
};
use crate::record::task::{TaskAssignee, TaskItemRef, TaskReminder, TaskStatus, put};
use fields::Data;
use model::{Error, FieldError, Patch, Result, TaskId};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The changes of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Change {
    /// Values that the engine validates, by field.
    pub(crate) data: Data,
    pub(crate) status: Option<TaskStatus>,
    pub(crate) assignee: Patch<TaskAssignee>,
    pub(crate) item: Patch<TaskItemRef>,
    pub(crate) due: Patch<NewTaskDue>,
    pub(crate) checklist: Option<Vec<NewChecklistEntry>>,
    pub(crate) parent: Patch<TaskId>,
    pub(crate) depends_on: Option<Vec<TaskId>>,
    pub(crate) recurrence: Patch<NewTaskRecurrence>,
    pub(crate) reminders: Option<Vec<NewTaskReminder>>,
    pub(crate) external_key: Patch<String>,
    /// Whether to complete the task even if it waits for others.
    pub(crate) force: bool,
}

impl Change {
    /// Builds a change of the status alone.
    pub(crate) fn to_status(status: TaskStatus, force: bool) -> Self {
        Self { status: Some(status), force, ..Self::default() }
    }

    /// Returns whether the change adds dependencies or sets a parent, which requires the lock of the graph.
    pub(crate) fn changes_graph(&self) -> bool {
        self.depends_on.as_ref().is_some_and(|tasks| !tasks.is_empty())
            || matches!(self.parent, Patch::Set(_))
    }

    /// Returns whether the change can affect derived values of other tasks.
    pub(crate) fn affects_others(&self) -> bool {
        self.status.is_some() || self.depends_on.is_some() || self.parent != Patch::Keep
    }

    /// Returns the tasks to which the change refers.
    pub(crate) fn referenced(&self) -> impl Iterator<Item = TaskId> {
        let parent = match self.parent {
            Patch::Set(parent) => Some(parent),
            Patch::Keep | Patch::Clear => None,
        };
        self.depends_on.iter().flatten().copied().chain(parent)
    }
}

impl From<NewTask> for Change {
    fn from(new: NewTask) -> Self {
        let mut data = Data::new();
        put(&mut data, "title", Some(new.title.into()));
        put(&mut data, "description", new.description.map(Value::from));
        put(&mut data, "status_label", new.status_label.map(Value::from));
        put(&mut data, "priority", Some(new.priority.as_str().into()));
        put(&mut data, "start_at", new.start_at.map(|at| at.rfc3339().into()));
        put(&mut data, "estimate_minutes", new.estimate_minutes.map(Value::from));
        put(&mut data, "labels", Some(new.labels.into()));
        put(&mut data, "contact_id", new.contact_id.map(|id| json!([id])));
        put(&mut data, "project", new.project.map(Value::from));
        Self {
            data,
            status: Some(new.status),
            assignee: new.assignee.into(),
            item: new.item_ref.into(),
            due: new.due.into(),
            checklist: Some(new.checklist),
            parent: new.parent_id.into(),
            depends_on: Some(new.depends_on),
            recurrence: new.recurrence.into(),
            reminders: Some(new.reminders),
            external_key: new.external_key.into(),
            force: false,
        }
    }
}

impl From<TaskPatch> for Change {
    fn from(patch: TaskPatch) -> Self {
        let mut data = Data::new();
        put(&mut data, "title", patch.title.map(Value::from));
        put(&mut data, "description", patched(patch.description));
        put(&mut data, "status_label", patched(patch.status_label));
        put(&mut data, "priority", patch.priority.map(|priority| priority.as_str().into()));
        put(&mut data, "start_at", patched(patch.start_at));
        put(&mut data, "estimate_minutes", patched(patch.estimate_minutes));
        put(&mut data, "labels", patch.labels.map(Value::from));
        let contact = match patch.contact_id {
            Patch::Set(id) => Patch::Set([id]),
            Patch::Keep => Patch::Keep,
            Patch::Clear => Patch::Clear,
        };
        put(&mut data, "contact_id", patched(contact));
        put(&mut data, "project", patched(patch.project));
        Self {
            data,
            status: patch.status,
            assignee: patch.assignee,
            item: patch.item_ref,
            due: patch.due,
            checklist: patch.checklist,
            parent: patch.parent_id,
            depends_on: patch.depends_on,
            recurrence: patch.recurrence,
            reminders: patch.reminders,
            external_key: patch.external_key,
            force: patch.force,
        }
    }
}

/// Converts a patch to a value of a field. `None` keeps the field, and `null` clears it.
fn patched(patch: Patch<impl Serialize>) -> Option<Value> {
    patch.given().map(|value| json!(value))
}

/// Validates the reminders of a request, and drops repeated ones.
///
/// # Errors
/// `validation_error` for a reminder with neither or both of `at` and `offset_minutes`.
pub(crate) fn reminders(given: &[NewTaskReminder]) -> Result<Vec<TaskReminder>> {
    let mut errors = Vec::new();
    let mut reminders: Vec<TaskReminder> = Vec::with_capacity(given.len());
    for (place, new) in given.iter().enumerate() {
        let reminder = TaskReminder { at: new.at, offset_minutes: new.offset_minutes };
        if new.at.is_some() == new.offset_minutes.is_some() {
            let rule = "must have either `at` or `offset_minutes`";
            errors.push(FieldError::new(format!("reminders[{place}]"), rule));
        } else if !reminders.contains(&reminder) {
            reminders.push(reminder);
        }
    }
    Error::all_invalid(errors).map_or(Ok(reminders), Err)
}

/// Applies the checklist of a request to that of the task. Entries with ids keep them.
///
/// # Errors
/// `validation_error` for an unknown or repeated id.
pub(crate) fn checklist(
    before: &[crate::record::task::ChecklistEntry],
    given: &[NewChecklistEntry],
) -> Result<Vec<crate::record::task::ChecklistEntry>> {
    let mut next = before.iter().map(|entry| entry.id).max().unwrap_or_default();
    let mut seen = BTreeSet::new();
    let mut errors = Vec::new();
    let mut entries = Vec::with_capacity(given.len());
    for (place, entry) in given.iter().enumerate() {
        let id = match entry.id {
            None => {
                next += 1;
                next
            }
            Some(id) => {
                if !seen.insert(id) || !before.iter().any(|entry| entry.id == id) {
                    let rule = "must be the id of an entry of this checklist, once";
                    errors.push(FieldError::new(format!("checklist[{place}].id"), rule));
                }
                id
            }
        };
        entries.push(crate::record::task::ChecklistEntry { id, text: entry.text.clone(), done: entry.done });
    }
    Error::all_invalid(errors).map_or(Ok(entries), Err)
}
