//! Monthly request quotas. Requests are counted in memory and written with the request log, about every second. A
//! `kill -9` loses at most one interval, and replicas learn of each other's requests at the same rate.

use crate::schema::key_requests;
use chrono::NaiveDate;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use model::{KeyId, Result, Timestamp, WorkspaceId};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::{Db, Read, Tx, each};

/// The request counters of all keys seen this month.
pub struct Quotas {
    db: Db,
    state: Mutex<State>,
    /// Held while counts are written: totals that are read later must not be replaced by earlier ones.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    month: String,
    counts: HashMap<KeyId, Count>,
}

/// The request counter of a key's lineage.
#[derive(Default)]
struct Count {
    /// Requests of the month, including those not yet written. `None` until they are read from the database.
    used: Option<i64>,
    /// Counted but not yet written, by day and workspace. Nearly always a single entry.
    pending: Vec<(NaiveDate, WorkspaceId, i64)>,
}

impl Count {
    fn add(&mut self, day: NaiveDate, workspace: WorkspaceId, requests: i64) {
        match self.pending.iter_mut().find(|(other, place, _)| (*other, *place) == (day, workspace)) {
            Some((_, _, count)) => *count += requests,
            None => self.pending.push((day, workspace, requests)),
        }
    }
}

impl Quotas {
    /// Creates counters that are stored in `db`.
    pub fn new(db: Db) -> Self {
        Self { db, state: Mutex::default(), writing: tokio::sync::Mutex::default() }
    }

    /// Returns the requests of a key's lineage in the month of `now`. Reads the database once per key and month.
    pub async fn used(&self, lineage: &KeyId, now: Timestamp) -> Result<i64> {
        let known = self.state_at(now).counts.get(lineage).and_then(|count| count.used);
        match known {
            Some(used) => Ok(used),
            None => self.look_up(lineage, now).await,
        }
    }

    /// Counts a request of a key's lineage and returns `true`, or returns `false` if the month already has `most`
    /// requests. Reads the database once per key and month.
    pub async fn count(
        &self,
        lineage: &KeyId,
        workspace: WorkspaceId,
        most: Option<i64>,
        now: Timestamp,
    ) -> Result<bool> {
        if let Some(counted) = self.count_known(lineage, workspace, most, now) {
            return Ok(counted);
        }
        self.look_up(lineage, now).await?;
        // The month may have changed since the look-up. The request is then let through uncounted.
        Ok(self.count_known(lineage, workspace, most, now).unwrap_or(true))
    }

    async fn look_up(&self, lineage: &KeyId, now: Timestamp) -> Result<i64> {
        let (wanted, month) = (lineage.clone(), now.month());
        let stored = self.db.read(move |read| stored(read, &[wanted], &month)).await?;
        let stored = stored.get(lineage).copied().unwrap_or(0);
        let mut state = self.state_at(now);
        // Two requests may have read the database concurrently. Keep the first result, which already includes counted
        // requests.
        Ok(*state.counts.entry(lineage.clone()).or_default().used.get_or_insert(stored))
    }

    fn count_known(
        &self,
        lineage: &KeyId,
        workspace: WorkspaceId,
        most: Option<i64>,
        now: Timestamp,
    ) -> Option<bool> {
        let mut state = self.state_at(now);
        let count = state.counts.get_mut(lineage)?;
        let used = count.used.as_mut()?;
        if most.is_some_and(|most| *used >= most) {
            return Some(false);
        }
        *used += 1;
        count.add(now.day(), workspace, 1);
        Some(true)
    }

    /// Locks the counters. If the month has changed, resets them first.
    fn state_at(&self, now: Timestamp) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !now.is_in_month(&state.month) {
            state.month = now.month();
            // Pending counts stay: they are written with the day of their request.
            state.counts.retain(|_, count| !count.pending.is_empty());
            state.counts.values_mut().for_each(|count| count.used = None);
        }
        state
    }

    /// Writes the pending counts, then reads the totals, which include the requests of other replicas. Returns
    /// `false` if nothing was pending. If the database fails, the counts stay pending for the next call.
    pub async fn flush(&self) -> Result<bool> {
        let _turn = self.writing.lock().await;
        let (pending, month) = self.take_pending();
        if pending.is_empty() {
            return Ok(false);
        }
        let (rows, wanted) = (pending.clone(), month.clone());
        let written = self.db.write(move |tx| {
            rows.iter().try_for_each(|row| add(tx, row))?;
            let lineages: Vec<KeyId> = rows.iter().map(|row| row.lineage_id.clone()).collect();
            stored(tx, &lineages, &wanted)
        });
        let written = written.await;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match written {
            // If the month has changed meanwhile, the totals are no longer needed.
            Ok(stored) if state.month == month => {
                for (lineage, total) in stored {
                    let count = state.counts.entry(lineage).or_default();
                    let since: i64 = count.pending.iter().map(|(_, _, requests)| requests).sum();
                    count.used = Some(total + since);
                }
                Ok(true)
            }
            Ok(_) => Ok(true),
            Err(error) => {
                for row in pending {
                    state.counts.entry(row.lineage_id).or_default().add(
                        row.day,
                        row.workspace_id,
                        row.requests,
                    );
                }
                Err(error)
            }
        }
    }

    fn take_pending(&self) -> (Vec<QuotaRow>, String) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = Vec::new();
        for (lineage_id, count) in &mut state.counts {
            let row = |(day, workspace_id, requests)| QuotaRow {
                lineage_id: lineage_id.clone(),
                day,
                workspace_id,
                requests,
            };
            rows.extend(count.pending.drain(..).map(row));
        }
        (rows, state.month.clone())
    }
}

#[derive(Clone)]
struct QuotaRow {
    lineage_id: KeyId,
    day: NaiveDate,
    workspace_id: WorkspaceId,
    requests: i64,
}

fn add(tx: &mut Tx, row: &QuotaRow) -> Result<()> {
    each!(tx.connection(), |connection| diesel::insert_into(key_requests::table)
        .values((
            key_requests::lineage_id.eq(&row.lineage_id),
            key_requests::day.eq(row.day.to_string()),
            key_requests::workspace_id.eq(row.workspace_id),
            key_requests::requests.eq(row.requests),
        ))
        .on_conflict((key_requests::lineage_id, key_requests::day, key_requests::workspace_id))
        .do_update()
        .set(key_requests::requests.eq(key_requests::requests + row.requests))
        .execute(connection))?;
    Ok(())
}

fn stored(read: &mut Read, lineages: &[KeyId], month: &str) -> Result<HashMap<KeyId, i64>> {
    let rows: Vec<(KeyId, i64)> = key_requests::table
        .filter(key_requests::lineage_id.eq_any(lineages))
        // Days are stored as `YYYY-MM-DD`.
        .filter(key_requests::day.like(format!("{month}-%")))
        .group_by(key_requests::lineage_id)
        .select((
            key_requests::lineage_id,
            diesel::dsl::sql::<diesel::sql_types::BigInt>("CAST(SUM(requests) AS BIGINT)"),
        ))
        .load(read.connection())?;
    Ok(rows.into_iter().collect())
}

/// Returns the number of requests per day of a workspace's keys. Both days are included.
pub fn requests_by_day(
    read: &mut Read,
    workspace: WorkspaceId,
    from: NaiveDate,
    to: NaiveDate,
) -> Result<Vec<(String, i64)>> {
    requests_by(read, "day", workspace, from, to)
}

/// Returns the number of requests per lineage of a workspace's keys. Both days are included.
pub fn requests_by_lineage(
    read: &mut Read,
    workspace: WorkspaceId,
    from: NaiveDate,
    to: NaiveDate,
) -> Result<Vec<(String, i64)>> {
    requests_by(read, "lineage_id", workspace, from, to)
}

fn requests_by(
    read: &mut Read,
    column: &'static str,
    workspace: WorkspaceId,
    from: NaiveDate,
    to: NaiveDate,
) -> Result<Vec<(String, i64)>> {
    use key_requests as r;
    Ok(r::table
        .filter(r::workspace_id.eq(workspace))
        .filter(r::day.between(from.to_string(), to.to_string()))
        .group_by(sql::<Text>(column))
        .select((sql::<Text>(column), sql::<BigInt>("CAST(SUM(requests) AS BIGINT)")))
        .load(read.connection())?)
}
