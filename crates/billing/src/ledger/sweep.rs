//! What time undoes: grants that end, and holds of runs that died.

use super::account::{self, Account};
use super::entries::{self, EntryKind, NewEntry};
use super::{budget, hold, money};
use crate::schema::{energy_accounts, energy_entries, energy_grants, energy_holds};
use diesel::prelude::*;
use model::{GrantId, KeyId, Result, RunId, Timestamp, WorkspaceId};
use std::collections::BTreeMap;
use store::{AnyConnection, Tx};

/// The most workspaces or holds that one sweep takes. Whoever sweeps comes again while a sweep was full.
const BATCH: i64 = 100;

/// Takes what is left of ended and voided grants off the balances, as far as no running work has set it aside.
/// Gives the number of workspaces swept: at most 100, and then there may be more.
///
/// # Errors
/// When the database fails.
pub fn sweep_expired_grants(tx: &mut Tx) -> Result<usize> {
    use energy_grants as g;
    let now = tx.now();
    let due: Vec<WorkspaceId> = g::table
        .inner_join(energy_accounts::table.on(energy_accounts::workspace_id.eq(g::workspace_id)))
        .filter(g::remaining.gt(0))
        .filter(g::expires_at.le(now).or(g::voided_at.is_not_null()))
        .filter(energy_accounts::balance.gt(energy_accounts::reserved))
        .select(g::workspace_id)
        .distinct()
        .order(g::workspace_id.asc())
        .limit(BATCH)
        .load(tx.connection())?;
    for workspace in &due {
        sweep_workspace(tx, *workspace)?;
    }
    Ok(due.len())
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = energy_grants)]
struct Dead {
    id: GrantId,
    remaining: i64,
    usd_micros_per_1000: i64,
    voided_at: Option<Timestamp>,
}

/// Sweeps one workspace and gives its account, locked. `None` where it has none.
pub(super) fn sweep_workspace(tx: &mut Tx, workspace: WorkspaceId) -> Result<Option<Account>> {
    use energy_grants as g;
    let Some(mut account) = account::lock(tx, workspace)? else { return Ok(None) };
    let now = tx.now();
    let dead: Vec<Dead> = g::table
        .filter(g::workspace_id.eq(workspace))
        .filter(g::remaining.gt(0))
        .filter(g::expires_at.le(now).or(g::voided_at.is_not_null()))
        .order((g::created_at.asc(), g::id.asc()))
        .select(Dead::as_select())
        .load(tx.connection())?;
    for grant in dead {
        let taken = grant.remaining.min(account.available());
        if taken > 0 {
            account = end(tx, workspace, &grant, taken)?;
        }
    }
    account::refresh_state(tx, workspace, &account)?;
    Ok(Some(account))
}

fn end(tx: &mut Tx, workspace: WorkspaceId, grant: &Dead, taken: i64) -> Result<Account> {
    use energy_entries as e;
    let kind = if grant.voided_at.is_some() { EntryKind::Void } else { EntryKind::Expire };
    // A grant comes to its end in several steps where running work still uses it.
    let step: i64 = e::table
        .filter(e::source_type.eq("grant"))
        .filter(e::source_id.eq(grant.id.as_str()))
        .filter(e::kind.eq(kind.as_str()))
        .count()
        .get_result(tx.connection())?;
    let account = account::change(tx, workspace, -taken, 0)?;
    let entry = NewEntry {
        kind,
        amount: -taken,
        balance_after: account.balance,
        usd_micros: -money::cost(taken, grant.usd_micros_per_1000)?,
        source: ("grant", grant.id.as_str()),
        step,
        charge: None,
        operation: kind.as_str(),
        model: None,
    };
    if let Some(entry) = entries::insert(tx, workspace, &entry)? {
        entries::take(tx, &grant.id, taken)?;
        entries::note_burn(tx, &entry, &grant.id, taken)?;
    }
    Ok(account)
}

#[derive(Queryable)]
struct Lost {
    run_id: RunId,
    workspace_id: WorkspaceId,
    key_lineage: KeyId,
    month: String,
    amount: i64,
    used: i64,
    reserved_micros: i64,
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
        .filter(h::state.eq(hold::OPEN))
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
        ));
    // A hold that is being settled right now needs no sweeper.
    let lost: Vec<Lost> = match tx.connection() {
        AnyConnection::Sqlite(connection) => query.load(connection)?,
        AnyConnection::Postgres(connection) => query.for_update().skip_locked().load(connection)?,
    };
    // First all keys, then all accounts, each in order: the order of locks holds for many runs as for one.
    let mut keys: BTreeMap<(&KeyId, &str), i64> = BTreeMap::new();
    let mut accounts: BTreeMap<WorkspaceId, i64> = BTreeMap::new();
    for lost in &lost {
        diesel::update(h::table.find(&lost.run_id))
            .set((h::state.eq(hold::EXPIRED), h::reserved_micros.eq(0)))
            .execute(tx.connection())?;
        *keys.entry((&lost.key_lineage, &lost.month)).or_insert(0) += lost.reserved_micros;
        *accounts.entry(lost.workspace_id).or_insert(0) += lost.amount - lost.used;
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
