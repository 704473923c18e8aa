//! Queries of runs and steps.

use super::model::{RunRow, RunStatus};
use super::rows::StepRow;
use super::rows::StepStatus;
use crate::schema::{conversation_memories, run_steps, runs, test_run_days};
use diesel::prelude::*;
use model::{AgentId, Code, Error, JsonText, Result, RunId, Timestamp, WorkspaceId};
use store::{Cached, CachedChange, CursorPage, OneRow, Read, Tx, each, lock_row};

/// How long a worker may be silent before its run can be taken over.
pub(super) const LEASE_SECONDS: i64 = 30;

/// The states in which a run has not ended.
const OPEN: [&str; 3] = ["queued", "in_progress", "requires_action"];
/// Those in which a worker is at it.
const WORKED_ON: [&str; 2] = ["queued", "in_progress"];

pub(super) fn insert(tx: &mut Tx, row: &RunRow) -> Result<()> {
    diesel::insert_into(runs::table).values(row.clone()).execute(tx.connection())?;
    Ok(())
}

pub(super) fn by_id(read: &mut Read, workspace: WorkspaceId, id: &RunId) -> Result<RunRow> {
    runs::table.find((workspace, id)).first(read.connection()).or_not_found("run")
}

/// Which runs to list.
#[derive(Debug, Clone, Default)]
pub(super) struct RunFilter {
    pub(super) status: Option<RunStatus>,
    pub(super) agent: Option<AgentId>,
    pub(super) conversation: Option<String>,
}

/// Newest first.
pub(super) fn list(
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
pub(super) fn active_in_conversation(read: &mut Read, row: &RunRow) -> Result<Vec<RunRow>> {
    Ok(runs::table
        .filter(runs::workspace_id.eq(row.workspace_id))
        .filter(runs::conversation_id.eq(&row.conversation_id))
        .filter(runs::livemode.eq(row.livemode))
        .filter(runs::agent_id.eq(row.agent_id))
        .filter(runs::status.eq_any(OPEN))
        .order(runs::id.asc())
        .load(read.connection())?)
}

/// Whether a queued run of this epoch has something to do: its turn has come, its time is over, its agent was switched
/// off, or it has ended.
pub(super) fn is_due(read: &mut Read, row: &RunRow, expired_before: Timestamp) -> Result<bool> {
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

/// When the last run of a conversation was accepted, whoever's it was.
pub(super) fn last_queued_at(
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

/// The turns up to one of them, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) text: String,
    /// The [place](Exchange::place) of the last turn in it.
    pub(super) through: String,
}

/// A turn of a conversation: what was said, and what was answered if anything was.
#[derive(Debug, Clone, PartialEq, Eq, Queryable)]
pub(super) struct Exchange {
    /// Orders the turns of a conversation: the id of the run, or [`of_message`](super::channel_memory::of_message).
    pub(super) place: String,
    pub(super) input: Option<String>,
    pub(super) output: Option<String>,
}

/// The last turns of a run's conversation before it, and behind `after`, oldest first.
pub(super) fn turns(read: &mut Read, row: &RunRow, after: Option<&str>, most: i64) -> Result<Vec<Exchange>> {
    let mut query = runs::table
        .filter(runs::workspace_id.eq(row.workspace_id))
        .filter(runs::conversation_id.eq(&row.conversation_id))
        .filter(runs::livemode.eq(row.livemode))
        .filter(runs::agent_id.eq(row.agent_id))
        .filter(runs::id.lt(&row.id))
        .filter(
            runs::status
                .eq_any([RunStatus::Completed, RunStatus::Incomplete])
                .or(runs::status.eq(RunStatus::Cancelled).and(runs::incomplete_reason.eq("interrupted"))),
        )
        // What guardrails kept from the model stays kept from it.
        .filter(
            runs::incomplete_reason.is_null().or(runs::incomplete_reason.ne_all(["guardrail", "handoff"])),
        )
        .order(runs::id.desc())
        .limit(most)
        .select((runs::id, runs::input, runs::output))
        .into_boxed();
    if let Some(after) = after {
        query = query.filter(runs::id.gt(after));
    }
    let mut turns: Vec<Exchange> = query.load(read.connection())?;
    turns.reverse();
    Ok(turns)
}

/// What is left of the turns of a run's conversation that were folded.
pub(super) fn summary(read: &mut Read, row: &RunRow) -> Result<Option<Summary>> {
    use conversation_memories as m;
    let found: Option<(String, String)> = m::table
        .find((row.workspace_id, &row.conversation_id, row.agent_id, row.livemode))
        .select((m::summary, m::through_run))
        .get_result(read.connection())
        .optional()?;
    Ok(found.map(|(text, through)| Summary { text, through }))
}

/// Keeps what is left of the folded turns of a run's conversation.
pub(super) fn keep_summary(tx: &mut Tx, row: &RunRow, summary: &Summary) -> Result<()> {
    use conversation_memories as m;
    let now = tx.now();
    let text = (m::summary.eq(&summary.text), m::through_run.eq(&summary.through), m::updated_at.eq(now));
    let place = (
        m::workspace_id.eq(row.workspace_id),
        m::conversation_id.eq(&row.conversation_id),
        m::agent_id.eq(row.agent_id),
        m::livemode.eq(row.livemode),
    );
    each!(tx.connection(), |connection| diesel::insert_into(m::table)
        .values((place, text))
        .on_conflict((m::workspace_id, m::conversation_id, m::agent_id, m::livemode))
        .do_update()
        .set(text)
        .execute(connection))?;
    Ok(())
}

/// Counts a test run against the day's cap.
///
/// # Errors
/// `test_run_daily_cap`; the transaction is then rolled back, and the count with it.
pub(super) fn count_test_run(tx: &mut Tx, workspace: WorkspaceId, cap: i64) -> Result<()> {
    let now = tx.now();
    let day = now.day().to_string();
    each!(tx.connection(), |connection| diesel::insert_into(test_run_days::table)
        .values((
            test_run_days::workspace_id.eq(workspace),
            test_run_days::day.eq(&day),
            test_run_days::runs.eq(1),
        ))
        .on_conflict((test_run_days::workspace_id, test_run_days::day))
        .do_update()
        .set(test_run_days::runs.eq(test_run_days::runs + 1))
        .execute(connection))?;
    let runs: i64 =
        test_run_days::table.find((workspace, &day)).select(test_run_days::runs).first(tx.connection())?;
    if runs <= cap {
        return Ok(());
    }
    let tomorrow = Timestamp::day_start(now.day()).plus_seconds(86_400);
    Err(Error::new(Code::TestRunDailyCap, format!("The workspace has used its {cap} test runs of today."))
        .resets_at(tomorrow))
}

/// Gives the turn to a queued run, if it still waits under this epoch.
pub(super) fn start(tx: &mut Tx, row: &RunRow) -> Result<bool> {
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

/// Lets a failed run begin anew under `row`, which has a higher epoch. `false`: it has begun already.
pub(super) fn reopen(tx: &mut Tx, row: &RunRow) -> Result<bool> {
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

/// Prolongs the lease. `false`: the run is no longer this worker's.
pub(super) fn renew(tx: &mut Tx, row: &RunRow) -> Result<bool> {
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

/// What a run has used.
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

/// Writes the end of a run. `false`: it had ended otherwise, or is no longer this worker's.
pub(super) fn finish(tx: &mut Tx, row: &RunRow) -> Result<bool> {
    let written: Option<i64> = each!(tx.connection(), |connection| {
        let [queued, in_progress, requires_action] = OPEN;
        let open =
            runs::status.eq(queued).or(runs::status.eq(in_progress)).or(runs::status.eq(requires_action));
        let update = diesel::update(runs::table.find((row.workspace_id, &row.id)))
            .filter(runs::epoch.eq(row.epoch))
            .filter(open)
            .set((
                runs::status.eq(row.status),
                runs::output.eq(&row.output),
                runs::incomplete_reason.eq(&row.incomplete_reason),
                runs::error.eq(&row.error),
                Used::by(row),
                runs::lease_until.eq(None::<Timestamp>),
                runs::completed_at.eq(row.completed_at),
            ))
            .returning(runs::epoch);
        Cached(update).get_result(connection).optional()
    })?;
    Ok(written.is_some())
}

/// Notes what a run that somebody else ended had used up to then, and that nobody works on it any more. `None`: it
/// is no longer this worker's, or has not ended.
pub(super) fn note_usage(tx: &mut Tx, row: &RunRow) -> Result<Option<RunRow>> {
    let ended = diesel::dsl::not(runs::status.eq_any(OPEN));
    Ok(diesel::update(
        runs::table.find((row.workspace_id, &row.id)).filter(runs::epoch.eq(row.epoch)).filter(ended),
    )
    .set((Used::by(row), runs::lease_until.eq(None::<Timestamp>)))
    .returning(runs::all_columns)
    .get_result(tx.connection())
    .optional()?)
}

/// Writes what a run that has just ended was charged, where that is less than its price.
pub(super) fn note_energy(tx: &mut Tx, row: &RunRow) -> Result<()> {
    diesel::update(runs::table.find((row.workspace_id, &row.id)))
        .set(runs::energy.eq(row.energy))
        .execute(tx.connection())?;
    Ok(())
}

/// Locks a run on PostgreSQL until the transaction ends, and gives it.
pub(super) fn locked(tx: &mut Tx, workspace: WorkspaceId, id: &RunId) -> Result<RunRow> {
    lock_row!(tx, runs::table.find((workspace, id)).select(runs::epoch), for_update);
    by_id(tx, workspace, id)
}

/// Cancels a run that has not ended, and gives it as it then stands. One that goes on keeps its lease: its worker closes
/// its books, or whoever finds that worker dead. One that waits for a person has no worker, so its lease ends now.
/// `None`: it has ended by itself.
pub(super) fn cancel(tx: &mut Tx, row: &RunRow, reason: &str) -> Result<Option<RunRow>> {
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

/// Takes over runs whose workers fell silent, a few at a time.
pub(super) fn claim_silent(tx: &mut Tx, most: i64) -> Result<Vec<RunRow>> {
    let now = tx.now();
    let silent = runs::table.filter(runs::lease_until.lt(now)).order(runs::lease_until.asc()).limit(most);
    let rows: Vec<RunRow> = match tx.connection() {
        store::AnyConnection::Sqlite(connection) => silent.load(connection)?,
        store::AnyConnection::Postgres(connection) => silent.for_update().skip_locked().load(connection)?,
    };
    rows.into_iter()
        .map(|row| {
            Ok(diesel::update(runs::table.find((row.workspace_id, &row.id)))
                .set((runs::epoch.eq(row.epoch + 1), runs::lease_until.eq(now.plus_seconds(LEASE_SECONDS))))
                .returning(runs::all_columns)
                .get_result(tx.connection())?)
        })
        .collect()
}

/// Forgets the texts of ephemeral conversations whose last run ended before `cutoff`. Gives the number of runs.
pub(super) fn purge(tx: &mut Tx, cutoff: Timestamp, most: i64) -> Result<usize> {
    let now = tx.now();
    let later = diesel::alias!(runs as later);
    let due: Vec<(WorkspaceId, RunId, String)> = runs::table
        .filter(runs::ephemeral.eq(true))
        .filter(runs::purged_at.is_null())
        .filter(runs::completed_at.lt(cutoff))
        .filter(diesel::dsl::not(diesel::dsl::exists(
            later
                .filter(later.field(runs::workspace_id).eq(runs::workspace_id))
                .filter(later.field(runs::conversation_id).eq(runs::conversation_id))
                .filter(
                    later.field(runs::completed_at).is_null().or(later.field(runs::completed_at).ge(cutoff)),
                )
                .select(later.field(runs::id)),
        )))
        .order(runs::completed_at.asc())
        .limit(most)
        .select((runs::workspace_id, runs::id, runs::conversation_id))
        .load(tx.connection())?;
    for (workspace, id, conversation) in &due {
        diesel::delete(
            conversation_memories::table
                .filter(conversation_memories::workspace_id.eq(workspace))
                .filter(conversation_memories::conversation_id.eq(conversation)),
        )
        .execute(tx.connection())?;
        diesel::update(runs::table.find((workspace, id)))
            .set((runs::input.eq(None::<String>), runs::output.eq(None::<String>), runs::purged_at.eq(now)))
            .execute(tx.connection())?;
        diesel::update(run_steps::table.filter(run_steps::run_id.eq(id)))
            .set((run_steps::input.eq(None::<JsonText>), run_steps::output.eq(None::<JsonText>)))
            .execute(tx.connection())?;
    }
    Ok(due.len())
}

pub(super) fn steps(read: &mut Read, workspace: WorkspaceId, run: &RunId) -> Result<Vec<StepRow>> {
    Ok(run_steps::table
        .filter(run_steps::run_id.eq(run))
        .filter(run_steps::workspace_id.eq(workspace))
        .order(run_steps::position.asc())
        .load(read.connection())?)
}

pub(super) fn insert_step(tx: &mut Tx, step: &StepRow) -> Result<()> {
    diesel::insert_into(run_steps::table).values(step.clone()).execute(tx.connection())?;
    Ok(())
}

pub(super) fn finish_step(tx: &mut Tx, step: &StepRow, status: StepStatus, now: Timestamp) -> Result<()> {
    each!(tx.connection(), |connection| {
        let update = diesel::update(run_steps::table.find((&step.run_id, step.position))).set((
            run_steps::status.eq(status),
            run_steps::name.eq(&step.name),
            run_steps::output.eq(&step.output),
            run_steps::input_tokens.eq(step.input_tokens),
            run_steps::output_tokens.eq(step.output_tokens),
            run_steps::energy.eq(step.energy),
            run_steps::completed_at.eq(now),
        ));
        CachedChange(update).run(connection)
    })?;
    Ok(())
}

/// Writes what a step was charged, where that is less than its price.
pub(super) fn note_step_energy(tx: &mut Tx, step: &StepRow, energy: i64) -> Result<()> {
    diesel::update(run_steps::table.find((&step.run_id, step.position)))
        .set(run_steps::energy.eq(energy))
        .execute(tx.connection())?;
    Ok(())
}
