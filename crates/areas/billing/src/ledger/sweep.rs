//! The sweep of holds: what runs that died have set aside is set free.

use super::hold::HoldState;
use super::{account, budget};
use crate::schema::energy_holds;
use diesel::prelude::*;
use model::{KeyId, Result, RunId, WorkspaceId};
use std::collections::BTreeMap;
use store::{Tx, for_update_skip_locked};

/// The most holds that one sweep takes. Whoever sweeps comes again while a sweep was full.
const BATCH: i64 = 100;

#[derive(Queryable)]
struct Lost {
    run_id: RunId,
    workspace_id: WorkspaceId,
    key_lineage: KeyId,
    month: String,
    amount: i64,
    used: i64,
    reserved_micros: i64,
    metered: bool,
}

/// Sets free what runs have set aside and not touched for a quarter of an hour. What their steps used stays
/// debited; a run that lives after all holds anew. Gives the number of holds: at most 100, and then there may be
/// more.
///
/// # Errors
/// When the database fails.
pub fn sweep_expired_holds(tx: &mut Tx) -> Result<usize> {
    use energy_holds as h;
    let now = tx.now();
    let query = h::table
        .filter(h::state.eq(HoldState::Open))
        .filter(h::expires_at.le(now))
        .order(h::expires_at.asc())
        .limit(BATCH)
        .select((
            h::run_id,
            h::workspace_id,
            h::key_lineage,
            h::month,
            h::amount,
            h::used,
            h::reserved_micros,
            h::metered,
        ));
    // A hold that is being settled right now needs no sweeper.
    let lost: Vec<Lost> = for_update_skip_locked(query).load(tx.connection())?;
    // First all keys, then all accounts, each in order: the order of locks holds for many runs as for one.
    let mut keys: BTreeMap<(&KeyId, &str), i64> = BTreeMap::new();
    let mut accounts: BTreeMap<WorkspaceId, i64> = BTreeMap::new();
    for lost in &lost {
        diesel::update(h::table.find(&lost.run_id))
            .set((h::state.eq(HoldState::Expired), h::reserved_micros.eq(0)))
            .execute(tx.connection())?;
        *keys.entry((&lost.key_lineage, &lost.month)).or_insert(0) += lost.reserved_micros;
        if lost.metered {
            *accounts.entry(lost.workspace_id).or_insert(0) += lost.amount - lost.used;
        }
    }
    for ((lineage, month), micros) in keys {
        if micros > 0 {
            budget::add(tx, lineage, month, 0, -micros)?;
        }
    }
    for (workspace, energy) in accounts {
        if energy > 0 {
            let account = account::change(tx, workspace, 0, -energy)?;
            account::refresh_state(tx, workspace, &account)?;
        }
    }
    Ok(lost.len())
}
