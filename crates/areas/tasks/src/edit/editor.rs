//! Writes tasks. All changes go through [`TaskEditor`], because a change of a task can also update derived values of
//! other tasks and create the next task of a series.
//!
//! A transaction first locks the graph if it changes dependencies or parents, then all tasks that it may change, in
//! the order of their ids, and only then writes.

use super::change::Change;
use crate::record::graph;
use crate::record::kind::TASKS;
use crate::record::task::{Stored, TaskStatus, put};
use crate::reminders::{self, Owner, TaskReminders};
use fields::Data;
use fields::value::Mode;
use model::{Caller, ItemId, Patch, Result, TaskId, WorkspaceId};
use ports::AgentDirectory;
use records::rows::values::{self, Missing};
use records::rows::{self, Draft, Editor, ItemRow, Written, live_by_ids};
use records::shape::{Shape, Shapes};
use records::{Author, links, sets};
use serde_json::{Value, json};
use store::Tx;

/// An editor of the tasks of a workspace.
pub(crate) struct TaskEditor<'a> {
    /// The editor of the underlying records.
    pub(crate) records: Editor<'a>,
    pub(super) agents: &'a AgentDirectory,
    /// The owner of the tasks' reminders. `None` for the demo, whose tasks have no reminders.
    caller: Option<&'a Caller>,
}

impl<'a> TaskEditor<'a> {
    /// Returns an editor for the caller's workspace.
    pub(crate) fn open(
        tx: &mut Tx,
        caller: &'a Caller,
        shapes: &'a Shapes,
        agents: &'a AgentDirectory,
    ) -> Result<Self> {
        let tasks = Self::open_as(tx, Author::of(caller), shapes, agents)?;
        Ok(Self { caller: Some(caller), ..tasks })
    }

    /// Returns an editor for any author, without reminders.
    pub(crate) fn open_as(
        tx: &mut Tx,
        author: Author,
        shapes: &'a Shapes,
        agents: &'a AgentDirectory,
    ) -> Result<Self> {
        let shape = sets::for_write(tx, shapes, author.workspace, &TASKS)?;
        Ok(Self { records: Editor::new(shapes, shape, author), agents, caller: None })
    }

    pub(super) fn workspace(&self) -> WorkspaceId {
        self.records.shape.workspace
    }

    pub(super) fn shape(&self) -> &Shape {
        &self.records.shape
    }

    /// Returns a live task that this transaction has locked.
    ///
    /// # Errors
    /// `not_found`.
    pub(crate) fn live(&self, tx: &mut Tx, id: TaskId) -> Result<ItemRow> {
        rows::live(tx, self.shape(), id.into())
    }

    /// Locks all tasks that these changes may affect.
    pub(crate) fn lock(&self, tx: &mut Tx, changes: &[(TaskId, &Change)]) -> Result<()> {
        let workspace = self.workspace();
        if changes.iter().any(|(_, change)| change.changes_graph()) {
            graph::lock(tx, workspace)?;
        }
        let ids = || changes.iter().map(|(id, _)| *id);
        let affecting: Vec<TaskId> =
            changes.iter().filter(|(_, change)| change.affects_others()).map(|(id, _)| *id).collect();
        links::hold(tx, workspace, |tx| {
            let mut all: Vec<TaskId> = ids().collect();
            all.extend(changes.iter().flat_map(|(_, change)| change.referenced()));
            if !affecting.is_empty() {
                let mut affecting = affecting.clone();
                affecting.extend(self.next_tasks(tx, &affecting)?);
                all.extend(graph::affected(tx, workspace, &affecting)?);
                all.extend(affecting);
            }
            Ok(graph::locks(all))
        })
    }

    /// Returns the next tasks of these tasks' series, which exist if these tasks were completed.
    fn next_tasks(&self, tx: &mut Tx, of: &[TaskId]) -> Result<Vec<TaskId>> {
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
        if change.changes_graph() {
            graph::lock(tx, self.workspace())?;
            links::hold(tx, self.workspace(), |_| Ok(graph::locks(change.referenced())))?;
        }
        let mut data = values::merge(self.shape(), None, &change.data, Missing::Default, Mode::Strict, "")?;
        let stored = Stored::default();
        self.fill(tx, None, &stored, &mut data, change)?;
        let status = change.status.unwrap_or_default();
        let is_blocked = is_true(&data, "is_blocked");
        if status == TaskStatus::Done && is_blocked && !change.force {
            return Err(graph::blocked(change.depends_on.as_deref().unwrap_or_default()));
        }
        self.set_status(tx, &mut data, status);
        let external_key = match &change.external_key {
            Patch::Set(key) => Some(key.clone()),
            Patch::Keep | Patch::Clear => None,
        };
        self.insert(tx, data, external_key)
    }

    /// Stores a new task, adds it to the graph, and updates the counts of its parent.
    pub(super) fn insert(
        &self,
        tx: &mut Tx,
        mut data: Data,
        external_key: Option<String>,
    ) -> Result<ItemRow> {
        fields::computed::order(self.shape(), &mut data);
        let row = self.records.writer().insert(tx, Draft { data, external_key, position: None })?;
        let stored = Stored::of(&row)?;
        graph::set_state(tx, &row)?;
        graph::set_dependencies(tx, self.workspace(), row.id.into(), &stored.depends_on)?;
        self.count_subtasks(tx, stored.parent_id)?;
        if !stored.reminders.is_empty() {
            self.update_reminders(tx, row.id.into(), &stored)?;
        }
        Ok(row)
    }

    /// Updates the reminders of a task to match its values.
    fn update_reminders(&self, tx: &mut Tx, id: TaskId, task: &Stored) -> Result<()> {
        let Some(caller) = self.caller else { return Ok(()) };
        let (key, actor) = (&caller.key.id, &self.records.author.cause.actor);
        let owner = Owner { workspace: self.workspace(), key, livemode: caller.livemode(), actor };
        let contact = task.contact_id.first().copied();
        reminders::update(
            tx,
            &owner,
            &TaskReminders { task: id, title: &task.title, contact, moments: task.moments() },
        )
    }

    /// Changes a live task that [`Self::lock`] has locked.
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
            self.change_status(tx, &row, &before, &mut data, status, change.force)?;
        }
        fields::computed::order(self.shape(), &mut data);
        let mut external_key = row.external_key.clone();
        change.external_key.clone().apply(&mut external_key);
        let draft = Draft { data, external_key, position: row.position.clone() };
        let written = self.records.writer().update(tx, row, draft)?;
        if !written.changed {
            return Ok(written);
        }
        let after = Stored::of(&written.row)?;
        graph::set_state(tx, &written.row)?;
        if after.depends_on != before.depends_on {
            graph::set_dependencies(tx, self.workspace(), id, &after.depends_on)?;
        }
        if after.parent_id != before.parent_id || after.status != before.status {
            self.count_subtasks(tx, before.parent_id)?;
            self.count_subtasks(tx, after.parent_id.filter(|parent| Some(*parent) != before.parent_id))?;
        }
        if after.changes_reminders(&before) {
            self.update_reminders(tx, id, &after)?;
        }
        if after.status.is_open() != before.status.is_open() {
            for waiting in graph::dependents(tx, self.workspace(), &[id])? {
                self.update_blocked(tx, waiting, &[])?;
            }
        }
        Ok(written)
    }

    /// Moves one task to the trash and deletes its reminders.
    pub(super) fn move_to_trash(&self, tx: &mut Tx, row: &ItemRow) -> Result<()> {
        self.records.writer().trash(tx, row)?;
        let (id, task) = (TaskId::from(row.id), Stored::of(row)?);
        if !task.reminders.is_empty() {
            self.update_reminders(tx, id, &Stored { reminders: Vec::new(), ..task })?;
        }
        graph::remove(tx, self.workspace(), id)
    }

    /// Updates the counts of subtasks of a parent.
    pub(super) fn count_subtasks(&self, tx: &mut Tx, parent: Option<TaskId>) -> Result<()> {
        let Some(parent) = parent else { return Ok(()) };
        let (done, total) = graph::subtask_counts(tx, self.workspace(), parent)?;
        self.update_derived(tx, parent, |data| {
            put(data, "subtasks_done", Some(json!(done)).filter(|_| total > 0));
            put(data, "subtasks_total", Some(json!(total)).filter(|_| total > 0));
            Ok(())
        })
    }

    /// Updates whether a task is blocked. The tasks `gone` are removed from its dependencies.
    fn update_blocked(&self, tx: &mut Tx, task: TaskId, gone: &[TaskId]) -> Result<()> {
        let row = rows::find_locked(tx, self.shape(), task.into())?;
        let Some(row) = row else { return Ok(()) };
        let blockers: Vec<TaskId> =
            Stored::of(&row)?.depends_on.into_iter().filter(|id| !gone.contains(id)).collect();
        let is_blocked = !graph::open_of(tx, self.workspace(), &blockers)?.is_empty();
        self.update_derived(tx, task, |data| {
            put(data, "depends_on", Some(json!(blockers)).filter(|_| !blockers.is_empty()));
            put(data, "is_blocked", Some(is_blocked.into()));
            Ok(())
        })
    }

    /// Changes derived values of a task. A task in the trash is left as it is.
    fn update_derived(
        &self,
        tx: &mut Tx,
        id: TaskId,
        change: impl FnOnce(&mut Data) -> Result<()>,
    ) -> Result<()> {
        let row = rows::find_locked(tx, self.shape(), id.into())?;
        let Some(row) = row.filter(|row| row.trashed_at.is_none()) else { return Ok(()) };
        let mut data = row.values()?;
        change(&mut data)?;
        fields::computed::order(self.shape(), &mut data);
        let draft = Draft { data, external_key: row.external_key.clone(), position: row.position.clone() };
        let written = self.records.writer().update(tx, row, draft)?;
        if written.changed { graph::set_state(tx, &written.row) } else { Ok(()) }
    }

    /// Moves a task to the trash with its subtasks, and removes them from the dependencies of other tasks. `check`
    /// runs once the task is locked.
    ///
    /// # Errors
    /// `not_found`, and the errors of `check`.
    pub(crate) fn trash(
        &self,
        tx: &mut Tx,
        id: TaskId,
        check: impl FnOnce(&Shape, &ItemRow) -> Result<()>,
    ) -> Result<()> {
        let workspace = self.workspace();
        graph::lock(tx, workspace)?;
        let leaving = |tx: &mut Tx| -> Result<Vec<TaskId>> {
            let mut all = vec![id];
            all.extend(graph::descendants(tx, workspace, id)?.0);
            Ok(all)
        };
        links::hold(tx, workspace, |tx| {
            let mut all = leaving(tx)?;
            all.extend(graph::affected(tx, workspace, &all)?);
            Ok(graph::locks(all))
        })?;
        let row = rows::locked(tx, self.shape(), id.into())?;
        check(self.shape(), &row)?;
        let leaving = leaving(tx)?;
        let waiting = graph::dependents(tx, workspace, &leaving)?;
        for task in leaving.iter().rev() {
            let Some(row) = rows::find_locked(tx, self.shape(), ItemId::from(*task))? else { continue };
            self.move_to_trash(tx, &row)?;
        }
        for task in waiting.into_iter().filter(|task| !leaving.contains(task)) {
            self.update_blocked(tx, task, &leaving)?;
        }
        self.count_subtasks(tx, Stored::of(&row)?.parent_id)
    }
}

fn is_true(data: &Data, key: &str) -> bool {
    data.get(key).and_then(Value::as_bool).unwrap_or_default()
}
