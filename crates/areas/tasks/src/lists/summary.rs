//! Counts of tasks. One query reads them all from the table of states.

use super::list::bounds;
use crate::record::model::{AssigneeSummary, DueSummary, StatusSummary, TaskSummary};
use crate::record::task::{TaskAssignee, TaskAssigneeType, TaskStatus};
use crate::schema::task_states;
use business::Calendar;
use diesel::dsl::{count_star, sql};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Timestamp as SqlTimestamp};
use model::{AgentId, Caller, Error, MemberId, Result, Timestamp, WorkspaceId};
use operation::{Json, operation};
use ports::BusinessCalendar;
use store::{Read, each};

/// The counts of tasks with the same assignee and status.
#[derive(Debug, Clone, Queryable)]
struct Group {
    status: TaskStatus,
    user: Option<MemberId>,
    agent: Option<AgentId>,
    tasks: i64,
    blocked: i64,
    ready: i64,
    without_due: i64,
    overdue: i64,
    /// The number of tasks due before the day ends, including overdue ones. The number before the week ends follows.
    before_tomorrow: i64,
    before_next_week: i64,
}

/// Counts by status, assignee and due date
///
/// Counts all tasks in one pass. Days and weeks are those of the business's time zone.
#[operation(get "/workspaces/{workspaceId}/tasks/summary", scope = "tasks:read")]
pub fn get_task_summary(read: &mut Read, caller: &Caller) -> Result<Json<TaskSummary>> {
    let workspace = caller.workspace_id();
    let zone = Calendar.time_zone(read, workspace)?;
    let now = read.now();
    let (tomorrow, next_week) =
        bounds(zone, now).ok_or_else(|| Error::internal("the clock is outside of the calendar"))?;
    let groups = count(read, workspace, now, tomorrow, next_week)?;
    Ok(Json(summary(zone.name(), &groups)))
}

fn count(
    read: &mut Read,
    workspace: WorkspaceId,
    now: Timestamp,
    tomorrow: Timestamp,
    next_week: Timestamp,
) -> Result<Vec<Group>> {
    macro_rules! due_before {
        ($moment:expr) => {
            sql::<BigInt>("SUM(CASE WHEN due_at < ")
                .bind::<SqlTimestamp, _>($moment)
                .sql(" THEN 1 ELSE 0 END)")
        };
    }
    let blocked = sql::<BigInt>("SUM(CASE WHEN is_blocked THEN 1 ELSE 0 END)");
    let ready = sql::<BigInt>("SUM(CASE WHEN is_blocked OR start_at > ")
        .bind::<SqlTimestamp, _>(now)
        .sql(" THEN 0 ELSE 1 END)");
    let without_due = sql::<BigInt>("SUM(CASE WHEN due_at IS NULL THEN 1 ELSE 0 END)");
    let groups = task_states::table
        .filter(task_states::workspace_id.eq(workspace))
        .group_by((task_states::status, task_states::user_id, task_states::agent_id))
        .select((
            task_states::status,
            task_states::user_id,
            task_states::agent_id,
            count_star(),
            blocked,
            ready,
            without_due,
            due_before!(now),
            due_before!(tomorrow),
            due_before!(next_week),
        ));
    Ok(each!(read.connection(), |connection| groups.load(connection))?)
}

fn summary(time_zone: &str, groups: &[Group]) -> TaskSummary {
    let open = || groups.iter().filter(|group| group.status.is_open());
    let of_status =
        |status| groups.iter().filter(|group| group.status == status).map(|group| group.tasks).sum();
    let begun = || open().filter(|group| group.status != TaskStatus::Backlog);
    let overdue: i64 = open().map(|group| group.overdue).sum();
    let before_tomorrow: i64 = open().map(|group| group.before_tomorrow).sum();
    let before_next_week: i64 = open().map(|group| group.before_next_week).sum();
    let none: i64 = open().map(|group| group.without_due).sum();
    let all_open: i64 = open().map(|group| group.tasks).sum();
    let mut by_assignee: Vec<AssigneeSummary> = Vec::new();
    for group in open() {
        let user = group.user.map(|id| TaskAssignee { kind: TaskAssigneeType::User, id: id.0 });
        let agent = group.agent.map(|id| TaskAssignee { kind: TaskAssigneeType::Agent, id: id.0 });
        let assignee = user.or(agent);
        let place = by_assignee.iter().position(|one| one.assignee == assignee);
        match place.and_then(|place| by_assignee.get_mut(place)) {
            Some(one) => {
                one.open += group.tasks;
                one.overdue += group.overdue;
            }
            None => by_assignee.push(AssigneeSummary { assignee, open: group.tasks, overdue: group.overdue }),
        }
    }
    let order = |one: &AssigneeSummary| {
        (-one.open, one.assignee.map(|assignee| (assignee.kind == TaskAssigneeType::Agent, assignee.id)))
    };
    by_assignee.sort_by_key(order);
    TaskSummary {
        object: "task_summary",
        time_zone: time_zone.to_owned(),
        total: groups.iter().map(|group| group.tasks).sum(),
        open: all_open,
        ready: begun().map(|group| group.ready).sum(),
        blocked: open().map(|group| group.blocked).sum(),
        by_status: StatusSummary {
            backlog: of_status(TaskStatus::Backlog),
            todo: of_status(TaskStatus::Todo),
            in_progress: of_status(TaskStatus::InProgress),
            done: of_status(TaskStatus::Done),
            cancelled: of_status(TaskStatus::Cancelled),
        },
        by_assignee,
        due: DueSummary {
            overdue,
            today: before_tomorrow - overdue,
            this_week: before_next_week - before_tomorrow,
            later: all_open - none - before_next_week,
            none,
        },
    }
}
