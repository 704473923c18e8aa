//! Requests per month. Counted in memory and written behind, with the request log: the count may lose what a
//! `kill -9` catches between two flushes (a second at most), and replicas learn of each other's requests as often.

use diesel::prelude::*;
use model::{KeyId, Result, Timestamp, WorkspaceId};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use store::schema::key_requests;
use store::{Db, Read, Tx, each};

/// The counters of all keys seen this month.
pub struct Quotas {
    db: Db,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    month: String,
    used: HashMap<KeyId, i64>,
    /// Counted, and not written yet.
    pending: HashMap<(KeyId, String, WorkspaceId), i64>,
}

impl Quotas {
    /// Counters backed by `db`.
    pub fn new(db: Db) -> Self {
        Self { db, state: Mutex::default() }
    }

    /// Counts a request of a key's lineage and gives the month's count with it.
    ///
    /// # Errors
    /// When the database fails, which is asked once per key and month.
    pub async fn count(&self, lineage: &KeyId, workspace: WorkspaceId, now: Timestamp) -> Result<i64> {
        if let Some(used) = self.count_known(lineage, workspace, now) {
            return Ok(used);
        }
        let (wanted, month) = (lineage.clone(), now.month());
        let stored = self.db.read(move |read| stored(read, &[wanted], &month)).await?;
        self.remember(lineage, stored.get(lineage).copied().unwrap_or(0));
        Ok(self.count_known(lineage, workspace, now).unwrap_or(1))
    }

    fn remember(&self, lineage: &KeyId, stored: i64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Two requests may have asked the database at once; the first answer stays, with what was counted on it.
        state.used.entry(lineage.clone()).or_insert(stored);
    }

    fn count_known(&self, lineage: &KeyId, workspace: WorkspaceId, now: Timestamp) -> Option<i64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let day = now.day().to_string();
        if !day.starts_with(&state.month) || state.month.is_empty() {
            state.month = now.month();
            state.used.clear();
        }
        let used = state.used.get_mut(lineage)?;
        *used += 1;
        let used = *used;
        *state.pending.entry((lineage.clone(), day, workspace)).or_insert(0) += 1;
        Some(used)
    }

    /// Writes what was counted since the last call, and reads what other replicas counted.
    ///
    /// # Errors
    /// When the database fails; the counts then wait for the next call.
    pub async fn flush(&self) -> Result<()> {
        let (pending, month) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            (std::mem::take(&mut state.pending), state.month.clone())
        };
        if pending.is_empty() {
            return Ok(());
        }
        let rows: Vec<Row> = pending
            .iter()
            .map(|((lineage, day, workspace), requests)| Row {
                lineage_id: lineage.clone(),
                day: day.clone(),
                workspace_id: *workspace,
                requests: *requests,
            })
            .collect();
        let written = self.db.write(move |tx| {
            rows.iter().try_for_each(|row| add(tx, row)).and_then(|()| {
                let lineages: Vec<KeyId> = rows.iter().map(|row| row.lineage_id.clone()).collect();
                stored(tx, &lineages, &month)
            })
        });
        let written = written.await;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match written {
            Ok(stored) => {
                let counted_since: HashMap<KeyId, i64> =
                    state.pending.iter().fold(HashMap::new(), |mut sums, ((lineage, _, _), count)| {
                        *sums.entry(lineage.clone()).or_insert(0) += count;
                        sums
                    });
                for (lineage, total) in stored {
                    let since = counted_since.get(&lineage).copied().unwrap_or(0);
                    state.used.insert(lineage, total + since);
                }
                Ok(())
            }
            Err(error) => {
                for (place, count) in pending {
                    *state.pending.entry(place).or_insert(0) += count;
                }
                Err(error)
            }
        }
    }
}

#[derive(Insertable)]
#[diesel(table_name = key_requests)]
struct Row {
    lineage_id: KeyId,
    day: String,
    workspace_id: WorkspaceId,
    requests: i64,
}

fn add(tx: &mut Tx, row: &Row) -> Result<()> {
    each!(tx.connection(), |connection| diesel::insert_into(key_requests::table)
        .values(row)
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
