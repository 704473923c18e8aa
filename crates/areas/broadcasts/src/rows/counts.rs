//! Counts of recipients. Database triggers insert a row for each change of a recipient's state, and the counts are
//! the sums of these rows. A job compacts the rows in batches, so that there are never many to sum up.

use crate::model::{BroadcastCounts, BroadcastRecipientState as State};
use crate::schema::broadcast_counts as table;
use diesel::dsl::{count_star, sql};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use jobs::{Job, JobContext, JobError};
use model::{BroadcastId, Result};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use store::{Read, Tx, each};

/// The job that compacts the rows.
const JOB: &str = "broadcasts.count";
/// The pseudo-state that counts recipients who replied.
const REPLIED: &str = "replied";
/// The pseudo-state that counts lines of a file that identify a contact.
const LISTED: &str = "listed";
/// The pseudo-state that counts lines that identify no contact.
const UNMATCHED: &str = "unmatched";
/// The pseudo-state that counts lines that identify several contacts.
const CONTRADICTORY: &str = "contradictory";
/// The number of rows per broadcast up to which compaction is not worth it.
const FEW: i64 = 64;
/// The most broadcasts to compact in one run.
const MOST: i64 = 1_000;

/// Returns the counts of broadcasts. Broadcasts without recipients are missing.
pub(crate) fn of(read: &mut Read, ids: &[BroadcastId]) -> Result<HashMap<BroadcastId, BroadcastCounts>> {
    let mut all: HashMap<BroadcastId, BroadcastCounts> = HashMap::new();
    let sums: Vec<(BroadcastId, String, i64)> = table::table
        .filter(table::broadcast_id.eq_any(ids))
        .group_by((table::broadcast_id, table::state))
        .select((table::broadcast_id, table::state, sql::<BigInt>("CAST(SUM(number) AS BIGINT)")))
        .load(read.connection())?;
    for (id, state, count) in sums {
        let counts = all.entry(id).or_default();
        match state.as_str() {
            REPLIED => counts.replied = count,
            UNMATCHED => counts.unmatched = count,
            CONTRADICTORY => counts.contradictory = count,
            state => {
                let Some(state) = State::parse(state) else { continue };
                counts.total += count;
                *counts.of_state(state) += count;
            }
        }
    }
    Ok(all)
}

/// Counts of the lines of a file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ListedLines {
    /// Lines that identify a contact.
    pub(crate) listed: i64,
    /// Lines that identify no contact.
    pub(crate) unmatched: i64,
    /// Lines whose values identify different contacts.
    pub(crate) contradictory: i64,
}

/// Adds the lines of a chunk of a file. The first chunk resets the counts. Returns the number of lines that
/// identified a contact so far.
pub(crate) fn add_lines(tx: &mut Tx, id: BroadcastId, is_first: bool, lines: ListedLines) -> Result<i64> {
    let of = table::table.filter(table::broadcast_id.eq(id));
    if is_first {
        let states = [LISTED, UNMATCHED, CONTRADICTORY];
        diesel::delete(of.filter(table::state.eq_any(states))).execute(tx.connection())?;
    }
    let rows: Vec<_> =
        [(LISTED, lines.listed), (UNMATCHED, lines.unmatched), (CONTRADICTORY, lines.contradictory)]
            .into_iter()
            .filter(|(_, number)| *number != 0)
            .map(|(state, number)| {
                (table::broadcast_id.eq(id), table::state.eq(state), table::number.eq(number))
            })
            .collect();
    each!(tx.connection(), |connection| diesel::insert_into(table::table).values(rows).execute(connection))?;
    let sum = sql::<BigInt>("CAST(COALESCE(SUM(number), 0) AS BIGINT)");
    Ok(of.filter(table::state.eq(LISTED)).select(sum).get_result(tx.connection())?)
}

/// Replaces the rows of a broadcast by their sums if there are many. Rows that other transactions insert meanwhile
/// are not affected.
pub(crate) fn compact(tx: &mut Tx, id: BroadcastId) -> Result<()> {
    let of = table::table.filter(table::broadcast_id.eq(id));
    let rows: i64 = of.select(count_star()).get_result(tx.connection())?;
    if rows <= FEW {
        return Ok(());
    }
    let changes: Vec<(String, i64)> =
        diesel::delete(of).returning((table::state, table::number)).get_results(tx.connection())?;
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for (state, number) in changes {
        *sums.entry(state).or_default() += number;
    }
    let rows: Vec<_> = sums
        .into_iter()
        .filter(|(_, number)| *number != 0)
        .map(|(state, number)| (table::broadcast_id.eq(id), table::state.eq(state), table::number.eq(number)))
        .collect();
    each!(tx.connection(), |connection| diesel::insert_into(table::table).values(rows).execute(connection))?;
    Ok(())
}

/// Builds the job that compacts counts.
pub(crate) fn job() -> Job {
    Job::every(
        JOB,
        Duration::from_secs(15),
        "sums up the changes of recipients of broadcasts, so that they are counted fast",
        compact_all,
    )
}

async fn compact_all(job: JobContext) -> Result<(), JobError> {
    let many = job.db.read(|read| {
        Ok(table::table
            .group_by(table::broadcast_id)
            .having(count_star().gt(FEW))
            .limit(MOST)
            .select(table::broadcast_id)
            .load::<BroadcastId>(read.connection())?)
    });
    for id in many.await? {
        job.db.write(move |tx| compact(tx, id)).await?;
    }
    Ok(())
}

impl BroadcastCounts {
    fn of_state(&mut self, state: State) -> &mut i64 {
        match state {
            State::Pending => &mut self.pending,
            State::Claimed => &mut self.sending,
            State::Sent => &mut self.sent,
            State::Delivered => &mut self.delivered,
            State::Read => &mut self.read,
            State::Failed => &mut self.failed,
            State::Skipped => &mut self.skipped,
            State::Unknown => &mut self.unknown,
            State::Cancelled => &mut self.cancelled,
        }
    }
}
