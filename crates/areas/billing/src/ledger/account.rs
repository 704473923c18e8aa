//! A workspace's account: what it owns and what is set aside.

use super::money;
use crate::schema::{energy_accounts, energy_grants};
use diesel::dsl::{exists, not, sql};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Text};
use model::{Error, Result, Timestamp, WorkspaceId, text_enum};
use store::Cached;
use store::{AnyConnection, Read, Tx, each};

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

/// Sets `energy` aside if all of it is available and nothing has expired since the last sweep.
pub(super) fn reserve(tx: &mut Tx, workspace: WorkspaceId, energy: i64) -> Result<bool> {
    use energy_accounts::{balance, reserved};
    // The index of live grants is found by these very words: with a value in its place SQLite would plan the
    // statement anew each time, and PostgreSQL would not use the index.
    let dead = energy_grants::table
        .filter(energy_grants::workspace_id.eq(workspace))
        .filter(sql::<Bool>("energy_grants.remaining > 0"))
        .filter(energy_grants::expires_at.le(tx.now()).or(energy_grants::voided_at.is_not_null()))
        .select(energy_grants::priority);
    let changed: Option<WorkspaceId> = each!(tx.connection(), |connection| {
        let update = diesel::update(energy_accounts::table.find(workspace))
            .filter((balance - reserved).ge(energy))
            .filter(not(exists(dead)))
            .set(reserved.eq(reserved + energy))
            .returning(energy_accounts::workspace_id);
        Cached(update).get_result(connection).optional()
    })?;
    Ok(changed.is_some())
}

/// Locks an account until the transaction ends. `None` where the workspace has none.
pub(super) fn lock(tx: &mut Tx, workspace: WorkspaceId) -> Result<Option<Account>> {
    let query = energy_accounts::table.find(workspace).select(COLUMNS);
    Ok(match tx.connection() {
        AnyConnection::Sqlite(connection) => query.first(connection),
        AnyConnection::Postgres(connection) => query.for_update().first(connection),
    }
    .optional()?)
}

/// Adds to what is owned and set aside (less, where negative) and gives the account as it then stands.
pub(super) fn change(tx: &mut Tx, workspace: WorkspaceId, balance: i64, reserved: i64) -> Result<Account> {
    use energy_accounts as a;
    let now = tx.now();
    let account = each!(tx.connection(), |connection| {
        let update = diesel::update(a::table.find(workspace))
            .set((
                a::balance.eq(a::balance + balance),
                a::reserved.eq(a::reserved + reserved),
                a::updated_at.eq(now),
            ))
            .returning(COLUMNS);
        Cached(update).get_result(connection).optional()
    })?;
    account.ok_or_else(|| missing(workspace))
}

/// The error for a workspace without an account.
pub(super) fn missing(workspace: WorkspaceId) -> Error {
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
