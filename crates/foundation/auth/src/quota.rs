//! Requests per month. Counted in memory and written behind, with the request log: the count may lose what a
//! `kill -9` catches between two flushes (a second at most), and replicas learn of each other's requests as often.

use crate::schema::key_requests;
use chrono::NaiveDate;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use model::{KeyId, Result, Timestamp, WorkspaceId};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::{Db, Read, Tx, each};

/// The counters of all keys seen this month.
pub struct Quotas {
    db: Db,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    month: String,
    counts: HashMap<KeyId, Count>,
}

/// The requests of a key's lineage.
#[derive(Default)]
struct Count {
    /// Of the month, what is not written yet included. `None` until the database was asked.
    used: Option<i64>,
    /// Counted and not written yet, by day and workspace: nearly always one of each.
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
    /// Counters backed by `db`.
    pub fn new(db: Db) -> Self {
        Self { db, state: Mutex::default() }
    }

    /// The requests of a key's lineage in the month of `now`.
    ///
    /// # Errors
    /// When the database fails, which is asked once per key and month.
    pub async fn used(&self, lineage: &KeyId, now: Timestamp) -> Result<i64> {
        let known = self.state_at(now).counts.get(lineage).and_then(|count| count.used);
        match known {
            Some(used) => Ok(used),
            None => self.look_up(lineage, now).await,
        }
    }

    /// Counts a request of a key's lineage, unless the month has `most` of them already. Says whether it was counted.
    ///
    /// # Errors
    /// When the database fails, which is asked once per key and month.
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
        Ok(self.count_known(lineage, workspace, most, now).unwrap_or(true))
    }

    async fn look_up(&self, lineage: &KeyId, now: Timestamp) -> Result<i64> {
        let (wanted, month) = (lineage.clone(), now.month());
        let stored = self.db.read(move |read| stored(read, &[wanted], &month)).await?;
        let stored = stored.get(lineage).copied().unwrap_or(0);
        let mut state = self.state_at(now);
        // Two requests may have asked the database at once; the first answer stays, with what was counted on it.
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

    /// The counters of the month of `now`.
    fn state_at(&self, now: Timestamp) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !now.is_in_month(&state.month) {
            state.month = now.month();
            // What is not written yet stays, with its own day.
            state.counts.retain(|_, count| !count.pending.is_empty());
            state.counts.values_mut().for_each(|count| count.used = None);
        }
        state
    }

    /// Writes what was counted since the last call, and reads what other replicas counted. Says whether there was
    /// anything to write.
    ///
    /// # Errors
    /// When the database fails; the counts then wait for the next call.
    pub async fn flush(&self) -> Result<bool> {
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
            // Of a month that ended meanwhile nothing is needed any more.
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
        .filter(key_requests::day.like(format!("{month}-%")))
        .group_by(key_requests::lineage_id)
        .select((
            key_requests::lineage_id,
            diesel::dsl::sql::<diesel::sql_types::BigInt>("CAST(SUM(requests) AS BIGINT)"),
        ))
        .load(read.connection())?;
    Ok(rows.into_iter().collect())
}

/// Requests of a workspace's keys from one day to another, by day.
///
/// # Errors
/// When the database fails.
pub fn requests_by_day(
    read: &mut Read,
    workspace: WorkspaceId,
    from: NaiveDate,
    to: NaiveDate,
) -> Result<Vec<(String, i64)>> {
    requests_by(read, "day", workspace, from, to)
}

/// Requests of a workspace's keys from one day to another, by the keys' lineage.
///
/// # Errors
/// When the database fails.
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
