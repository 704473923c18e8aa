//! Operation: usage of an agent by day.

use crate::schema::runs;
use chrono::{Days, NaiveDate};
use diesel::dsl::{count_star, sql};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use model::{AgentId, Caller, Error, Result, Timestamp, WorkspaceId};
use operation::{Json, Path, Query, Resource, operation};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use store::Read;
use utoipa::{IntoParams, ToSchema};

/// The most days of a report.
const MOST_DAYS: i64 = 92;

/// Which days to report.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct UsageQuery {
    /// The first day (UTC); 29 days before `to` if not given.
    #[serde(default)]
    #[param(value_type = Option<String>, format = Date)]
    from: Option<NaiveDate>,
    /// The last day (UTC); today if not given.
    #[serde(default)]
    #[param(value_type = Option<String>, format = Date)]
    to: Option<NaiveDate>,
}

/// An agent's usage on one day.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[schema(example = json!({
    "runs": 42, "completed": 41, "failed": 1, "input_tokens": 17304, "output_tokens": 1596, "tool_calls": 9,
    "average_latency_ms": 1480, "energy": 504,
}))]
pub struct AgentUsageDay {
    /// The day (UTC).
    #[schema(format = Date)]
    date: String,
    /// The number of runs that started.
    runs: i64,
    /// The number of those runs that completed.
    completed: i64,
    /// The number of those runs that failed.
    failed: i64,
    /// The number of tokens in prompts.
    input_tokens: i64,
    /// The number of tokens in answers.
    output_tokens: i64,
    /// The number of tool calls.
    tool_calls: i64,
    /// The average duration of the runs that ended, in milliseconds. It includes the time spent waiting for approvals.
    average_latency_ms: Option<i64>,
    /// The Energy spent.
    energy: i64,
}

/// An agent's usage by day.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AgentUsage {
    /// Always `agent_usage`.
    object: &'static str,
    /// The agent's id.
    agent_id: AgentId,
    /// The first day.
    #[schema(format = Date)]
    from: String,
    /// The last day.
    #[schema(format = Date)]
    to: String,
    /// One row for each day of the period.
    days: Vec<AgentUsageDay>,
}

/// Runs, tokens, latency and Energy of the agent by day
///
/// Returns one row for each day of the period, at most 92 days. Runs made with test keys are counted, and cost no
/// Energy.
#[operation(get "/agents/{agentId}/usage", scope = "agents:read")]
pub fn get_agent_usage(
    read: &mut Read,
    caller: &Caller,
    Path(agent_id): Path<AgentId>,
    Query(query): Query<UsageQuery>,
) -> Result<Json<AgentUsage>> {
    agents::AgentRow::find(read, caller.workspace_id(), &agent_id)?;
    let to = query.to.unwrap_or_else(|| read.now().day());
    let from = query.from.or_else(|| to.checked_sub_days(Days::new(29))).unwrap_or(to);
    let length = (to - from).num_days() + 1;
    if length < 1 {
        return Err(Error::invalid("from", "must not be after `to`"));
    }
    if length > MOST_DAYS {
        return Err(Error::invalid("from", format_args!("must be within {MOST_DAYS} days of `to`")));
    }
    let days = days(read, caller.workspace_id(), agent_id, from, to)?;
    let (from, to) = (from.to_string(), to.to_string());
    Ok(Json(AgentUsage { object: "agent_usage", agent_id, from, to, days }))
}

/// What happened on one day.
#[derive(Queryable)]
struct DayRow {
    date: String,
    runs: i64,
    completed: i64,
    failed: i64,
    input_tokens: i64,
    output_tokens: i64,
    tool_calls: i64,
    energy: i64,
    /// Runs that ended, and how long they took together.
    ended: i64,
    total_ms: i64,
}

impl From<DayRow> for AgentUsageDay {
    fn from(row: DayRow) -> Self {
        Self {
            date: row.date,
            runs: row.runs,
            completed: row.completed,
            failed: row.failed,
            input_tokens: row.input_tokens,
            output_tokens: row.output_tokens,
            tool_calls: row.tool_calls,
            average_latency_ms: row.total_ms.checked_div(row.ended),
            energy: row.energy,
        }
    }
}

fn days(
    read: &mut Read,
    workspace: WorkspaceId,
    agent: AgentId,
    from: NaiveDate,
    to: NaiveDate,
) -> Result<Vec<AgentUsageDay>> {
    // The day, a run's milliseconds, and the sum of something: the largest number where it would be larger.
    let (day, milliseconds, sum_of) = if read.is_postgres() {
        (
            "to_char(queued_at, 'YYYY-MM-DD')",
            "ROUND(EXTRACT(EPOCH FROM completed_at - queued_at) * 1000)",
            "CAST(LEAST(COALESCE(SUM({of}), 0), 9223372036854775807) AS BIGINT)",
        )
    } else {
        (
            "substr(queued_at, 1, 10)",
            "ROUND((julianday(completed_at) - julianday(queued_at)) * 86400000)",
            "CAST(TOTAL({of}) AS BIGINT)",
        )
    };
    let sum = |of: &str| sql::<BigInt>(&sum_of.replace("{of}", of));
    let of_status = |status: &str| sum(&format!("CASE WHEN status = '{status}' THEN 1 ELSE 0 END"));
    let end = to.succ_opt().unwrap_or(to);
    let rows: Vec<DayRow> = runs::table
        .filter(runs::workspace_id.eq(workspace))
        .filter(runs::agent_id.eq(agent))
        .filter(runs::queued_at.ge(Timestamp::day_start(from)))
        .filter(runs::queued_at.lt(Timestamp::day_start(end)))
        .group_by(sql::<Text>(day))
        .select((
            sql::<Text>(day),
            count_star(),
            of_status("completed"),
            of_status("failed"),
            sum("input_tokens"),
            sum("output_tokens"),
            sum("tool_calls"),
            sum("energy"),
            sql::<BigInt>("COUNT(completed_at)"),
            sum(milliseconds),
        ))
        .load(read.connection())?;
    let mut found: HashMap<String, AgentUsageDay> =
        rows.into_iter().map(|row| (row.date.clone(), row.into())).collect();
    let all = from.iter_days().take_while(|day| *day <= to).map(|day| {
        let date = day.to_string();
        found.remove(&date).unwrap_or_else(|| AgentUsageDay { date, ..AgentUsageDay::default() })
    });
    Ok(all.collect())
}
