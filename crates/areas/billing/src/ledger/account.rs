//! A workspace's account: what it owns and what is set aside.

use super::money;
use crate::schema::{energy_accounts, energy_grants};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use model::{Error, Result, Timestamp, WorkspaceId, text_enum};
use std::collections::{BTreeMap, HashSet};
use store::{Read, Rows, Tx, each, for_update};

/// No account may own more: far beyond what anybody buys, and far from where integers end.
pub const MOST_BALANCE: i64 = 1_000_000_000_000_000;

text_enum! {
    /// The Energy of a workspace.
    pub enum EnergyState {
        /// There is enough Energy.
        Ok = "ok",
        /// Less than a tenth of the last recharge is available.
        Low = "low",
        /// No Energy is available.
        Depleted = "depleted",
    }
}

impl EnergyState {
    fn of(available: i64, last_recharge: i64) -> Self {
        if available <= 0 {
            Self::Depleted
        } else if available.saturating_mul(10) < last_recharge {
            Self::Low
        } else {
            Self::Ok
        }
    }
}

/// An account as it stands.
#[derive(Debug, Clone, Queryable, QueryableByName)]
pub(crate) struct Account {
    #[diesel(sql_type = BigInt)]
    pub(crate) balance: i64,
    #[diesel(sql_type = BigInt)]
    pub(crate) reserved: i64,
    #[diesel(sql_type = BigInt)]
    pub(crate) last_recharge: i64,
    #[diesel(sql_type = Text)]
    state: EnergyState,
}

/// Opens the empty account of a workspace that was just made.
pub(crate) fn open(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    let now = tx.now();
    diesel::insert_into(energy_accounts::table)
        .values((
            energy_accounts::workspace_id.eq(workspace),
            energy_accounts::balance.eq(0),
            energy_accounts::reserved.eq(0),
            energy_accounts::state.eq(EnergyState::Depleted),
            energy_accounts::last_recharge.eq(0),
            energy_accounts::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// The columns of [`Account`].
const COLUMNS: (
    energy_accounts::balance,
    energy_accounts::reserved,
    energy_accounts::last_recharge,
    energy_accounts::state,
) = (
    energy_accounts::balance,
    energy_accounts::reserved,
    energy_accounts::last_recharge,
    energy_accounts::state,
);

impl Account {
    /// The Energy available for new work.
    pub(crate) fn available(&self) -> i64 {
        self.balance - self.reserved
    }

    /// How it stands at this moment.
    pub(crate) fn state(&self) -> EnergyState {
        EnergyState::of(self.available(), self.last_recharge)
    }
}

/// A workspace's account for reading: what has expired and waits for the sweeper is no longer counted. A
/// workspace without an account owns nothing.
pub(crate) fn find(read: &mut Read, workspace: WorkspaceId) -> Result<Account> {
    let account: Option<Account> =
        energy_accounts::table.find(workspace).select(COLUMNS).first(read.connection()).optional()?;
    let nothing = || Account { balance: 0, reserved: 0, last_recharge: 0, state: EnergyState::Depleted };
    let mut account = account.unwrap_or_else(nothing);
    let now = read.now();
    let dead: Vec<i64> = energy_grants::table
        .filter(energy_grants::workspace_id.eq(workspace))
        .filter(energy_grants::remaining.gt(0))
        .filter(energy_grants::expires_at.le(now).or(energy_grants::voided_at.is_not_null()))
        .select(energy_grants::remaining)
        .load(read.connection())?;
    let dead = money::sum(dead)?;
    // Running work may still use what it took before the end.
    account.balance -= dead.min(account.available());
    Ok(account)
}

/// Sets Energy aside in each of the workspaces, none of which comes twice: all that is wanted, where that is available and nothing
/// has expired since the last sweep. Returns where it was.
pub(super) fn reserve_all(tx: &mut Tx, wanted: &[(WorkspaceId, i64)]) -> Result<HashSet<WorkspaceId>> {
    let now = tx.now();
    let wanted = Rows::of(wanted)
        .big_int("workspace", |(workspace, _)| *workspace)
        .big_int("energy", |(_, energy)| *energy)
        .given_time("now", now);
    // Accounts are locked in their order, so that two sets never wait for each other in a circle. The index of live grants is
    // found by the words `remaining > 0`.
    let reserved: Vec<Reserved> = wanted.load(
        tx,
        "WITH wanted AS (SELECT * FROM {listed}), locked (id) AS (
            SELECT workspace_id FROM energy_accounts WHERE workspace_id IN (SELECT workspace FROM wanted)
            ORDER BY workspace_id {for update}
        )
        UPDATE energy_accounts AS a SET reserved = a.reserved + wanted.energy
        FROM wanted JOIN locked ON locked.id = wanted.workspace
        WHERE a.workspace_id = wanted.workspace AND a.balance - a.reserved >= wanted.energy
            AND NOT EXISTS (SELECT 1 FROM energy_grants AS g WHERE g.workspace_id = wanted.workspace AND g.remaining > 0
                AND (g.expires_at <= {now} OR g.voided_at IS NOT NULL))
        RETURNING workspace_id",
    )?;
    Ok(reserved.into_iter().map(|reserved| reserved.workspace_id).collect())
}

#[derive(QueryableByName)]
struct Reserved {
    #[diesel(sql_type = BigInt)]
    workspace_id: WorkspaceId,
}

/// Locks an account until the transaction ends. `None` where the workspace has none.
pub(super) fn lock(tx: &mut Tx, workspace: WorkspaceId) -> Result<Option<Account>> {
    let query = energy_accounts::table.find(workspace).select(COLUMNS);
    Ok(for_update(query).get_result(tx.connection()).optional()?)
}

/// What is added to an account, or taken where negative.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Change {
    pub(super) balance: i64,
    pub(super) reserved: i64,
}

#[derive(QueryableByName)]
struct Changed {
    #[diesel(sql_type = BigInt)]
    workspace_id: WorkspaceId,
    #[diesel(embed)]
    account: Account,
}

/// Changes accounts. Returns them as they then stand.
///
/// # Errors
/// Internal where a workspace has none.
pub(super) fn change_all(
    tx: &mut Tx,
    changes: &BTreeMap<WorkspaceId, Change>,
) -> Result<BTreeMap<WorkspaceId, Account>> {
    let now = tx.now();
    let rows: Vec<(&WorkspaceId, &Change)> = changes.iter().collect();
    let rows = Rows::of(&rows)
        .big_int("workspace", |(workspace, _)| *workspace)
        .big_int("gained", |(_, change)| change.balance)
        .big_int("set_aside", |(_, change)| change.reserved)
        .given_time("now", now);
    // Accounts are locked in their order, so that two sets never wait for each other in a circle.
    let changed: Vec<Changed> = rows.load(
        tx,
        "WITH change AS (SELECT * FROM {listed}), locked (id) AS (
            SELECT workspace_id FROM energy_accounts WHERE workspace_id IN (SELECT workspace FROM change)
            ORDER BY workspace_id {for update}
        )
        UPDATE energy_accounts AS a
        SET balance = a.balance + change.gained, reserved = a.reserved + change.set_aside, updated_at = {now}
        FROM change JOIN locked ON locked.id = change.workspace WHERE a.workspace_id = change.workspace
        RETURNING workspace_id, balance, reserved, last_recharge, state",
    )?;
    let accounts: BTreeMap<WorkspaceId, Account> =
        changed.into_iter().map(|changed| (changed.workspace_id, changed.account)).collect();
    match changes.keys().find(|workspace| !accounts.contains_key(workspace)) {
        Some(workspace) => Err(missing(*workspace)),
        None => Ok(accounts),
    }
}

/// Changes one account.
pub(super) fn change(tx: &mut Tx, workspace: WorkspaceId, balance: i64, reserved: i64) -> Result<Account> {
    let changes = BTreeMap::from([(workspace, Change { balance, reserved })]);
    change_all(tx, &changes)?.remove(&workspace).ok_or_else(|| missing(workspace))
}

/// The error for a workspace without an account.
fn missing(workspace: WorkspaceId) -> Error {
    Error::internal(format!("workspace {workspace} has no Energy account"))
}

/// Adds a grant. `recharge` makes it the measure of "low". `None` where there is no account or it would overflow.
pub(super) fn recharge(
    tx: &mut Tx,
    workspace: WorkspaceId,
    energy: i64,
    recharge: bool,
) -> Result<Option<Account>> {
    use energy_accounts as a;
    let now: Timestamp = tx.now();
    let measure = recharge.then(|| a::last_recharge.eq(energy));
    Ok(each!(tx.connection(), |connection| {
        diesel::update(a::table.find(workspace))
            .filter(a::balance.le(MOST_BALANCE - energy))
            .set((a::balance.eq(a::balance + energy), a::updated_at.eq(now), measure))
            .returning(COLUMNS)
            .get_result(connection)
            .optional()
    })?)
}

/// Writes the state where it has changed, which happens once per crossing.
pub(super) fn refresh_state(tx: &mut Tx, workspace: WorkspaceId, account: &Account) -> Result<()> {
    let state = account.state();
    if state == account.state {
        return Ok(());
    }
    tracing::info!(
        workspace = workspace.0,
        from = account.state.as_str(),
        to = state.as_str(),
        "the state of Energy changed"
    );
    diesel::update(energy_accounts::table.find(workspace))
        .set(energy_accounts::state.eq(state))
        .execute(tx.connection())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::EnergyState as S;

    #[test]
    fn states_follow_what_is_available() {
        for (available, last, state) in [
            (0, 0, S::Depleted),
            (0, 100, S::Depleted),
            (1, 0, S::Ok),
            (9, 100, S::Low),
            (10, 100, S::Ok),
            (1, 15, S::Low),
            (super::MOST_BALANCE, super::MOST_BALANCE, S::Ok),
        ] {
            assert_eq!(S::of(available, last), state, "{available} of {last}");
        }
    }
}
