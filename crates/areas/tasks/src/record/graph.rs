//! The graph of tasks: subtasks and dependencies.
//!
//! Records contain the parent and the dependencies of a task. The tables of this module are a reverse index of them,
//! and also store the values of live tasks that are counted. A transaction that adds a dependency or sets a parent
//! first takes the lock of the workspace ([`lock`]). Row locks would not be enough: two transactions can close a
//! cycle without a common task.

use super::task::{Stored, TaskStatus};
use crate::schema::{task_dependencies, task_states};
use diesel::prelude::*;
use model::{AgentId, Code, Error, FieldError, ItemId, MemberId, Result, TaskId, Timestamp, WorkspaceId};
use records::links::LockSet;
use records::rows::ItemRow;
use serde_json::json;
use std::collections::BTreeSet;
use store::{LockMode, Read, Tx, each};

/// The most levels of subtasks. A task without a parent is on the first level.
pub(crate) const DEEPEST: usize = 5;
/// The most tasks that a task can depend on.
pub(crate) const MOST_DEPENDENCIES: usize = 50;

/// The values of a live task by which tasks are counted.
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

/// Locks the graph of a workspace until the transaction ends.
pub(crate) fn lock(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    tx.lock(&format!("task graph {workspace}"))
}

/// Inserts or updates the state of a live task from its record.
pub(crate) fn set_state(tx: &mut Tx, row: &ItemRow) -> Result<()> {
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

/// Replaces the dependencies of a task.
pub(crate) fn set_dependencies(
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

/// Removes a task that is no longer live.
pub(crate) fn remove(tx: &mut Tx, workspace: WorkspaceId, task: TaskId) -> Result<()> {
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

/// Returns the live subtasks of these tasks.
pub(crate) fn children(read: &mut Read, workspace: WorkspaceId, of: &[TaskId]) -> Result<Vec<TaskId>> {
    Ok(task_states::table
        .filter(task_states::parent_id.eq_any(of))
        .filter(task_states::workspace_id.eq(workspace))
        .order(task_states::task_id)
        .select(task_states::task_id)
        .load(read.connection())?)
}

/// Returns the subtasks of a task on all levels, parents before children, and the number of levels.
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

/// Returns the tasks that depend on these tasks.
pub(crate) fn dependents(read: &mut Read, workspace: WorkspaceId, of: &[TaskId]) -> Result<Vec<TaskId>> {
    Ok(task_dependencies::table
        .filter(task_dependencies::blocker_id.eq_any(of))
        .filter(task_dependencies::workspace_id.eq(workspace))
        .order(task_dependencies::task_id)
        .select(task_dependencies::task_id)
        .distinct()
        .load(read.connection())?)
}

/// Returns those of these tasks that are live and open.
pub(crate) fn open_of(read: &mut Read, workspace: WorkspaceId, ids: &[TaskId]) -> Result<Vec<TaskId>> {
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

/// Returns the number of subtasks that are done, and of those that are not cancelled.
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

/// Returns the ancestors of a task, starting with its parent.
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

/// Rejects a parent that does not exist, that is the task itself or below it, or that makes the subtasks too deep. The caller
/// has locked the graph.
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

/// Rejects dependencies that do not exist or that close a cycle. The caller has locked the graph.
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

/// Returns the error for a task that cannot be completed, because it depends on open tasks.
pub(crate) fn blocked(by: &[TaskId]) -> Error {
    Error::new(
        Code::TaskBlocked,
        "The task waits for others that are open. Complete them first, or send `force`.",
    )
    .with("details", json!({ "blocked_by": by }))
}

fn live_among(read: &mut Read, workspace: WorkspaceId, ids: &[TaskId]) -> Result<Vec<TaskId>> {
    Ok(task_states::table
        .filter(task_states::task_id.eq_any(ids))
        .filter(task_states::workspace_id.eq(workspace))
        .select(task_states::task_id)
        .load(read.connection())?)
}

/// Returns the tasks whose derived values can depend on these tasks: their dependents and their parents.
pub(crate) fn affected(read: &mut Read, workspace: WorkspaceId, tasks: &[TaskId]) -> Result<Vec<TaskId>> {
    let mut all = dependents(read, workspace, tasks)?;
    let parents: Vec<Option<TaskId>> = task_states::table
        .filter(task_states::task_id.eq_any(tasks))
        .filter(task_states::workspace_id.eq(workspace))
        .select(task_states::parent_id)
        .load(read.connection())?;
    all.extend(parents.into_iter().flatten());
    Ok(all)
}

/// Builds the set of exclusive locks on these tasks.
pub(crate) fn locks(tasks: impl IntoIterator<Item = TaskId>) -> LockSet {
    let mut locks = LockSet::default();
    locks.add(tasks.into_iter().map(ItemId::from), LockMode::Exclusive);
    locks
}
