//! Writing tasks: all that creates, changes or deletes one goes through the [`Desk`], which brings the tasks that a change
//! concerns up to date, and makes the next task of a series.
//!
//! A transaction first holds the graph where it ties tasks to each other, then all tasks that it may change, in the order of
//! their ids, and then writes.

use super::change::{self, Change};
use crate::dates::series;
use crate::record::graph;
use crate::record::task::{
    ASSIGNEE_AGENT, ASSIGNEE_USER, Stored, TaskAssignee, TaskAssigneeType, TaskDue, TaskItemRef, TaskStatus,
    put, set_assignee, set_item,
};
use crate::reminders::{self, Owner, TaskReminders};
use business::Calendar;
use business::team::TeamDirectory;
use chrono_tz::Tz;
use contacts::CONTACTS;
use fields::value::Mode;
use fields::{Data, FieldType};
use model::{AgentId, Caller, Code, Error, ItemId, MemberId, Patch, Result, TaskId, Timestamp, WorkspaceId};
use ports::{AgentDirectory, BusinessCalendar, Members};
use records::rows::values::{self, Missing};
use records::rows::{self, Draft, Editor, ItemRow, Written, live_by_ids};
use records::shape::{Shape, Shapes};
use records::{Author, links, sets};
use serde_json::{Value, json};
use store::Tx;

/// Everything that writing tasks takes.
pub(crate) struct Desk<'a> {
    /// The tasks, open for writing.
    pub(crate) editor: Editor<'a>,
    agents: &'a AgentDirectory,
    /// Whose reminders tasks have; nobody's where the demo makes tasks, which have none.
    caller: Option<&'a Caller>,
}

impl<'a> Desk<'a> {
    /// Opens the tasks of a caller's workspace.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) fn open(
        tx: &mut Tx,
        caller: &'a Caller,
        shapes: &'a Shapes,
        agents: &'a AgentDirectory,
    ) -> Result<Self> {
        let desk = Self::open_as(tx, Author::of(caller), shapes, agents)?;
        Ok(Self { caller: Some(caller), ..desk })
    }

    /// The same on behalf of whoever it is.
    pub(crate) fn open_as(
        tx: &mut Tx,
        author: Author,
        shapes: &'a Shapes,
        agents: &'a AgentDirectory,
    ) -> Result<Self> {
        let shape = sets::for_write(tx, shapes, author.workspace, &crate::record::kind::TASKS)?;
        Ok(Self { editor: Editor::new(shapes, shape, author), agents, caller: None })
    }

    fn workspace(&self) -> WorkspaceId {
        self.editor.shape.workspace
    }

    fn shape(&self) -> &Shape {
        &self.editor.shape
    }

    /// A live task that this transaction holds.
    ///
    /// # Errors
    /// `not_found`.
    pub(crate) fn live(&self, tx: &mut Tx, id: TaskId) -> Result<ItemRow> {
        rows::live(tx, self.shape(), id.into())
    }

    /// Holds the tasks that changes may change.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) fn hold(&self, tx: &mut Tx, changes: &[(TaskId, &Change)]) -> Result<()> {
        let workspace = self.workspace();
        if changes.iter().any(|(_, change)| change.ties()) {
            graph::hold_shape(tx, workspace)?;
        }
        let ids = || changes.iter().map(|(id, _)| *id);
        let spreading: Vec<TaskId> =
            changes.iter().filter(|(_, change)| change.spreads()).map(|(id, _)| *id).collect();
        links::hold(tx, workspace, |tx| {
            let mut all: Vec<TaskId> = ids().collect();
            all.extend(changes.iter().flat_map(|(_, change)| change.named()));
            if !spreading.is_empty() {
                let mut spreading = spreading.clone();
                spreading.extend(self.followers(tx, &spreading)?);
                all.extend(graph::concerned(tx, workspace, &spreading)?);
                all.extend(spreading);
            }
            Ok(graph::locks(all))
        })
    }

    /// The tasks that were made when some tasks were completed.
    fn followers(&self, tx: &mut Tx, of: &[TaskId]) -> Result<Vec<TaskId>> {
        let ids: Vec<i64> = of.iter().map(|id| id.0).collect();
        let rows = live_by_ids(tx, self.shape(), &ids)?;
        let mut next = Vec::new();
        for row in &rows {
            next.extend(Stored::of(row)?.recurrence.and_then(|recurrence| recurrence.shown.next_id));
        }
        Ok(next)
    }

    /// Creates a task.
    ///
    /// # Errors
    /// `validation_error`, `duplicate_value`.
    pub(crate) fn create(&self, tx: &mut Tx, change: &Change) -> Result<ItemRow> {
        if change.ties() {
            graph::hold_shape(tx, self.workspace())?;
            links::hold(tx, self.workspace(), |_| Ok(graph::locks(change.named())))?;
        }
        let mut data = values::merge(self.shape(), None, &change.data, Missing::Default, Mode::Strict, "")?;
        let stored = Stored::default();
        self.fill(tx, None, &stored, &mut data, change)?;
        let status = change.status.unwrap_or_default();
        let is_blocked = is_true(&data, "is_blocked");
        if status == TaskStatus::Done && is_blocked && !change.force {
            return Err(blocked(change.depends_on.as_deref().unwrap_or_default()));
        }
        self.close(tx, &mut data, status);
        let external_key = match &change.external_key {
            Patch::Set(key) => Some(key.clone()),
            Patch::Keep | Patch::Clear => None,
        };
        self.insert(tx, data, external_key)
    }

    /// Stores a new task, notes it, and counts it with its parent.
    fn insert(&self, tx: &mut Tx, mut data: Data, external_key: Option<String>) -> Result<ItemRow> {
        fields::computed::order(self.shape(), &mut data);
        let row = self.editor.writer().insert(tx, Draft { data, external_key, position: None })?;
        let stored = Stored::of(&row)?;
        graph::note(tx, &row)?;
        graph::note_dependencies(tx, self.workspace(), row.id.into(), &stored.depends_on)?;
        self.recount(tx, stored.parent_id)?;
        if !stored.reminders.is_empty() {
            self.remind(tx, row.id.into(), &stored)?;
        }
        Ok(row)
    }

    /// Makes the reminders of a task those that it says.
    fn remind(&self, tx: &mut Tx, id: TaskId, task: &Stored) -> Result<()> {
        let Some(caller) = self.caller else { return Ok(()) };
        let (key, actor) = (&caller.key.id, &self.editor.author.cause.actor);
        let owner = Owner { workspace: self.workspace(), key, livemode: caller.livemode(), actor };
        let contact = task.contact_id.first().copied();
        reminders::follow(
            tx,
            &owner,
            &TaskReminders { task: id, title: &task.title, contact, moments: task.moments() },
        )
    }

    /// Changes a live task that [`Self::hold`] holds.
    ///
    /// # Errors
    /// `validation_error`, `task_blocked`, `invalid_state`, `duplicate_value`.
    pub(crate) fn change(&self, tx: &mut Tx, row: ItemRow, change: &Change) -> Result<Written> {
        let id = TaskId::from(row.id);
        let before = Stored::of(&row)?;
        let old = row.values()?;
        let mut data =
            values::merge(self.shape(), Some(&old), &change.data, Missing::Keep, Mode::Strict, "")?;
        self.fill(tx, Some(id), &before, &mut data, change)?;
        let status = change.status.unwrap_or(before.status);
        if status != before.status {
            self.move_to(tx, &row, &before, &mut data, status, change.force)?;
        }
        fields::computed::order(self.shape(), &mut data);
        let mut external_key = row.external_key.clone();
        change.external_key.clone().apply(&mut external_key);
        let draft = Draft { data, external_key, position: row.position.clone() };
        let written = self.editor.writer().update(tx, row, draft)?;
        if !written.changed {
            return Ok(written);
        }
        let after = Stored::of(&written.row)?;
        graph::note(tx, &written.row)?;
        if after.depends_on != before.depends_on {
            graph::note_dependencies(tx, self.workspace(), id, &after.depends_on)?;
        }
        if after.parent_id != before.parent_id || after.status != before.status {
            self.recount(tx, before.parent_id)?;
            self.recount(tx, after.parent_id.filter(|parent| Some(*parent) != before.parent_id))?;
        }
        if after.reminds_otherwise(&before) {
            self.remind(tx, id, &after)?;
        }
        if after.status.is_open() != before.status.is_open() {
            for waiting in graph::dependents(tx, self.workspace(), &[id])? {
                self.unblock(tx, waiting, &[])?;
            }
        }
        Ok(written)
    }

    /// Fills in what the engine does not check: the assignee, the due date, the checklist, parent, dependencies, series.
    fn fill(
        &self,
        tx: &mut Tx,
        id: Option<TaskId>,
        before: &Stored,
        data: &mut Data,
        change: &Change,
    ) -> Result<()> {
        self.fill_named(tx, before, data, change)?;
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

    /// Fills in the assignee and the item. Those that the task has already may be gone.
    fn fill_named(&self, tx: &mut Tx, before: &Stored, data: &mut Data, change: &Change) -> Result<()> {
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
                if let Some(refusal) = self.missing_item(tx, item)? {
                    return Err(refusal);
                }
                set_item(data, Some(item));
            }
        }
        Ok(())
    }

    /// The time zone of the business, unless it is not needed.
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

    /// Why a task cannot be about an item; `None` for a live one of a collection of the workspace.
    fn missing_item(&self, tx: &mut Tx, item: TaskItemRef) -> Result<Option<Error>> {
        let refused = |part: &str, rule| Some(Error::invalid(format!("item_ref.{part}"), rule));
        let no_collection = || Ok(refused("collection_id", "is not a collection of this workspace"));
        // The sets of other records have negative ids.
        if item.collection_id.0 <= 0 {
            return no_collection();
        }
        let shapes = self.editor.writer().shapes;
        let found = rows::find_with_shape(tx, shapes, self.workspace(), item.collection_id, item.item_id);
        match found {
            Ok((_, Some(row))) if row.trashed_at.is_none() => Ok(None),
            Ok(_) => Ok(refused("item_id", "is not an item of this collection")),
            Err(error) if error.code() == Code::NotFound => no_collection(),
            Err(error) => Err(error),
        }
    }

    /// Moves a task to another status: completes it, cancels it or opens it again.
    fn move_to(
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
            let open = graph::open_among(tx, self.workspace(), &depends_on)?;
            if !open.is_empty() && !force {
                return Err(blocked(&open));
            }
            self.follow(tx, row.id.into(), data)?;
        } else if before.status == TaskStatus::Done {
            self.take_back_next(tx, data)?;
        }
        self.close(tx, data, status);
        Ok(())
    }

    /// Sets a status and the times that go with it.
    fn close(&self, tx: &Tx, data: &mut Data, status: TaskStatus) {
        let now = |wanted: TaskStatus| (status == wanted).then(|| Value::from(tx.now().rfc3339()));
        put(data, "status", Some(status.as_str().into()));
        put(data, "completed_at", now(TaskStatus::Done));
        put(data, "cancelled_at", now(TaskStatus::Cancelled));
    }

    /// Makes the task that follows a recurring one, which has the values `data` and is being completed.
    fn follow(&self, tx: &mut Tx, id: TaskId, data: &mut Data) -> Result<()> {
        let task: Stored = serde_json::from_value(json!(data)).map_err(Error::internal)?;
        let Some(following) = series::following(&task, id, tx.now()) else { return Ok(()) };
        let mut next = data.clone();
        for gone in ["status_label", "depends_on", "is_blocked", "subtasks_done", "subtasks_total"] {
            put(&mut next, gone, None);
        }
        self.leave_out_gone(tx, &task, &mut next)?;
        // A moment was that of one task of the series.
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
        self.close(tx, &mut next, TaskStatus::Todo);
        let next = self.insert(tx, next, None)?;
        let recurrence = task.recurrence.map(|mut recurrence| {
            recurrence.shown.next_id = Some(next.id.into());
            json!(recurrence)
        });
        put(data, "recurrence", recurrence);
        Ok(())
    }

    /// Leaves out of a task that is made of another the contact, the item and the assignee, if they are gone.
    fn leave_out_gone(&self, tx: &mut Tx, task: &Stored, data: &mut Data) -> Result<()> {
        let workspace = self.workspace();
        if let Some(contact) = task.contact_id.first().map(|id| ItemId(id.0)) {
            let survivors = self.shape().merged.survivors(tx, FieldType::Contact, workspace, &[contact])?;
            let contact = survivors.get(&contact).unwrap_or(&contact).0;
            let is_gone = rows::live_among(tx, CONTACTS.set_of(workspace), &[contact])?.is_empty();
            put(data, "contact_id", (!is_gone).then(|| json!([contact])));
        }
        if let Some(item) = task.item_ref()
            && self.missing_item(tx, item)?.is_some()
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

    /// Moves the task that followed one which is opened again to the trash, if nothing was done with it.
    fn take_back_next(&self, tx: &mut Tx, data: &mut Data) -> Result<()> {
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
        self.leave(tx, &row)?;
        self.recount(tx, parent)
    }

    /// Moves one task to the trash, where it reminds of nothing.
    fn leave(&self, tx: &mut Tx, row: &ItemRow) -> Result<()> {
        self.editor.writer().trash(tx, row)?;
        let (id, task) = (TaskId::from(row.id), Stored::of(row)?);
        if !task.reminders.is_empty() {
            self.remind(tx, id, &Stored { reminders: Vec::new(), ..task })?;
        }
        graph::forget(tx, self.workspace(), id)
    }

    /// Counts the subtasks of a task anew.
    fn recount(&self, tx: &mut Tx, parent: Option<TaskId>) -> Result<()> {
        let Some(parent) = parent else { return Ok(()) };
        let (done, total) = graph::subtask_counts(tx, self.workspace(), parent)?;
        self.settle(tx, parent, |data| {
            put(data, "subtasks_done", Some(json!(done)).filter(|_| total > 0));
            put(data, "subtasks_total", Some(json!(total)).filter(|_| total > 0));
            Ok(())
        })
    }

    /// Brings up to date whether a task waits for others, of which some are `gone`.
    fn unblock(&self, tx: &mut Tx, task: TaskId, gone: &[TaskId]) -> Result<()> {
        let row = rows::find_locked(tx, self.shape(), task.into())?;
        let Some(row) = row else { return Ok(()) };
        let blockers: Vec<TaskId> =
            Stored::of(&row)?.depends_on.into_iter().filter(|id| !gone.contains(id)).collect();
        let is_blocked = !graph::open_among(tx, self.workspace(), &blockers)?.is_empty();
        self.settle(tx, task, |data| {
            put(data, "depends_on", Some(json!(blockers)).filter(|_| !blockers.is_empty()));
            put(data, "is_blocked", Some(is_blocked.into()));
            Ok(())
        })
    }

    /// Changes values of a live task that follow from other tasks.
    fn settle(&self, tx: &mut Tx, id: TaskId, change: impl FnOnce(&mut Data) -> Result<()>) -> Result<()> {
        let row = rows::find_locked(tx, self.shape(), id.into())?;
        let Some(row) = row.filter(|row| row.trashed_at.is_none()) else { return Ok(()) };
        let mut data = row.values()?;
        change(&mut data)?;
        fields::computed::order(self.shape(), &mut data);
        let draft = Draft { data, external_key: row.external_key.clone(), position: row.position.clone() };
        let written = self.editor.writer().update(tx, row, draft)?;
        if written.changed { graph::note(tx, &written.row) } else { Ok(()) }
    }

    /// Moves a task to the trash with its subtasks, `check`ed when it is held. Tasks that depended on them no longer do.
    ///
    /// # Errors
    /// `not_found`, and those of `check`.
    pub(crate) fn trash(
        &self,
        tx: &mut Tx,
        id: TaskId,
        check: impl FnOnce(&Shape, &ItemRow) -> Result<()>,
    ) -> Result<()> {
        let workspace = self.workspace();
        graph::hold_shape(tx, workspace)?;
        let leaving = |tx: &mut Tx| -> Result<Vec<TaskId>> {
            let mut all = vec![id];
            all.extend(graph::descendants(tx, workspace, id)?.0);
            Ok(all)
        };
        links::hold(tx, workspace, |tx| {
            let mut all = leaving(tx)?;
            all.extend(graph::concerned(tx, workspace, &all)?);
            Ok(graph::locks(all))
        })?;
        let row = rows::locked(tx, self.shape(), id.into())?;
        check(self.shape(), &row)?;
        let leaving = leaving(tx)?;
        let waiting = graph::dependents(tx, workspace, &leaving)?;
        for task in leaving.iter().rev() {
            let Some(row) = rows::find_locked(tx, self.shape(), ItemId::from(*task))? else { continue };
            self.leave(tx, &row)?;
        }
        for task in waiting.into_iter().filter(|task| !leaving.contains(task)) {
            self.unblock(tx, task, &leaving)?;
        }
        self.recount(tx, Stored::of(&row)?.parent_id)
    }
}

fn set_dependencies(tx: &mut Tx, workspace: WorkspaceId, data: &mut Data, blockers: &[TaskId]) -> Result<()> {
    let is_blocked = !graph::open_among(tx, workspace, blockers)?.is_empty();
    put(data, "depends_on", Some(json!(blockers)).filter(|_| !blockers.is_empty()));
    put(data, "is_blocked", Some(is_blocked.into()));
    Ok(())
}

fn depends_on(data: &Data) -> Vec<TaskId> {
    let ids = data.get("depends_on").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    ids.iter().filter_map(Value::as_i64).map(TaskId).collect()
}

/// When work on a task can begin.
fn start_of(data: &Data) -> Option<Timestamp> {
    data.get("start_at").and_then(Value::as_str).and_then(Timestamp::parse)
}

fn is_true(data: &Data, key: &str) -> bool {
    data.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn blocked(by: &[TaskId]) -> Error {
    Error::new(
        Code::TaskBlocked,
        "The task waits for others that are open. Complete them first, or send `force`.",
    )
    .with("details", json!({ "blocked_by": by }))
}

/// Refuses a task that could be begun only after it is due.
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
