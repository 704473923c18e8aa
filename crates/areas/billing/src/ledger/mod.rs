//! Energy, kept by double entry.
//!
//! A workspace has one account. `balance` is what it owns, `reserved` what running work has set aside of it, and
//! the difference is what new work may take. Energy comes in by grants, and every grant knows what is left of it.
//! Each movement is an entry that is never changed, with its other side in `counter_account`; [`check_invariants`]
//! says what must hold after every transaction.
//!
//! On a plan that does not meter Energy, runs are held and settled in the same way, and count in the months of keys and
//! agents, but their entries have the counter account [`UNMETERED`], and neither the account nor grants change.
//!
//! Whoever changes rows locks them in one order: hold, key, agent, account, grants. So two transactions never wait
//! for each other in a circle.
//!
//! Whatever is held or settled is a set, of one run or of many, so each rule stands once. A set takes three statements for first
//! holds, and to settle steps and close their runs eight on PostgreSQL and ten on SQLite.

mod account;
mod agent_month;
mod budget;
mod entries;
mod execution;
mod expiry;
mod grants;
mod hold;
mod invariants;
mod money;
mod recharged;
mod settle;
mod sweep;

pub use account::{EnergyState, MOST_BALANCE};
pub(crate) use account::{find as find_account, open as open_account};
pub(crate) use budget::{BudgetEvent, month_of};
pub use budget::{budget_changed, spent_cents, spent_micros};
pub use entries::EntryKind;
pub(crate) use entries::UNMETERED;
pub use expiry::sweep_expired_grants;
pub use grants::{GrantKind, GrantSource, NewGrant, adjust, grant, sweep_pending_grants, void_grant};
pub(crate) use hold::HELD_ENERGY;
pub use invariants::{check_all, check_invariants};
pub(crate) use money::{MICROS_PER_CENT, percent};
pub(crate) use recharged::Recharged;
pub use sweep::sweep_expired_holds;

use auth::Spending;
use model::Result;
use ports::{Charge, EnergyMeter, Settlement, TestExecution};
use std::sync::Arc;
use store::Tx;

/// The keeper of Energy.
pub struct Ledger {
    recharge_url: Option<String>,
    spending: Option<Arc<Spending>>,
}

impl Ledger {
    /// A ledger whose refusals send people to `recharge_url`, if there is such a page.
    pub fn new(recharge_url: Option<String>) -> Self {
        Self { recharge_url, spending: None }
    }

    /// Lets the gate forget what it remembers of a key's spending whenever the key spends.
    #[must_use]
    pub fn with_spending(mut self, spending: Arc<Spending>) -> Self {
        self.spending = Some(spending);
        self
    }
}

impl EnergyMeter for Ledger {
    fn reopen(&self, tx: &mut Tx, charge: &Charge, first_step: i64) -> Result<()> {
        hold::reopen(tx, charge, first_step)
    }

    fn record_test(&self, tx: &mut Tx, charge: &Charge, execution: &TestExecution<'_>) -> Result<()> {
        execution::record_test(tx, charge, execution)
    }

    fn hold(&self, tx: &mut Tx, charge: &Charge, wanted: i64, least: i64) -> Result<i64> {
        hold::hold(tx, charge, wanted, least, self.recharge_url.as_deref())
    }

    fn hold_all(&self, tx: &mut Tx, holds: &[(Charge, i64)]) -> Result<Vec<bool>> {
        hold::hold_all(tx, holds)
    }

    fn admit(&self, tx: &mut Tx, charge: &Charge, least: i64) -> Result<()> {
        hold::admit(tx, charge, least, self.recharge_url.as_deref())
    }

    fn settle(&self, tx: &mut Tx, charge: &Charge, settlement: &Settlement<'_>) -> Result<i64> {
        let charged = settle::settle_all(tx, &[(charge, settlement)])?;
        self.forget_spending(tx, charge);
        Ok(charged.first().copied().unwrap_or(0))
    }

    fn settle_all(&self, tx: &mut Tx, settlements: &[(Charge, Settlement<'_>)]) -> Result<Vec<i64>> {
        let all: Vec<settle::Settled<'_>> =
            settlements.iter().map(|(charge, settlement)| (charge, settlement)).collect();
        let charged = settle::settle_all(tx, &all)?;
        settlements.iter().for_each(|(charge, _)| self.forget_spending(tx, charge));
        Ok(charged)
    }
}

impl Ledger {
    /// Lets the gate forget what a key has spent once the transaction is through.
    fn forget_spending(&self, tx: &mut Tx, charge: &Charge) {
        if let Some(spending) = self.spending.clone() {
            let lineage = charge.caller.key.lineage.clone();
            tx.after_commit(move || spending.forget(&lineage));
        }
    }
}
