//! Expiry: what is left of grants that have ended is taken off the balances.

use super::account::{self, Account};
use super::entries::{self, EntryKind, NewEntry};
use super::money;
use crate::schema::{energy_accounts, energy_entries, energy_grants};
use diesel::prelude::*;
use model::{GrantId, Result, Timestamp, WorkspaceId};
use store::Tx;

/// The most workspaces that one sweep takes. Whoever sweeps comes again while a sweep was full.
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
        .filter(e::kind.eq(kind))
        .count()
        .get_result(tx.connection())?;
    let account = account::change(tx, workspace, -taken, 0)?;
    let entry = NewEntry {
        kind,
        amount: -taken,
        metered: true,
        balance_after: account.balance,
        usd_micros: -money::cost(taken, grant.usd_micros_per_1000)?,
        source: ("grant", grant.id.as_str()),
        step,
        charge: None,
        operation: kind.as_str(),
        model: None,
    };
    if let Some(entry) = entries::insert(tx, workspace, entry)? {
        entries::take(tx, &grant.id, taken)?;
        entries::note_burn(tx, &entry, &grant.id, taken)?;
    }
    Ok(account)
}
