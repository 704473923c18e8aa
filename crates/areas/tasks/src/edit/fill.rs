//! Applies the values of a task that the record engine does not validate: assignee, item, dates, checklist, parent
//! and dependencies.

use super::change::{self, Change};
use super::editor::TaskEditor;
use crate::dates::series;
use crate::record::graph;
use crate::record::task::{
    Stored, TaskAssignee, TaskAssigneeType, TaskDue, TaskItemRef, put, set_assignee, set_item,
};
use business::Calendar;
use business::team::TeamDirectory;
use chrono_tz::Tz;
use fields::Data;
use model::{AgentId, Code, Error, MemberId, Patch, Result, TaskId, Timestamp, WorkspaceId};
use ports::{BusinessCalendar, Members};
use records::rows;
use serde_json::{Value, json};
use store::Tx;

impl TaskEditor<'_> {
    /// Applies the changes that the record engine does not validate.
    pub(super) fn fill(
        &self,
        tx: &mut Tx,
        id: Option<TaskId>,
        before: &Stored,
        data: &mut Data,
        change: &Change,
    ) -> Result<()> {
        self.fill_references(tx, before, data, change)?;
        let mut due = before.due.clone();
        match &change.due {
            Patch::Keep => {}
            Patch::Clear => due = None,
            Patch::Set(new) => due = Some(new.read(self.business_zone(tx, new.time_zone.is_some())?)?),
        }
        put(data, "due", due.as_ref().map(|due| json!(due)));
        put(data, "due_at", due.as_ref().and_then(TaskDue::moment).map(|at| at.rfc3339().into()));
        refuse_late_start(data, due.as_ref(), change)?;
        if let Some(given) = &change.checklist {
            let entries = change::checklist(&before.checklist, given)?;
            put(data, "checklist", Some(json!(entries)).filter(|_| !entries.is_empty()));
        }
        if let Some(given) = &change.reminders {
            let reminders = change::reminders(given)?;
            put(data, "reminders", Some(json!(reminders)).filter(|_| !reminders.is_empty()));
        }
        match change.parent {
            Patch::Keep => {}
            Patch::Clear => put(data, "parent_id", None),
            Patch::Set(parent) if before.parent_id == Some(parent) => {}
            Patch::Set(parent) => {
                graph::check_parent(tx, self.workspace(), id, parent)?;
                put(data, "parent_id", Some(json!(parent)));
            }
        }
        if let Some(given) = &change.depends_on {
            let mut blockers = given.clone();
            blockers.sort_unstable();
            blockers.dedup();
            if blockers != before.depends_on {
                graph::check_dependencies(tx, self.workspace(), id, given)?;
                set_dependencies(tx, self.workspace(), data, &blockers)?;
            }
        }
        match &change.recurrence {
            Patch::Keep => {
                let kept = before.recurrence.clone();
                let kept = kept.map(|kept| series::settled(kept, due.as_ref(), start_of(data)));
                put(data, "recurrence", kept.map(|kept| json!(kept)));
            }
            Patch::Clear => put(data, "recurrence", None),
            Patch::Set(new) => {
                let business = self.business_zone(tx, new.time_zone.is_some() || due.is_some())?;
                let recurrence =
                    series::read(new, before.recurrence.as_ref(), due.as_ref(), business, tx.now())?;
                let recurrence = series::settled(recurrence, due.as_ref(), start_of(data));
                put(data, "recurrence", Some(json!(recurrence)));
            }
        }
        Ok(())
    }

    /// Applies the assignee and the item. Unchanged ones are not validated, because they may no longer exist.
    fn fill_references(&self, tx: &mut Tx, before: &Stored, data: &mut Data, change: &Change) -> Result<()> {
        match change.assignee {
            Patch::Keep => {}
            Patch::Clear => set_assignee(data, None),
            Patch::Set(assignee) if before.assignee() == Some(assignee) => {}
            Patch::Set(assignee) => {
                self.check_assignee(tx, assignee)?;
                set_assignee(data, Some(assignee));
            }
        }
        match change.item {
            Patch::Keep => {}
            Patch::Clear => set_item(data, None),
            Patch::Set(item) if before.item_ref() == Some(item) => {}
            Patch::Set(item) => {
                if let Some(refusal) = self.item_error(tx, item)? {
                    return Err(refusal);
                }
                set_item(data, Some(item));
            }
        }
        Ok(())
    }

    /// Returns the time zone of the business. If the request gives a time zone, the result does not matter and saves
    /// a query.
    fn business_zone(&self, tx: &mut Tx, is_given: bool) -> Result<Tz> {
        if is_given { Ok(Tz::UTC) } else { Calendar.time_zone(tx, self.workspace()) }
    }

    fn check_assignee(&self, tx: &mut Tx, assignee: TaskAssignee) -> Result<()> {
        let workspace = self.workspace();
        let is_there = match assignee.kind {
            TaskAssigneeType::User => {
                !TeamDirectory.among(tx, workspace, &[MemberId(assignee.id)])?.is_empty()
            }
            TaskAssigneeType::Agent => self.agents.has(tx, workspace, AgentId(assignee.id))?,
        };
        let rule = match assignee.kind {
            TaskAssigneeType::User => "is not a member of the team",
            TaskAssigneeType::Agent => "is not an agent of this workspace",
        };
        if is_there { Ok(()) } else { Err(Error::invalid("assignee.id", rule)) }
    }

    /// Returns the error if an item does not exist, or `None` if it is a live item of the workspace.
    pub(super) fn item_error(&self, tx: &mut Tx, item: TaskItemRef) -> Result<Option<Error>> {
        let refused = |part: &str, rule| Some(Error::invalid(format!("item_ref.{part}"), rule));
        let no_collection = || Ok(refused("collection_id", "is not a collection of this workspace"));
        // Sets of other kinds of records have negative ids.
        if item.collection_id.0 <= 0 {
            return no_collection();
        }
        let shapes = self.records.writer().shapes;
        let found = rows::find_with_shape(tx, shapes, self.workspace(), item.collection_id, item.item_id);
        match found {
            Ok((_, Some(row))) if row.trashed_at.is_none() => Ok(None),
            Ok(_) => Ok(refused("item_id", "is not an item of this collection")),
            Err(error) if error.code() == Code::NotFound => no_collection(),
            Err(error) => Err(error),
        }
    }
}

fn set_dependencies(tx: &mut Tx, workspace: WorkspaceId, data: &mut Data, blockers: &[TaskId]) -> Result<()> {
    let is_blocked = !graph::open_of(tx, workspace, blockers)?.is_empty();
    put(data, "depends_on", Some(json!(blockers)).filter(|_| !blockers.is_empty()));
    put(data, "is_blocked", Some(is_blocked.into()));
    Ok(())
}

/// Returns the start of a task.
fn start_of(data: &Data) -> Option<Timestamp> {
    data.get("start_at").and_then(Value::as_str).and_then(Timestamp::parse)
}

/// Rejects a start after the due date.
fn refuse_late_start(data: &Data, due: Option<&TaskDue>, change: &Change) -> Result<()> {
    let start = start_of(data);
    let due_at = due.and_then(TaskDue::moment);
    match (start, due_at) {
        (Some(start), Some(due_at)) if start > due_at => {
            let param = if matches!(change.due, Patch::Set(_)) { "due" } else { "start_at" };
            let rule =
                if param == "due" { "must not be before `start_at`" } else { "must not be after `due`" };
            Err(Error::invalid(param, rule))
        }
        _ => Ok(()),
    }
}
