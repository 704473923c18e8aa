//! Queries of runs.

use crate::run::{RunRow, RunStatus};
use crate::schema::runs;
use diesel::prelude::*;
use diesel::sql_types::Text;
use model::{AgentId, Result, RunId, Timestamp, WorkspaceId};
use std::collections::HashSet;
use store::{Cached, CursorPage, OneRow, Read, Rows, Tx, each, for_update_skip_locked, lock_row};

/// Duration of a lease: another worker can take a run over after it.
pub(crate) const LEASE_SECONDS: i64 = 30;

/// The states in which a run has not ended.
const OPEN: [&str; 3] = ["queued", "in_progress", "requires_action"];
/// The states in which a worker executes the run.
const WORKED_ON: [&str; 2] = ["queued", "in_progress"];

/// Inserts new runs.
pub(crate) fn insert_all(tx: &mut Tx, rows: &[&RunRow]) -> Result<()> {
    Rows::of(rows)
        .big_int("workspace_id", |row| row.workspace_id)
        .text("id", |row| &row.id)
        .bool("livemode", |row| row.livemode)
        .big_int("agent_id", |row| row.agent_id)
        .big_int("agent_version", |row| row.agent_version)
        .text("status", |row| row.status)
        .text("input", |row| row.input.as_deref())
        .text("conversation_id", |row| row.conversation_id.as_str())
        .bool("ephemeral", |row| row.ephemeral)
        .text("model", |row| row.model)
        .big_int("input_tokens", |row| row.input_tokens)
        .big_int("cached_tokens", |row| row.cached_tokens)
        .big_int("output_tokens", |row| row.output_tokens)
        .big_int("reasoning_tokens", |row| row.reasoning_tokens)
        .big_int("model_calls", |row| row.model_calls)
        .big_int("tool_calls", |row| row.tool_calls)
        .big_int("energy", |row| row.energy)
        .big_int("simulated_energy", |row| row.simulated_energy)
        .text("options", |row| &row.options)
        .text("metadata", |row| &row.metadata)
        .text("key_id", |row| &row.key_id)
        .text("key_lineage", |row| &row.key_lineage)
        .text("request_id", |row| &row.request_id)
        .time("lease_until", |row| row.lease_until)
        .big_int("epoch", |row| row.epoch)
        .time("queued_at", |row| row.queued_at)
        .time("started_at", |row| row.started_at)
        .insert(tx, "runs")
}

/// Inserts a new run.
pub(crate) fn insert(tx: &mut Tx, row: &RunRow) -> Result<()> {
    insert_all(tx, &[row])
}

pub(crate) fn by_id(read: &mut Read, workspace: WorkspaceId, id: &RunId) -> Result<RunRow> {
    runs::table.find((workspace, id)).first(read.connection()).or_not_found("run")
}

/// Filter of a list of runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunFilter {
    pub(crate) status: Option<RunStatus>,
    pub(crate) agent: Option<AgentId>,
    pub(crate) conversation: Option<String>,
}

/// Newest first.
pub(crate) fn list(
    read: &mut Read,
    workspace: WorkspaceId,
    filter: &RunFilter,
    page: &CursorPage,
) -> Result<Vec<RunRow>> {
    let mut query = runs::table
        .filter(runs::workspace_id.eq(workspace))
        .order(runs::id.desc())
        .limit(page.fetch())
        .into_boxed();
    if let Some(status) = filter.status {
        query = query.filter(runs::status.eq(status));
    }
    if let Some(agent) = filter.agent {
        query = query.filter(runs::agent_id.eq(agent));
    }
    if let Some(conversation) = &filter.conversation {
        query = query.filter(runs::conversation_id.eq(conversation));
    }
    if let Some(after) = page.after::<RunId>()? {
        query = query.filter(runs::id.lt(after));
    }
    Ok(query.load(read.connection())?)
}

/// The runs of a run's conversation that have not ended, oldest first.
pub(crate) fn active_in_conversation(read: &mut Read, row: &RunRow) -> Result<Vec<RunRow>> {
    Ok(runs::table
        .filter(runs::workspace_id.eq(row.workspace_id))
        .filter(runs::conversation_id.eq(&row.conversation_id))
        .filter(runs::livemode.eq(row.livemode))
        .filter(runs::agent_id.eq(row.agent_id))
        .filter(runs::status.eq_any(OPEN))
        .order(runs::id.asc())
        .load(read.connection())?)
}

/// Returns whether a queued run must be looked at: its turn has come, its time in the queue is over, its agent is not active,
/// it has ended, or another worker has taken it over.
pub(crate) fn is_due(read: &mut Read, row: &RunRow, expired_before: Timestamp) -> Result<bool> {
    let earlier = diesel::alias!(runs as earlier);
    let waits = runs::table
        .find((row.workspace_id, &row.id))
        .filter(runs::status.eq(RunStatus::Queued))
        .filter(runs::epoch.eq(row.epoch))
        .filter(runs::queued_at.gt(expired_before))
        .filter(diesel::dsl::exists(
            earlier
                .filter(earlier.field(runs::workspace_id).eq(row.workspace_id))
                .filter(earlier.field(runs::conversation_id).eq(&row.conversation_id))
                .filter(earlier.field(runs::livemode).eq(row.livemode))
                .filter(earlier.field(runs::agent_id).eq(row.agent_id))
                .filter(earlier.field(runs::id).lt(&row.id))
                .filter(earlier.field(runs::status).eq_any(OPEN))
                .select(earlier.field(runs::id)),
        ));
    let waits: bool = diesel::select(diesel::dsl::exists(waits)).get_result(read.connection())?;
    Ok(!waits || !agents::queries::is_active(read, row.workspace_id, row.agent_id)?)
}

/// Returns when the last run of a conversation was accepted, of any agent and environment.
pub(crate) fn last_queued_at(
    read: &mut Read,
    workspace: WorkspaceId,
    conversation: &str,
) -> Result<Option<Timestamp>> {
    Ok(runs::table
        .filter(runs::workspace_id.eq(workspace))
        .filter(runs::conversation_id.eq(conversation))
        .order(runs::id.desc())
        .select(runs::queued_at)
        .first(read.connection())
        .optional()?)
}

/// Starts a queued run. Returns `false` if it is not queued any more or another worker has taken it over.
pub(crate) fn start(tx: &mut Tx, row: &RunRow) -> Result<bool> {
    let now = tx.now();
    // An earlier run of the conversation may have moved this one's acceptance on by some milliseconds.
    let started_at = now.max(row.queued_at);
    let started = diesel::update(runs::table.find((row.workspace_id, &row.id)))
        .filter(runs::epoch.eq(row.epoch))
        .filter(runs::status.eq(RunStatus::Queued))
        .set((
            runs::status.eq(RunStatus::InProgress),
            runs::started_at.eq(started_at),
            runs::lease_until.eq(now.plus_seconds(LEASE_SECONDS)),
        ))
        .execute(tx.connection())?;
    Ok(started == 1)
}

/// Starts a new attempt of a failed run. `row` has the next epoch. Returns `false` if the attempt has started already.
pub(crate) fn reopen(tx: &mut Tx, row: &RunRow) -> Result<bool> {
    let reopened = diesel::update(runs::table.find((row.workspace_id, &row.id)))
        .filter(runs::epoch.eq(row.epoch - 1))
        .filter(runs::status.eq(RunStatus::Failed))
        .set((
            runs::status.eq(row.status),
            runs::error.eq(&row.error),
            runs::options.eq(&row.options),
            runs::key_id.eq(&row.key_id),
            runs::request_id.eq(&row.request_id),
            runs::epoch.eq(row.epoch),
            runs::lease_until.eq(row.lease_until),
            runs::started_at.eq(row.started_at),
            runs::completed_at.eq(row.completed_at),
        ))
        .execute(tx.connection())?;
    Ok(reopened == 1)
}

/// Renews the lease. Returns `false` if another worker has taken the run over.
pub(crate) fn renew(tx: &mut Tx, row: &RunRow) -> Result<bool> {
    let until = tx.now().plus_seconds(LEASE_SECONDS);
    let held: Option<i64> = each!(tx.connection(), |connection| {
        let [queued, in_progress] = WORKED_ON;
        let update = diesel::update(runs::table.find((row.workspace_id, &row.id)))
            .filter(runs::epoch.eq(row.epoch))
            .filter(runs::status.eq(queued).or(runs::status.eq(in_progress)))
            .set(runs::lease_until.eq(until))
            .returning(runs::epoch);
        Cached(update).get_result(connection).optional()
    })?;
    Ok(held.is_some())
}

/// Usage of a run.
#[derive(AsChangeset)]
#[diesel(table_name = runs)]
struct Used {
    input_tokens: i64,
    cached_tokens: i64,
    output_tokens: i64,
    reasoning_tokens: i64,
    model_calls: i64,
    tool_calls: i64,
    energy: i64,
    simulated_energy: i64,
}

impl Used {
    fn by(row: &RunRow) -> Self {
        Self {
            input_tokens: row.input_tokens,
            cached_tokens: row.cached_tokens,
            output_tokens: row.output_tokens,
            reasoning_tokens: row.reasoning_tokens,
            model_calls: row.model_calls,
            tool_calls: row.tool_calls,
            energy: row.energy,
            simulated_energy: row.simulated_energy,
        }
    }
}

/// A run that ended as it was written.
#[derive(QueryableByName)]
struct Written {
    #[diesel(sql_type = Text)]
    id: RunId,
}

/// Writes the ends of runs, and returns the ids of those that had not ended and that no other worker has taken over.
pub(crate) fn finish_all(tx: &mut Tx, rows: &[&RunRow]) -> Result<HashSet<RunId>> {
    let written: Vec<Written> = Rows::of(rows)
        .big_int("workspace", |row| row.workspace_id)
        .text("run", |row| &row.id)
        .big_int("epoch", |row| row.epoch)
        .text("status", |row| row.status)
        .text("output", |row| row.output.as_deref())
        .text("reason", |row| row.incomplete_reason.as_deref())
        .text("error", |row| row.error.as_ref())
        .big_int("input_tokens", |row| row.input_tokens)
        .big_int("cached_tokens", |row| row.cached_tokens)
        .big_int("output_tokens", |row| row.output_tokens)
        .big_int("reasoning_tokens", |row| row.reasoning_tokens)
        .big_int("model_calls", |row| row.model_calls)
        .big_int("tool_calls", |row| row.tool_calls)
        .big_int("energy", |row| row.energy)
        .big_int("simulated_energy", |row| row.simulated_energy)
        .time("completed_at", |row| row.completed_at)
        .load(
            tx,
            "UPDATE runs SET status = ended.status, output = ended.output, incomplete_reason = ended.reason,
                error = ended.error, input_tokens = ended.input_tokens, cached_tokens = ended.cached_tokens,
                output_tokens = ended.output_tokens, reasoning_tokens = ended.reasoning_tokens,
                model_calls = ended.model_calls, tool_calls = ended.tool_calls, energy = ended.energy,
                simulated_energy = ended.simulated_energy, lease_until = NULL, completed_at = ended.completed_at
            FROM {ended}
            WHERE runs.workspace_id = ended.workspace AND runs.id = ended.run AND runs.epoch = ended.epoch
                AND runs.status IN ('queued', 'in_progress', 'requires_action')
            RETURNING id",
        )?;
    Ok(written.into_iter().map(|written| written.id).collect())
}

/// Writes the end of a run. Returns `false` if it had ended, or if another worker has taken it over.
pub(crate) fn finish(tx: &mut Tx, row: &RunRow) -> Result<bool> {
    Ok(!finish_all(tx, &[row])?.is_empty())
}

/// Writes the usage of a run that was cancelled during its execution, and ends the lease. Returns `None` if another worker has
/// taken it over, or if it has not ended.
pub(crate) fn note_usage(tx: &mut Tx, row: &RunRow) -> Result<Option<RunRow>> {
    let ended = diesel::dsl::not(runs::status.eq_any(OPEN));
    Ok(diesel::update(
        runs::table.find((row.workspace_id, &row.id)).filter(runs::epoch.eq(row.epoch)).filter(ended),
    )
    .set((Used::by(row), runs::lease_until.eq(None::<Timestamp>)))
    .returning(runs::all_columns)
    .get_result(tx.connection())
    .optional()?)
}

/// Writes the charged Energy of an ended run, where it is less than the price.
pub(crate) fn note_energy(tx: &mut Tx, row: &RunRow) -> Result<()> {
    diesel::update(runs::table.find((row.workspace_id, &row.id)))
        .set(runs::energy.eq(row.energy))
        .execute(tx.connection())?;
    Ok(())
}

/// Returns a run, locked on PostgreSQL until the transaction ends.
pub(crate) fn locked(tx: &mut Tx, workspace: WorkspaceId, id: &RunId) -> Result<RunRow> {
    lock_row!(tx, runs::table.find((workspace, id)).select(runs::epoch), for_update);
    by_id(tx, workspace, id)
}

/// Cancels a run that has not ended, and returns its row. A run in progress keeps its lease: its worker settles it, or the worker
/// that takes it over. A run that waits for an approval has no worker, so its lease ends now. Returns `None` if it has ended.
pub(crate) fn cancel(tx: &mut Tx, row: &RunRow, reason: &str) -> Result<Option<RunRow>> {
    // Workers and answers change its state without the conversation's lock.
    let row = locked(tx, row.workspace_id, &row.id)?;
    let now = tx.now();
    let lease_until = match row.status {
        RunStatus::Queued => None,
        RunStatus::InProgress => row.lease_until,
        RunStatus::RequiresAction => Some(now.plus_seconds(-1)),
        _ => return Ok(None),
    };
    let cancelled = diesel::update(runs::table.find((row.workspace_id, &row.id)))
        .set((
            runs::status.eq(RunStatus::Cancelled),
            runs::incomplete_reason.eq(reason),
            runs::lease_until.eq(lease_until),
            runs::completed_at.eq(now),
        ))
        .returning(runs::all_columns)
        .get_result(tx.connection())?;
    Ok(Some(cancelled))
}

/// Takes over at most `most` runs with an expired lease.
pub(crate) fn claim_silent(tx: &mut Tx, most: i64) -> Result<Vec<RunRow>> {
    let now = tx.now();
    let silent = runs::table.filter(runs::lease_until.lt(now)).order(runs::lease_until.asc()).limit(most);
    let rows: Vec<RunRow> = for_update_skip_locked(silent).load(tx.connection())?;
    rows.into_iter()
        .map(|row| {
            Ok(diesel::update(runs::table.find((row.workspace_id, &row.id)))
                .set((runs::epoch.eq(row.epoch + 1), runs::lease_until.eq(now.plus_seconds(LEASE_SECONDS))))
                .returning(runs::all_columns)
                .get_result(tx.connection())?)
        })
        .collect()
}
