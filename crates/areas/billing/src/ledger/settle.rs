//! Debiting what steps used, and closing runs' accounts with their workspaces.
//!
//! A settlement is planned from the locked hold, without writing anything. Then the plans of all runs are written together, one
//! statement for each table, in the ledger's order of locks; rows of one table in the order of their keys.

use super::account::{self, Account, Change, MOST_BALANCE};
use super::agent_month::{self, AgentMonth};
use super::budget::{self, KeyMonth, KeyMonths};
use super::entries::{self, Entry, EntryKind, NewEntry};
use super::execution::{self, Ended};
use super::hold::{self, Held, HoldState};
use super::money;
use crate::schema::{energy_entries, grant_burns};
use auth::keys::Budget;
use diesel::dsl::max;
use diesel::prelude::*;
use model::{Error, GrantId, KeyId, LedgerId, Result, WorkspaceId};
use ports::{Charge, Closing, Settlement};
use std::collections::{BTreeMap, HashMap, HashSet};
use store::{OnConflict, Tx, insert_all};

/// A settlement and what it is charged to.
pub(super) type Settled<'a> = (&'a Charge, &'a Settlement<'a>);

/// [`ports::EnergyMeter::settle_all`].
pub(super) fn settle_all(tx: &mut Tx, settlements: &[Settled<'_>]) -> Result<Vec<i64>> {
    let mut charged = vec![0; settlements.len()];
    let mut left: Vec<(&mut i64, Settled<'_>)> =
        charged.iter_mut().zip(settlements.iter().copied()).collect();
    while !left.is_empty() {
        // Settlements of one run follow each other, because the later one finds what the earlier one left.
        let mut runs = HashSet::with_capacity(left.len());
        let (mut now, later): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|(_, (charge, _))| runs.insert(&charge.run));
        let round: Vec<Settled<'_>> = now.iter().map(|(_, settled)| *settled).collect();
        for ((charged, _), found) in now.iter_mut().zip(settle_runs(tx, &round)?) {
            **charged = found;
        }
        left = later;
    }
    Ok(charged)
}

/// Settles one step of each of some runs. Returns what each was charged, now or before.
fn settle_runs(tx: &mut Tx, settlements: &[Settled<'_>]) -> Result<Vec<i64>> {
    let steps: Vec<(&Charge, i64)> =
        settlements.iter().map(|(charge, settlement)| (*charge, settlement.step)).collect();
    let mut found = hold::lock_for_steps(tx, &steps)?;
    let (mut charged, mut plans) = (Vec::with_capacity(settlements.len()), Vec::new());
    for (charge, settlement) in settlements {
        let (held, is_settled) = found.remove(&charge.run).unwrap_or_default();
        let is_new = held.is_none();
        let held = held.unwrap_or_else(|| hold::nothing(tx, charge, HoldState::Expired));
        let before =
            if is_settled && settlement.energy > 0 { debited(tx, charge, settlement.step)? } else { 0 };
        let plan = Plan::new(tx, (charge, settlement), held, is_new, is_settled)?;
        charged.push(before + plan.as_ref().map_or(0, |plan| plan.charged));
        plans.extend(plan);
    }
    if !plans.is_empty() {
        write(tx, &plans)?;
    }
    Ok(charged)
}

/// What a step was debited when it was settled before.
fn debited(tx: &mut Tx, charge: &Charge, step: i64) -> Result<i64> {
    use energy_entries as e;
    let amount: Option<i64> = e::table
        .filter(e::source_type.eq("run"))
        .filter(e::source_id.eq(charge.run.as_str()))
        .filter(e::step.eq(step))
        .filter(e::kind.eq(EntryKind::Debit))
        .filter(e::workspace_id.eq(charge.caller.workspace_id()))
        .select(e::amount)
        .get_result(tx.connection())
        .optional()?;
    Ok(-amount.unwrap_or(0))
}

/// What is given back of a run: all that this attempt was debited.
struct Refund {
    energy: i64,
    micros: i64,
    /// The entries of its earlier steps.
    earlier: Vec<LedgerId>,
}

/// Everything that a settlement changes. This is the definition of a settlement.
struct Plan<'a> {
    charge: &'a Charge,
    settlement: &'a Settlement<'a>,
    /// The hold as it is to stand afterwards.
    held: Held,
    /// Whether the run has no hold yet.
    is_new: bool,
    /// Debited.
    charged: i64,
    /// What `charged` costs.
    micros: i64,
    /// Used beyond what was held: the platform's loss.
    absorbed: i64,
    /// Set free again, of the account and of the key's month.
    released: i64,
    freed_micros: i64,
    refund: Option<Refund>,
    /// The execution that the settlement closes.
    execution: Option<Ended<'a>>,
}

impl<'a> Plan<'a> {
    /// Plans a settlement. `None` where it changes nothing.
    fn new(
        tx: &mut Tx,
        (charge, settlement): Settled<'a>,
        mut held: Held,
        is_new: bool,
        is_settled: bool,
    ) -> Result<Option<Self>> {
        if settlement.energy > MOST_BALANCE {
            tracing::error!(run = %charge.run, energy = settlement.energy, "a step says that it used more than there can be");
        }
        let energy = if is_settled { 0 } else { settlement.energy.clamp(0, MOST_BALANCE) };
        let close = settlement.close.filter(|_| !held.is_closed());
        if energy == 0 && close.is_none() {
            return Ok(None);
        }
        let charged = energy.min(held.unused());
        let price = charge.caller.workspace.plan.usd_micros_per_1000_energy;
        let cost = money::cost(charged, price)?;
        // Steps are rounded up one by one, but together never above what the budget set aside.
        let micros = if held.reserved_micros > 0 { cost.min(held.reserved_micros) } else { cost };
        let released = if close.is_some() { held.unused() - charged } else { 0 };
        // The money for what stays set aside stays so too.
        let rest = money::cost(held.unused() - charged - released, price)?;
        let still_reserved = (held.reserved_micros - micros).max(0).min(rest);
        let freed_micros = held.reserved_micros - still_reserved;
        // Debits of several steps were each rounded up, so their prices are added.
        let earlier = if close.is_some() && held.used > 0 { debits(tx, charge)? } else { Vec::new() };
        held.used += charged;
        held.reserved_micros = still_reserved;
        if close.is_some() {
            held.state = HoldState::Settled;
        }
        let all_micros = money::sum(earlier.iter().map(|debit| -debit.usd_micros).chain([micros]))?;
        let refund = if close.is_some_and(|closing| closing.refund) {
            let energy = money::sum(earlier.iter().map(|debit| -debit.amount).chain([charged]))?;
            let earlier = earlier.into_iter().map(|debit| debit.id).collect();
            (energy > 0).then_some(Refund { energy, micros: all_micros, earlier })
        } else {
            None
        };
        let execution = close.map(|Closing { status, refund, last_step }| Ended {
            status,
            livemode: true,
            energy: if refund { 0 } else { held.used },
            usd_micros: if refund { 0 } else { all_micros },
            model: settlement.model,
            first_step: held.first_step,
            last_step,
        });
        let absorbed = energy - charged;
        Ok(Some(Self {
            charge,
            settlement,
            held,
            is_new,
            charged,
            micros,
            absorbed,
            released,
            freed_micros,
            refund,
            execution,
        }))
    }

    fn workspace(&self) -> WorkspaceId {
        self.charge.caller.workspace_id()
    }

    /// Energy and money that are given back.
    fn refunded(&self) -> (i64, i64) {
        self.refund.as_ref().map_or((0, 0), |refund| (refund.energy, refund.micros))
    }

    /// The key's month, and what is added to it. Locked also where a refund leaves it as it was.
    fn key_month(&self) -> Option<((&KeyId, &str), KeyMonth)> {
        let added = KeyMonth { spent: self.micros - self.refunded().1, reserved: -self.freed_micros };
        let changes = self.micros > 0 || self.freed_micros > 0 || self.refund.is_some();
        changes.then_some(((&self.charge.caller.key.lineage, self.held.month.as_str()), added))
    }

    /// The agent's month, and the Energy that is added to it.
    fn agent_month(&self) -> Option<(AgentMonth<'_>, i64)> {
        let changes = self.charged > 0 || self.refund.is_some();
        let month = (self.workspace(), self.charge.agent, self.held.month.as_str());
        changes.then_some((month, self.charged - self.refunded().0))
    }

    /// What the account gains, where Energy is metered.
    fn account_change(&self) -> Option<Change> {
        let changes = self.charged > 0 || self.released > 0 || self.refund.is_some();
        (changes && self.held.metered).then_some(Change {
            balance: self.refunded().0 - self.charged,
            reserved: -(self.charged + self.released),
        })
    }

    /// The entries, as long as they do not know the balance.
    fn entries(&self) -> Result<Vec<NewEntry<'_>>> {
        let mut entries = Vec::with_capacity(1);
        if self.charged > 0 {
            entries.push(self.entry(EntryKind::Debit, -self.charged, -self.micros));
        }
        if self.absorbed > 0 {
            tracing::warn!(run = %self.charge.run, energy = self.absorbed, "a step cost more than was held");
            let price = self.charge.caller.workspace.plan.usd_micros_per_1000_energy;
            let absorbed = self.entry(EntryKind::Absorb, self.absorbed, money::cost(self.absorbed, price)?);
            entries.push(NewEntry { metered: true, ..absorbed });
        }
        if let Some(refund) = &self.refund {
            entries.push(self.entry(EntryKind::Refund, refund.energy, refund.micros));
        }
        Ok(entries)
    }

    fn entry(&self, kind: EntryKind, amount: i64, usd_micros: i64) -> NewEntry<'_> {
        NewEntry {
            kind,
            amount,
            metered: self.held.metered,
            balance_after: 0,
            usd_micros,
            source: ("run", self.charge.run.as_str()),
            step: self.settlement.step,
            charge: Some(self.charge),
            operation: self.charge.operation,
            model: Some(self.settlement.model),
        }
    }
}

/// Writes plans of different runs.
fn write(tx: &mut Tx, plans: &[Plan<'_>]) -> Result<()> {
    hold::update_all(tx, &holds(plans, false))?;
    hold::insert_all(tx, &holds(plans, true), OnConflict::Fail)?;
    let months = count_key_months(tx, plans)?;
    // Read now that the months are locked: a budget that is being set waits for them, and tells what it finds spent.
    let keys: Vec<&KeyId> = plans
        .iter()
        .filter(|plan| plan.key_month().is_some())
        .map(|plan| &plan.charge.caller.key.id)
        .collect();
    let budgets = if keys.is_empty() { HashMap::new() } else { auth::keys::budgets(tx, &keys)? };
    let mut agent_months: BTreeMap<AgentMonth<'_>, i64> = BTreeMap::new();
    for (month, energy) in plans.iter().filter_map(Plan::agent_month) {
        *agent_months.entry(month).or_default() += energy;
    }
    agent_month::add_all(tx, &agent_months)?;
    let mut changes: BTreeMap<WorkspaceId, Change> = BTreeMap::new();
    for (plan, added) in plans.iter().filter_map(|plan| Some((plan, plan.account_change()?))) {
        let change = changes.entry(plan.workspace()).or_default();
        change.balance += added.balance;
        change.reserved += added.reserved;
    }
    let accounts = account::change_all(tx, &changes)?;
    let (entries, of_plans) = numbered_entries(tx, plans, &accounts)?;
    write_entries(tx, plans, &entries)?;
    refund_grants(tx, &entries, &of_plans)?;
    for (workspace, account) in &accounts {
        account::refresh_state(tx, *workspace, account)?;
    }
    emit_thresholds(tx, plans, &months, &budgets)
}

/// The holds that are to be written: new ones, or those that are there. A run without a hold gets one when it is closed.
fn holds<'p>(plans: &'p [Plan<'_>], new: bool) -> Vec<(&'p Charge, &'p Held)> {
    let is_written = |plan: &&Plan<'_>| plan.is_new == new && (!new || plan.execution.is_some());
    plans.iter().filter(is_written).map(|plan| (plan.charge, &plan.held)).collect()
}

fn count_key_months<'p>(tx: &mut Tx, plans: &'p [Plan<'_>]) -> Result<KeyMonths<'p>> {
    let mut added = KeyMonths::new();
    for (month, more) in plans.iter().filter_map(Plan::key_month) {
        let sum = added.entry(month).or_default();
        sum.spent = money::sum([sum.spent, more.spent])?;
        sum.reserved = money::sum([sum.reserved, more.reserved])?;
    }
    budget::add_all(tx, &added)
}

/// The entries of plans, each with the balance that it leaves: that of the account at the end, less what the later entries of the
/// workspace change. Returns the plan of each entry next to them.
fn numbered_entries<'p>(
    tx: &mut Tx,
    plans: &'p [Plan<'_>],
    accounts: &BTreeMap<WorkspaceId, Account>,
) -> Result<(Vec<Entry<'p>>, Vec<&'p Plan<'p>>)> {
    let (now, random) = (tx.now(), tx.random());
    let mut balances: HashMap<WorkspaceId, i64> =
        accounts.iter().map(|(workspace, account)| (*workspace, account.balance)).collect();
    let (mut entries, mut of_plans) = (Vec::with_capacity(plans.len()), Vec::with_capacity(plans.len()));
    for plan in plans {
        for new in plan.entries()? {
            entries.push(Entry { workspace: plan.workspace(), id: LedgerId::new(now, &*random), new });
            of_plans.push(plan);
        }
    }
    for entry in entries.iter_mut().rev() {
        let balance = match balances.get(&entry.workspace) {
            Some(balance) => *balance,
            None => account::find(tx, entry.workspace)?.balance,
        };
        entry.new.balance_after = balance;
        let changed = if entry.new.changes_balance() { entry.new.amount } else { 0 };
        balances.insert(entry.workspace, balance - changed);
    }
    Ok((entries, of_plans))
}

/// Writes entries, what they take out of grants, and executions.
fn write_entries(tx: &mut Tx, plans: &[Plan<'_>], entries: &[Entry<'_>]) -> Result<()> {
    let paid = entries.iter().filter(|entry| entry.new.kind == EntryKind::Debit && entry.new.metered);
    let paid: Vec<(WorkspaceId, &LedgerId, i64)> =
        paid.map(|entry| (entry.workspace, &entry.id, -entry.new.amount)).collect();
    let burns = entries::burn(tx, &paid)?;
    let ended: Vec<(&Charge, &Ended<'_>)> =
        plans.iter().filter_map(|plan| Some((plan.charge, plan.execution.as_ref()?))).collect();
    let entry_rows = entries::entry_rows(entries, tx.now());
    let (burn_rows, executions) = (entries::burn_rows(&burns), execution::rows(tx, &ended));
    let inserted = insert_all(
        tx,
        &[
            entry_rows.insertion("energy_entries", OnConflict::Ignore),
            burn_rows.insertion("grant_burns", OnConflict::Fail),
            executions.insertion("executions", OnConflict::Fail),
        ],
    )?;
    if inserted.first() == Some(&entries.len()) { Ok(()) } else { Err(settled_meanwhile()) }
}

/// Gives what refunded runs were debited back to the grants that it came from: to none where Energy is not metered.
fn refund_grants(tx: &mut Tx, entries: &[Entry<'_>], of_plans: &[&Plan<'_>]) -> Result<()> {
    for (entry, plan) in entries.iter().zip(of_plans) {
        let Some(refund) = plan.refund.as_ref().filter(|_| entry.new.kind == EntryKind::Refund) else {
            continue;
        };
        let of_step = entries.iter().zip(of_plans).filter(|(_, other)| std::ptr::eq(**other, *plan));
        let debits = of_step.map(|(entry, _)| &entry.id).chain(&refund.earlier);
        for (grant, amount) in burnt(tx, debits)? {
            entries::take(tx, &grant, -amount)?;
            entries::note_burn(tx, &entry.id, &grant, -amount)?;
        }
    }
    Ok(())
}

/// Emits the thresholds of budgets that keys have reached.
fn emit_thresholds(
    tx: &mut Tx,
    plans: &[Plan<'_>],
    months: &KeyMonths<'_>,
    budgets: &HashMap<KeyId, Budget>,
) -> Result<()> {
    for plan in plans {
        let key = &plan.charge.caller.key;
        let spent = plan.key_month().and_then(|(month, _)| Some(months.get(&month)?.spent));
        let (Some(budget), Some(spent)) = (budgets.get(&key.id), spent) else { continue };
        let spender = budget::Spender {
            workspace: plan.workspace(),
            cause: &plan.charge.caller.cause(),
            key: &key.id,
            lineage: &key.lineage,
            month: &plan.held.month,
        };
        budget::emit_reached(tx, &spender, spent, *budget)?;
    }
    Ok(())
}

/// Another worker settled the same step between our look and our write, which only PostgreSQL allows: the
/// transaction runs again, and then sees it.
fn settled_meanwhile() -> Error {
    use diesel::result::{DatabaseErrorKind, Error as Diesel};
    let message = "a step was settled meanwhile".to_owned();
    Diesel::DatabaseError(DatabaseErrorKind::SerializationFailure, Box::new(message)).into()
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = energy_entries)]
struct Debit {
    id: LedgerId,
    amount: i64,
    usd_micros: i64,
}

/// The debits of a run's attempt: those before a refund were given back with it.
fn debits(tx: &mut Tx, charge: &Charge) -> Result<Vec<Debit>> {
    use energy_entries as e;
    let own = || {
        e::table
            .filter(e::source_type.eq("run"))
            .filter(e::source_id.eq(charge.run.as_str()))
            .filter(e::workspace_id.eq(charge.caller.workspace_id()))
    };
    let refunded: Option<i64> =
        own().filter(e::kind.eq(EntryKind::Refund)).select(max(e::step)).get_result(tx.connection())?;
    Ok(own()
        .filter(e::kind.eq(EntryKind::Debit))
        .filter(e::step.gt(refunded.unwrap_or(i64::MIN)))
        .select(Debit::as_select())
        .load(tx.connection())?)
}

/// What entries took, summed by grant.
fn burnt<'e>(tx: &mut Tx, entries: impl Iterator<Item = &'e LedgerId>) -> Result<BTreeMap<GrantId, i64>> {
    let burns: Vec<(GrantId, i64)> = grant_burns::table
        .filter(grant_burns::entry_id.eq_any(entries))
        .select((grant_burns::grant_id, grant_burns::amount))
        .load(tx.connection())?;
    let mut sums = BTreeMap::new();
    for (grant, amount) in burns {
        *sums.entry(grant).or_insert(0) += amount;
    }
    Ok(sums)
}
