//! Changes of a task's status, and the next task of a series.

use super::editor::TaskEditor;
use crate::dates::series;
use crate::record::graph;
use crate::record::task::{ASSIGNEE_AGENT, ASSIGNEE_USER, Stored, TaskStatus, put, set_item};
use business::team::TeamDirectory;
use contacts::CONTACTS;
use fields::{Data, FieldType};
use model::{Code, Error, ItemId, Result, TaskId};
use ports::Members;
use records::rows::{self, ItemRow};
use serde_json::{Value, json};
use store::Tx;

impl TaskEditor<'_> {
    /// Completes, cancels or reopens a task.
    pub(super) fn change_status(
        &self,
        tx: &mut Tx,
        row: &ItemRow,
        before: &Stored,
        data: &mut Data,
        status: TaskStatus,
        force: bool,
    ) -> Result<()> {
        if !before.status.is_open() && !status.is_open() {
            let message =
                format!("The task is {}. Reopen it first.", before.status.as_str().replace('_', " "));
            return Err(
                Error::new(Code::InvalidState, message).with("details", json!({ "state": before.status }))
            );
        }
        if status == TaskStatus::Done {
            let depends_on = depends_on(data);
            let open = graph::open_of(tx, self.workspace(), &depends_on)?;
            if !open.is_empty() && !force {
                return Err(graph::blocked(&open));
            }
            self.create_next(tx, row.id.into(), data)?;
        } else if before.status == TaskStatus::Done {
            self.trash_next(tx, data)?;
        }
        self.set_status(tx, data, status);
        Ok(())
    }

    /// Sets `status`, `completed_at` and `cancelled_at`.
    pub(super) fn set_status(&self, tx: &Tx, data: &mut Data, status: TaskStatus) {
        let now = |wanted: TaskStatus| (status == wanted).then(|| Value::from(tx.now().rfc3339()));
        put(data, "status", Some(status.as_str().into()));
        put(data, "completed_at", now(TaskStatus::Done));
        put(data, "cancelled_at", now(TaskStatus::Cancelled));
    }

    /// Creates the next task of a series. `data` are the values of the task that is being completed.
    fn create_next(&self, tx: &mut Tx, id: TaskId, data: &mut Data) -> Result<()> {
        let task: Stored = serde_json::from_value(json!(data)).map_err(Error::internal)?;
        let Some(following) = series::following(&task, id, tx.now()) else { return Ok(()) };
        let mut next = data.clone();
        for gone in ["status_label", "depends_on", "is_blocked", "subtasks_done", "subtasks_total"] {
            put(&mut next, gone, None);
        }
        self.clear_missing(tx, &task, &mut next)?;
        // A reminder with a fixed moment belongs to this task only.
        let reminders: Vec<_> = task.reminders.iter().filter(|reminder| reminder.at.is_none()).collect();
        put(&mut next, "reminders", Some(json!(reminders)).filter(|_| !reminders.is_empty()));
        put(&mut next, "start_at", following.start_at.map(|at| at.rfc3339().into()));
        put(&mut next, "due", Some(json!(following.due)));
        put(&mut next, "due_at", following.due.moment().map(|at| at.rfc3339().into()));
        put(&mut next, "is_blocked", Some(false.into()));
        let mut checklist = task.checklist.clone();
        checklist.iter_mut().for_each(|entry| entry.done = false);
        put(&mut next, "checklist", Some(json!(checklist)).filter(|_| !checklist.is_empty()));
        put(&mut next, "recurrence", Some(json!(following.recurrence)));
        self.set_status(tx, &mut next, TaskStatus::Todo);
        let next = self.insert(tx, next, None)?;
        let recurrence = task.recurrence.map(|mut recurrence| {
            recurrence.shown.next_id = Some(next.id.into());
            json!(recurrence)
        });
        put(data, "recurrence", recurrence);
        Ok(())
    }

    /// Clears the contact, the item and the assignee of the next task if they no longer exist.
    fn clear_missing(&self, tx: &mut Tx, task: &Stored, data: &mut Data) -> Result<()> {
        let workspace = self.workspace();
        if let Some(contact) = task.contact_id.first().map(|id| ItemId(id.0)) {
            let survivors = self.shape().merged.survivors(tx, FieldType::Contact, workspace, &[contact])?;
            let contact = survivors.get(&contact).unwrap_or(&contact).0;
            let is_gone = rows::live_among(tx, CONTACTS.set_of(workspace), &[contact])?.is_empty();
            put(data, "contact_id", (!is_gone).then(|| json!([contact])));
        }
        if let Some(item) = task.item_ref()
            && self.item_error(tx, item)?.is_some()
        {
            set_item(data, None);
        }
        if let Some(member) = task.member()
            && TeamDirectory.among(tx, workspace, &[member])?.is_empty()
        {
            put(data, ASSIGNEE_USER, None);
        }
        if let Some(agent) = task.agent()
            && !self.agents.has(tx, workspace, agent)?
        {
            put(data, ASSIGNEE_AGENT, None);
        }
        Ok(())
    }

    /// Undoes a recurrence when a completed task is reopened: trashes the next task, unless that was changed or used.
    fn trash_next(&self, tx: &mut Tx, data: &mut Data) -> Result<()> {
        let task: Stored = serde_json::from_value(json!(data)).map_err(Error::internal)?;
        let Some(mut recurrence) = task.recurrence else { return Ok(()) };
        let Some(next) = recurrence.shown.next_id.take() else { return Ok(()) };
        put(data, "recurrence", Some(json!(recurrence)));
        let row = rows::find_locked(tx, self.shape(), next.into())?;
        let Some(row) = row.filter(|row| row.trashed_at.is_none() && row.version == 1) else { return Ok(()) };
        let is_used = row.comment_count > 0
            || crate::files::has_any(tx, next)?
            || !graph::dependents(tx, self.workspace(), &[next])?.is_empty();
        if is_used {
            return Ok(());
        }
        let parent = Stored::of(&row)?.parent_id;
        self.move_to_trash(tx, &row)?;
        self.count_subtasks(tx, parent)
    }
}

fn depends_on(data: &Data) -> Vec<TaskId> {
    let ids = data.get("depends_on").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    ids.iter().filter_map(Value::as_i64).map(TaskId).collect()
}
