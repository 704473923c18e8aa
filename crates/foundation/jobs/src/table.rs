//! The table `jobs`: claiming, renewing and settling a row.

use diesel::prelude::*;
use model::{JsonText, Result, Timestamp, WorkspaceId};
use std::collections::HashMap;
use std::time::Duration;
use store::schema::jobs;
use store::{MOST_COUNTED, Read, Tx, each, for_update_skip_locked};

/// A job that is ours until its lease runs out or somebody else's epoch is newer.
#[derive(Debug, Clone, Queryable)]
pub(crate) struct Claimed {
    pub(crate) id: i64,
    /// On whose behalf; `None` where on nobody's in particular.
    pub(crate) workspace: Option<WorkspaceId>,
    pub(crate) kind: String,
    pub(crate) payload: JsonText,
    pub(crate) run_at: Timestamp,
    pub(crate) attempts: i64,
    pub(crate) epoch: i64,
    /// The lease of the owner before, where that one vanished without a word.
    pub(crate) stale_lease: Option<Timestamp>,
}

/// What becomes of a job that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Done,
    /// Periodic work: once more at this time, whatever came of it now.
    Next(Timestamp, Option<String>),
    Retry(Timestamp, String),
    GiveUp(String),
    /// As if it had never been claimed.
    HandBack,
}

/// Whether a verdict could be written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    Written,
    /// The same work was asked for while it ran: the verdict is void, and it runs again.
    AskedAgain,
    /// Somebody else has claimed the job since.
    Lost,
}

pub(crate) fn later(time: Timestamp, by: Duration) -> Timestamp {
    Timestamp::from_millis(time.millis().saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
}

/// The first of `slot`, `slot + period`, … that lies after `now`: what was missed is not made up for.
pub(crate) fn next_slot(slot: Timestamp, period: Duration, now: Timestamp) -> Timestamp {
    let period = i64::try_from(period.as_millis()).unwrap_or(i64::MAX).max(1);
    let missed = now.millis().saturating_sub(slot.millis()).max(0) / period;
    Timestamp::from_millis(slot.millis().saturating_add(period.saturating_mul(missed + 1)))
}

/// How many jobs a runner may claim, in all and for each workspace.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    pub(crate) all: usize,
    pub(crate) per_workspace: usize,
    /// Jobs that this runner is running already.
    pub(crate) running: HashMap<WorkspaceId, usize>,
}

impl Room {
    /// Takes a place for a job; whether there was one.
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

/// Takes due jobs of these kinds as far as there is room, the longest due first, and counts an attempt for each.
pub(crate) fn claim(tx: &mut Tx, kinds: &[&str], mut room: Room, lease: Duration) -> Result<Vec<Claimed>> {
    let now = tx.now();
    let mut claimed: Vec<Claimed> = Vec::new();
    while claimed.len() < room.all {
        let wanted = room.all - claimed.len();
        let found = due(tx, kinds, &room.full(), &claimed, wanted)?;
        let is_all = found.len() < wanted;
        // Where a workspace has no room for all of its jobs, the next look passes it by.
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

/// Jobs that are due, but for those of some workspaces and those that were found before.
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
        ));
    // A row that is locked is being claimed by another runner, or asked for again by a transaction whose changes this job must
    // see: both are better left alone.
    Ok(for_update_skip_locked(due).load(tx.connection())?)
}

/// How many jobs were due at this time and are not running, as far as metrics count.
///
/// # Errors
/// When the database fails.
pub fn due_before(read: &mut Read, time: Timestamp) -> Result<i64> {
    #[derive(QueryableByName)]
    struct Due {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        jobs: i64,
    }
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

/// Holds on to a job. `false` where it is no longer ours.
pub(crate) fn renew(tx: &mut Tx, job: &Claimed, lease: Duration) -> Result<bool> {
    let until = later(tx.now(), lease);
    let renewed = diesel::update(jobs::table.find(job.id).filter(jobs::epoch.eq(job.epoch)))
        .set(jobs::lease_until.eq(until))
        .execute(tx.connection())?;
    Ok(renewed > 0)
}

/// `None` says NULL.
#[derive(AsChangeset)]
#[diesel(table_name = jobs, treat_none_as_null = true)]
struct Change<'a> {
    run_at: Timestamp,
    attempts: i64,
    lease_until: Option<Timestamp>,
    last_error: Option<&'a str>,
    failed_at: Option<Timestamp>,
}

/// Writes down what becomes of a job, if it is still ours.
pub(crate) fn settle(tx: &mut Tx, job: &Claimed, verdict: &Verdict) -> Result<Settled> {
    let now = tx.now();
    let mine = jobs::table.find(job.id).filter(jobs::epoch.eq(job.epoch));
    // `Tx::enqueue` sets the attempts of a job that runs back to 0.
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

fn release(tx: &mut Tx, job: &Claimed) -> Result<Settled> {
    let mine = jobs::table.find(job.id).filter(jobs::epoch.eq(job.epoch));
    let released = diesel::update(mine.filter(jobs::attempts.eq(0)))
        .set(jobs::lease_until.eq(None::<Timestamp>))
        .execute(tx.connection())?;
    Ok(if released > 0 { Settled::AskedAgain } else { Settled::Lost })
}

/// How long a job that was given up is kept, with its error.
const FAILED_DAYS: i64 = 30;

/// Deletes some of the jobs that were given up long ago. Gives how many.
///
/// # Errors
/// When the database fails.
pub fn purge_failed(tx: &mut Tx) -> Result<usize> {
    let horizon = tx.now().plus_seconds(-FAILED_DAYS * 24 * 3600);
    let old: Vec<i64> =
        jobs::table.filter(jobs::failed_at.lt(horizon)).limit(500).select(jobs::id).load(tx.connection())?;
    Ok(diesel::delete(jobs::table.filter(jobs::id.eq_any(old))).execute(tx.connection())?)
}

/// Sees to it that the row of a periodic job is there, due at once where it is new and within a period always: the
/// period may have been longer in the program's last version.
pub(crate) fn plan(tx: &mut Tx, kind: &str, period: Duration) -> Result<()> {
    let now = tx.now();
    // Not by `Tx::enqueue`, which would ask for another run of one that is running.
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
