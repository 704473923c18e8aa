//! The table `jobs`: claiming, renewing and settling rows.

use diesel::prelude::*;
use model::{JsonText, Result, Timestamp, WorkspaceId};
use std::collections::HashMap;
use std::time::Duration;
use store::schema::jobs;
use store::{MOST_COUNTED, Read, Tx, each, for_update_skip_locked};

/// A claimed job. It is ours until its lease expires or another claim has increased the epoch.
#[derive(Debug, Clone, Queryable)]
pub(crate) struct Claimed {
    pub(crate) id: i64,
    /// The workspace that the job works for, if it works for a single one.
    pub(crate) workspace: Option<WorkspaceId>,
    pub(crate) kind: String,
    pub(crate) payload: JsonText,
    pub(crate) run_at: Timestamp,
    pub(crate) attempts: i64,
    pub(crate) epoch: i64,
    /// The lease of the previous owner, if that died without settling the job.
    pub(crate) stale_lease: Option<Timestamp>,
    /// The place in the chain of causes at which it acts.
    pub(crate) chain: Option<JsonText>,
}

/// The outcome of a run, to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Done,
    /// The next run of a periodic job, with the error of this one.
    Next(Timestamp, Option<String>),
    Retry(Timestamp, String),
    GiveUp(String),
    /// Releases the job as if it had never been claimed.
    HandBack,
}

/// The result of storing a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    Written,
    /// The job was enqueued again while it ran, so the verdict was discarded and the job runs again.
    AskedAgain,
    /// Another runner has claimed the job since.
    Lost,
}

pub(crate) fn later(time: Timestamp, by: Duration) -> Timestamp {
    Timestamp::from_millis(time.millis().saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
}

/// Returns the first of `slot`, `slot + period`, … after `now`. Missed slots are skipped.
pub(crate) fn next_slot(slot: Timestamp, period: Duration, now: Timestamp) -> Timestamp {
    let period = i64::try_from(period.as_millis()).unwrap_or(i64::MAX).max(1);
    let missed = now.millis().saturating_sub(slot.millis()).max(0) / period;
    Timestamp::from_millis(slot.millis().saturating_add(period.saturating_mul(missed + 1)))
}

/// The number of jobs that a runner may still claim, in total and per workspace.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    pub(crate) all: usize,
    pub(crate) per_workspace: usize,
    /// Jobs that this runner already runs.
    pub(crate) running: HashMap<WorkspaceId, usize>,
}

impl Room {
    /// Reserves room for a job. Returns `false` if its workspace has no room.
    fn take(&mut self, workspace: Option<WorkspaceId>) -> bool {
        let Some(workspace) = workspace else { return true };
        let running = self.running.entry(workspace).or_default();
        *running += 1;
        *running <= self.per_workspace
    }

    fn full(&self) -> Vec<WorkspaceId> {
        let full = self.running.iter().filter(|(_, running)| **running >= self.per_workspace);
        full.map(|(workspace, _)| *workspace).collect()
    }
}

/// Claims due jobs of these kinds while there is room, those due longest first. Counts an attempt for each.
pub(crate) fn claim(tx: &mut Tx, kinds: &[&str], mut room: Room, lease: Duration) -> Result<Vec<Claimed>> {
    let now = tx.now();
    let mut claimed: Vec<Claimed> = Vec::new();
    while claimed.len() < room.all {
        let wanted = room.all - claimed.len();
        let found = due(tx, kinds, &room.full(), &claimed, wanted)?;
        // Fewer rows than wanted: there is nothing else to claim.
        let is_all = found.len() < wanted;
        // `due` excludes full workspaces, but a single query can return more jobs of a workspace than it has room
        // for.
        // If a workspace has more due jobs than room, the next query excludes it.
        claimed.extend(found.into_iter().filter(|job| room.take(job.workspace)));
        if is_all {
            break;
        }
    }
    for job in &mut claimed {
        job.attempts += 1;
        job.epoch += 1;
        diesel::update(jobs::table.find(job.id))
            .set((
                jobs::attempts.eq(job.attempts),
                jobs::epoch.eq(job.epoch),
                jobs::lease_until.eq(later(now, lease)),
            ))
            .execute(tx.connection())?;
    }
    Ok(claimed)
}

/// Selects due jobs, except jobs of the workspaces in `full` and the jobs in `found`.
fn due(
    tx: &mut Tx,
    kinds: &[&str],
    full: &[WorkspaceId],
    found: &[Claimed],
    limit: usize,
) -> Result<Vec<Claimed>> {
    let now = tx.now();
    let found = found.iter().map(|job| job.id);
    let due = jobs::table
        .filter(jobs::failed_at.is_null())
        .filter(jobs::run_at.le(now))
        .filter(jobs::lease_until.is_null().or(jobs::lease_until.le(now)))
        .filter(jobs::kind.eq_any(kinds))
        .filter(jobs::workspace_id.is_null().or(jobs::workspace_id.ne_all(full)))
        .filter(jobs::id.ne_all(found))
        .order((jobs::run_at, jobs::id))
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .select((
            jobs::id,
            jobs::workspace_id,
            jobs::kind,
            jobs::payload,
            jobs::run_at,
            jobs::attempts,
            jobs::epoch,
            jobs::lease_until,
            jobs::chain,
        ));
    // Skip locked rows. Another runner is claiming such a row, or a transaction is enqueuing it again and the job must see
    // that transaction's changes.
    Ok(for_update_skip_locked(due).load(tx.connection())?)
}

/// Counts the jobs that were due at `time` and are not running, up to a maximum for metrics.
pub fn due_before(read: &mut Read, time: Timestamp) -> Result<i64> {
    #[derive(QueryableByName)]
    struct Due {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        jobs: i64,
    }
    // Counts due rows up to the limit, then leaves out those with a valid lease. The limit is inside, so that a long
    // backlog is not read completely.
    let sql = format!(
        "SELECT COUNT(*) AS jobs FROM (SELECT lease_until FROM jobs WHERE failed_at IS NULL AND run_at <= $1
            ORDER BY run_at LIMIT {MOST_COUNTED}) AS due WHERE lease_until IS NULL OR lease_until <= $2"
    );
    let now = read.now();
    let due: Due = each!(read.connection(), |connection| diesel::sql_query(sql)
        .bind::<diesel::sql_types::Timestamp, _>(time)
        .bind::<diesel::sql_types::Timestamp, _>(now)
        .get_result(connection))?;
    Ok(due.jobs)
}

/// Renews a lease. Returns `false` if another runner has claimed the job.
pub(crate) fn renew(tx: &mut Tx, job: &Claimed, lease: Duration) -> Result<bool> {
    let until = later(tx.now(), lease);
    let renewed = diesel::update(jobs::table.find(job.id).filter(jobs::epoch.eq(job.epoch)))
        .set(jobs::lease_until.eq(until))
        .execute(tx.connection())?;
    Ok(renewed > 0)
}

/// The new values of a row. `None` stores NULL.
#[derive(AsChangeset)]
#[diesel(table_name = jobs, treat_none_as_null = true)]
struct Change<'a> {
    run_at: Timestamp,
    attempts: i64,
    lease_until: Option<Timestamp>,
    last_error: Option<&'a str>,
    failed_at: Option<Timestamp>,
}

/// Stores the verdict of a job that is still ours.
pub(crate) fn settle(tx: &mut Tx, job: &Claimed, verdict: &Verdict) -> Result<Settled> {
    let now = tx.now();
    let mine = jobs::table.find(job.id).filter(jobs::epoch.eq(job.epoch));
    // `Tx::enqueue` resets the attempts of a running job to 0, so a different number means that it was enqueued
    // again.
    let without_request = mine.filter(jobs::attempts.eq(job.attempts));
    let change = |run_at, attempts, last_error| Change {
        run_at,
        attempts,
        lease_until: None,
        last_error,
        failed_at: None,
    };
    let change = match verdict {
        Verdict::Done => None,
        Verdict::Next(at, error) => Some(change(*at, 0, error.as_deref())),
        Verdict::Retry(at, error) => Some(change(*at, job.attempts, Some(error))),
        Verdict::GiveUp(error) => {
            Some(Change { failed_at: Some(now), ..change(job.run_at, job.attempts, Some(error)) })
        }
        // Only the lease and the attempt are reverted: the due time and the last error stay.
        Verdict::HandBack => {
            let released = (jobs::lease_until.eq(None::<Timestamp>), jobs::attempts.eq(job.attempts - 1));
            let written = diesel::update(without_request).set(released).execute(tx.connection())?;
            return if written > 0 { Ok(Settled::Written) } else { release(tx, job) };
        }
    };
    let written = match &change {
        None => diesel::delete(without_request).execute(tx.connection())?,
        Some(change) => diesel::update(without_request).set(change).execute(tx.connection())?,
    };
    if written > 0 { Ok(Settled::Written) } else { release(tx, job) }
}

/// Releases a job whose verdict could not be stored, if that is because it was enqueued again.
fn release(tx: &mut Tx, job: &Claimed) -> Result<Settled> {
    let mine = jobs::table.find(job.id).filter(jobs::epoch.eq(job.epoch));
    let released = diesel::update(mine.filter(jobs::attempts.eq(0)))
        .set(jobs::lease_until.eq(None::<Timestamp>))
        .execute(tx.connection())?;
    Ok(if released > 0 { Settled::AskedAgain } else { Settled::Lost })
}

/// How long the row of a failed job is kept.
const FAILED_DAYS: i64 = 30;

/// Deletes some jobs that failed long ago. Returns their number.
pub fn purge_failed(tx: &mut Tx) -> Result<usize> {
    let horizon = tx.now().plus_seconds(-FAILED_DAYS * 24 * 3600);
    // Select first: neither SQLite (as built) nor PostgreSQL accepts `DELETE … LIMIT`.
    let old: Vec<i64> =
        jobs::table.filter(jobs::failed_at.lt(horizon)).limit(500).select(jobs::id).load(tx.connection())?;
    Ok(diesel::delete(jobs::table.filter(jobs::id.eq_any(old))).execute(tx.connection())?)
}

/// Inserts the row of a periodic job if it is missing; it is then due at once. Moves a due time that is more than a
/// period away, because the period may have become shorter with an update.
pub(crate) fn plan(tx: &mut Tx, kind: &str, period: Duration) -> Result<()> {
    let now = tx.now();
    // Not with `Tx::enqueue`, which would request another run of a running job.
    let row = (
        jobs::kind.eq(kind),
        jobs::unique_key.eq(kind),
        jobs::payload.eq(JsonText::of(&())),
        jobs::run_at.eq(now),
        jobs::attempts.eq(0),
        jobs::epoch.eq(0),
        jobs::created_at.eq(now),
    );
    each!(tx.connection(), |connection| diesel::insert_into(jobs::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    let latest = later(now, period);
    diesel::update(jobs::table.filter(jobs::unique_key.eq(kind)).filter(jobs::run_at.gt(latest)))
        .set(jobs::run_at.eq(latest))
        .execute(tx.connection())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_slots_are_left_out() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        let minute = Duration::from_secs(60);
        assert_eq!(next_slot(at(0), minute, at(0)), at(60));
        assert_eq!(next_slot(at(0), minute, at(59)), at(60));
        assert_eq!(next_slot(at(0), minute, at(60)), at(120));
        assert_eq!(next_slot(at(30), minute, at(1000)), at(1050));
        assert_eq!(next_slot(at(90), minute, at(0)), at(150));
        assert!(next_slot(at(0), Duration::ZERO, at(5)) > at(5));
    }
}
