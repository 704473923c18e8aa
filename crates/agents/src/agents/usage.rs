//! What an agent did, by day.

use super::queries;
use chrono::{Days, NaiveDate};
use diesel::prelude::*;
use model::{AgentId, Caller, Error, Result, Timestamp, WorkspaceId};
use operation::{Json, Path, Query, operation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::Read;
use store::schema::runs;
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

/// A day of an agent.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct AgentUsageDay {
    /// The day (UTC).
    #[schema(format = Date)]
    date: String,
    /// Runs that began.
    runs: i64,
    /// Of them, those that completed.
    completed: i64,
    /// Of them, those that failed.
    failed: i64,
    /// Tokens of prompts.
    input_tokens: i64,
    /// Tokens of answers.
    output_tokens: i64,
    /// Calls of tools.
    tool_calls: i64,
    /// The mean time from beginning to end of the runs that ended, in milliseconds. Waiting for people counts.
    average_latency_ms: Option<i64>,
    /// Energy spent.
    energy: i64,
}

/// What an agent did.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AgentUsage {
    /// Always `agent_usage`.
    object: &'static str,
    /// The agent.
    agent_id: AgentId,
    /// The first day.
    #[schema(format = Date)]
    from: String,
    /// The last day.
    #[schema(format = Date)]
    to: String,
    /// A row for every day, also for those on which nothing happened.
    days: Vec<AgentUsageDay>,
}

/// Runs, tokens, latency and Energy of the agent by day
///
/// At most 92 days. Runs of test keys count as runs and cost no Energy.
#[operation(get "/agents/{agentId}/usage", scope = "agents:read")]
pub fn get_agent_usage(
    read: &mut Read,
    caller: &Caller,
    Path(agent_id): Path<AgentId>,
    Query(query): Query<UsageQuery>,
) -> Result<Json<AgentUsage>> {
    queries::live_agent(read, caller.workspace_id(), agent_id)?;
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

type UsageRow = (String, i64, i64, i64, i64, Timestamp, Option<Timestamp>);

/// Runs are added up here rather than in SQL, because the databases spell "the day of a time" differently and an
/// agent's runs of 92 days are read in one pass of their index either way.
fn days(
    read: &mut Read,
    workspace: WorkspaceId,
    agent: AgentId,
    from: NaiveDate,
    to: NaiveDate,
) -> Result<Vec<AgentUsageDay>> {
    let end = to.succ_opt().unwrap_or(to);
    let rows: Vec<UsageRow> = runs::table
        .filter(runs::workspace_id.eq(workspace))
        .filter(runs::agent_id.eq(agent))
        .filter(runs::queued_at.ge(Timestamp::day_start(from)))
        .filter(runs::queued_at.lt(Timestamp::day_start(end)))
        .select((
            runs::status,
            runs::input_tokens,
            runs::output_tokens,
            runs::tool_calls,
            runs::energy,
            runs::queued_at,
            runs::completed_at,
        ))
        .load(read.connection())?;
    let mut days: BTreeMap<NaiveDate, (AgentUsageDay, i64, i64)> =
        from.iter_days().take_while(|day| *day <= to).map(|day| (day, Default::default())).collect();
    for (status, input, output, tools, energy, queued_at, completed_at) in rows {
        let Some((day, ended, total_ms)) = days.get_mut(&queued_at.day()) else { continue };
        day.runs += 1;
        day.completed += i64::from(status == "completed");
        day.failed += i64::from(status == "failed");
        day.input_tokens += input;
        day.output_tokens += output;
        day.tool_calls += tools;
        day.energy += energy;
        if let Some(completed_at) = completed_at {
            *ended += 1;
            *total_ms += completed_at.millis() - queued_at.millis();
        }
    }
    let finished = days.into_iter().map(|(date, (mut day, ended, total_ms))| {
        day.date = date.to_string();
        day.average_latency_ms = (ended > 0).then(|| total_ms / ended.max(1));
        day
    });
    Ok(finished.collect())
}
