//! How tasks hang together: subtasks, and tasks that wait for others.
//!
//! The records themselves say what their parent and their dependencies are. These tables say the same the other way round,
//! and what is counted of live tasks. Whoever makes a task depend on another, or gives it a parent, first takes the
//! workspace's lock ([`hold_shape`]), because a cycle can close between tasks that two transactions do not share.

use super::task::{Stored, TaskStatus};
use crate::schema::{task_dependencies, task_states};
use diesel::prelude::*;
use model::{AgentId, Error, FieldError, ItemId, MemberId, Result, TaskId, Timestamp, WorkspaceId};
use records::links::LockSet;
use records::rows::ItemRow;
use std::collections::BTreeSet;
use store::{LockMode, Read, Tx, each};

/// How deep subtasks are: a task without a parent is on the first level.
pub(crate) const DEEPEST: usize = 5;
/// The most tasks that a task can depend on.
pub(crate) const MOST_DEPENDENCIES: usize = 50;

/// What is counted of a live task.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = task_states, treat_none_as_null = true)]
struct StateRow {
    task_id: TaskId,
    workspace_id: WorkspaceId,
    parent_id: Option<TaskId>,
    status: TaskStatus,
    user_id: Option<MemberId>,
    agent_id: Option<AgentId>,
    due_at: Option<Timestamp>,
    start_at: Option<Timestamp>,
    is_blocked: bool,
}

/// Lets no other transaction change how the tasks of a workspace hang together until this one ends.
///
/// # Errors
/// When the database fails.
pub(crate) fn hold_shape(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    tx.lock(&format!("task graph {workspace}"))
}

/// Notes a live task as its record now is.
///
/// # Errors
/// When the database fails.
pub(crate) fn note(tx: &mut Tx, row: &ItemRow) -> Result<()> {
    let stored = Stored::of(row)?;
    let state = StateRow {
        task_id: row.id.into(),
        workspace_id: row.workspace_id,
        parent_id: stored.parent_id,
        status: stored.status,
        user_id: stored.member(),
        agent_id: stored.agent(),
        due_at: stored.due_at,
        start_at: stored.start_at,
        is_blocked: stored.is_blocked,
    };
    each!(tx.connection(), |connection| diesel::insert_into(task_states::table)
        .values(&state)
        .on_conflict(task_states::task_id)
        .do_update()
        .set(&state)
        .execute(connection))?;
    Ok(())
}

/// Notes what a task depends on.
///
/// # Errors
/// When the database fails.
pub(crate) fn note_dependencies(
    tx: &mut Tx,
    workspace: WorkspaceId,
    task: TaskId,
    blockers: &[TaskId],
) -> Result<()> {
    diesel::delete(task_dependencies::table.filter(task_dependencies::task_id.eq(task)))
        .execute(tx.connection())?;
    if blockers.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = blockers
        .iter()
        .map(|blocker| {
            (
                task_dependencies::task_id.eq(task),
                task_dependencies::blocker_id.eq(*blocker),
                task_dependencies::workspace_id.eq(workspace),
            )
        })
        .collect();
    each!(tx.connection(), |connection| diesel::insert_into(task_dependencies::table)
        .values(rows)
        .execute(connection))?;
    Ok(())
}

/// Forgets a task that is no longer live.
///
/// # Errors
/// When the database fails.
pub(crate) fn forget(tx: &mut Tx, workspace: WorkspaceId, task: TaskId) -> Result<()> {
    diesel::delete(task_states::table)
        .filter(task_states::task_id.eq(task))
        .filter(task_states::workspace_id.eq(workspace))
        .execute(tx.connection())?;
    diesel::delete(task_dependencies::table)
        .filter(task_dependencies::task_id.eq(task).or(task_dependencies::blocker_id.eq(task)))
        .filter(task_dependencies::workspace_id.eq(workspace))
        .execute(tx.connection())?;
    Ok(())
}

/// The live subtasks of some tasks.
///
/// # Errors
/// When the database fails.
pub(crate) fn children(read: &mut Read, workspace: WorkspaceId, of: &[TaskId]) -> Result<Vec<TaskId>> {
    Ok(task_states::table
        .filter(task_states::parent_id.eq_any(of))
        .filter(task_states::workspace_id.eq(workspace))
        .order(task_states::task_id)
        .select(task_states::task_id)
        .load(read.connection())?)
}

/// The subtasks of a task on all levels, parents before children, and how many levels they are.
///
/// # Errors
/// When the database fails.
pub(crate) fn descendants(
    read: &mut Read,
    workspace: WorkspaceId,
    of: TaskId,
) -> Result<(Vec<TaskId>, usize)> {
    let (mut all, mut level, mut levels) = (Vec::new(), vec![of], 0);
    loop {
        level = children(read, workspace, &level)?;
        if level.is_empty() {
            return Ok((all, levels));
        }
        levels += 1;
        all.extend(&level);
    }
}

/// The tasks that depend on some tasks.
///
/// # Errors
/// When the database fails.
pub(crate) fn dependents(read: &mut Read, workspace: WorkspaceId, of: &[TaskId]) -> Result<Vec<TaskId>> {
    Ok(task_dependencies::table
        .filter(task_dependencies::blocker_id.eq_any(of))
        .filter(task_dependencies::workspace_id.eq(workspace))
        .order(task_dependencies::task_id)
        .select(task_dependencies::task_id)
        .distinct()
        .load(read.connection())?)
}

/// Those of some tasks that are live and open.
///
/// # Errors
/// When the database fails.
pub(crate) fn open_among(read: &mut Read, workspace: WorkspaceId, ids: &[TaskId]) -> Result<Vec<TaskId>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(task_states::table
        .filter(task_states::task_id.eq_any(ids))
        .filter(task_states::workspace_id.eq(workspace))
        .filter(task_states::status.ne_all([TaskStatus::Done, TaskStatus::Cancelled]))
        .order(task_states::task_id)
        .select(task_states::task_id)
        .load(read.connection())?)
}

/// How many subtasks of a task are done, and how many there are beside cancelled ones.
///
/// # Errors
/// When the database fails.
pub(crate) fn subtask_counts(read: &mut Read, workspace: WorkspaceId, of: TaskId) -> Result<(i64, i64)> {
    let counts: Vec<(TaskStatus, i64)> = task_states::table
        .filter(task_states::parent_id.eq(of))
        .filter(task_states::workspace_id.eq(workspace))
        .group_by(task_states::status)
        .select((task_states::status, diesel::dsl::count_star()))
        .load(read.connection())?;
    let sum = |counted: fn(TaskStatus) -> bool| {
        counts.iter().filter(|(status, _)| counted(*status)).map(|(_, count)| count).sum()
    };
    Ok((sum(|status| status == TaskStatus::Done), sum(|status| status != TaskStatus::Cancelled)))
}

/// The tasks above a task, from its parent on.
fn ancestors(read: &mut Read, workspace: WorkspaceId, of: TaskId) -> Result<Vec<TaskId>> {
    let mut above = Vec::new();
    let mut next = Some(of);
    while let Some(task) = next.filter(|_| above.len() <= DEEPEST) {
        let parent: Option<Option<TaskId>> = task_states::table
            .filter(task_states::task_id.eq(task))
            .filter(task_states::workspace_id.eq(workspace))
            .select(task_states::parent_id)
            .first(read.connection())
            .optional()?;
        next = parent.flatten();
        above.extend(next);
    }
    Ok(above)
}

/// Refuses a parent that is not there, that is below the task, or under which its subtasks would be too deep. The
/// caller holds the graph.
///
/// # Errors
/// `validation_error`.
pub(crate) fn check_parent(
    tx: &mut Tx,
    workspace: WorkspaceId,
    task: Option<TaskId>,
    parent: TaskId,
) -> Result<()> {
    if live_among(tx, workspace, &[parent])?.is_empty() {
        return Err(Error::invalid("parent_id", "is not a task of this workspace"));
    }
    let above = ancestors(tx, workspace, parent)?;
    if task.is_some_and(|task| task == parent || above.contains(&task)) {
        return Err(cycle("parent_id", "must not be the task itself or one of its subtasks"));
    }
    let below = match task {
        Some(task) => descendants(tx, workspace, task)?.1,
        None => 0,
    };
    if above.len() + 2 + below > DEEPEST {
        return Err(Error::invalid(
            "parent_id",
            format_args!("must leave subtasks at most {DEEPEST} levels deep"),
        ));
    }
    Ok(())
}

/// Refuses dependencies that are not there, or on which something waits that waits for the task. The caller holds the
/// graph.
///
/// # Errors
/// `validation_error`.
pub(crate) fn check_dependencies(
    tx: &mut Tx,
    workspace: WorkspaceId,
    task: Option<TaskId>,
    blockers: &[TaskId],
) -> Result<()> {
    if blockers.len() > MOST_DEPENDENCIES {
        return Err(Error::invalid(
            "depends_on",
            format_args!("must have at most {MOST_DEPENDENCIES} tasks"),
        ));
    }
    let live = live_among(tx, workspace, blockers)?;
    let missing = blockers.iter().enumerate().filter(|(_, id)| !live.contains(id));
    let missing = missing
        .map(|(place, _)| FieldError::new(format!("depends_on[{place}]"), "is not a task of this workspace"));
    Error::all_invalid(missing.collect()).map_or(Ok(()), Err)?;
    let Some(task) = task else { return Ok(()) };
    let mut seen: BTreeSet<TaskId> = blockers.iter().copied().collect();
    let mut level: Vec<TaskId> = blockers.to_vec();
    while !level.is_empty() {
        if level.contains(&task) {
            return Err(cycle("depends_on", "must not have the task itself or one that waits for it"));
        }
        let next: Vec<TaskId> = task_dependencies::table
            .filter(task_dependencies::task_id.eq_any(&level))
            .filter(task_dependencies::workspace_id.eq(workspace))
            .select(task_dependencies::blocker_id)
            .distinct()
            .load(tx.connection())?;
        level = next.into_iter().filter(|id| seen.insert(*id)).collect();
    }
    Ok(())
}

fn cycle(param: &str, rule: &str) -> Error {
    let error = FieldError::new(param, rule).code("dependency_cycle");
    Error::all_invalid(vec![error]).unwrap_or_else(|| Error::invalid(param, rule))
}

fn live_among(read: &mut Read, workspace: WorkspaceId, ids: &[TaskId]) -> Result<Vec<TaskId>> {
    Ok(task_states::table
        .filter(task_states::task_id.eq_any(ids))
        .filter(task_states::workspace_id.eq(workspace))
        .select(task_states::task_id)
        .load(read.connection())?)
}

/// Tasks that a change of some tasks may change too: those that wait for them, and their parents.
///
/// # Errors
/// When the database fails.
pub(crate) fn concerned(read: &mut Read, workspace: WorkspaceId, tasks: &[TaskId]) -> Result<Vec<TaskId>> {
    let mut all = dependents(read, workspace, tasks)?;
    let parents: Vec<Option<TaskId>> = task_states::table
        .filter(task_states::task_id.eq_any(tasks))
        .filter(task_states::workspace_id.eq(workspace))
        .select(task_states::parent_id)
        .load(read.connection())?;
    all.extend(parents.into_iter().flatten());
    Ok(all)
}

/// The locks of some tasks.
pub(crate) fn locks(tasks: impl IntoIterator<Item = TaskId>) -> LockSet {
    let mut locks = LockSet::default();
    locks.add(tasks.into_iter().map(ItemId::from), LockMode::Exclusive);
    locks
}
