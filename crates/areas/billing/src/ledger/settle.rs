//! Debiting what a step used, and closing a run's account with the workspace.

use super::account::{self, Account, MOST_BALANCE};
use super::entries::{self, EntryKind, NewEntry};
use super::execution::{self, Ended};
use super::hold::{self, Held, HoldState};
use super::{agent_month, budget, money, together};
use crate::schema::{energy_entries, grant_burns};
use diesel::dsl::max;
use diesel::prelude::*;
use model::{Cause, Error, GrantId, KeyId, LedgerId, Result, WorkspaceId};
use ports::{Charge, Closing, Settlement};
use std::collections::BTreeMap;
use store::Tx;

/// [`ports::EnergyMeter::settle`].
pub(super) fn settle(tx: &mut Tx, charge: &Charge, settlement: &Settlement<'_>) -> Result<i64> {
    let (found, settled) = hold::lock_for_step(tx, charge, settlement.step)?;
    let is_new = found.is_none();
    let mut held = found.unwrap_or_else(|| hold::nothing(tx, charge, HoldState::Expired));
    let close = settlement.close.filter(|_| !held.is_closed());
    if settlement.energy > MOST_BALANCE {
        tracing::error!(run = %charge.run, energy = settlement.energy, "a step says that it used more than there can be");
    }
    let energy = if settled { 0 } else { settlement.energy.clamp(0, MOST_BALANCE) };
    let before = if settled && settlement.energy > 0 { debited(tx, charge, settlement.step)? } else { 0 };
    if energy == 0 && close.is_none() {
        return Ok(before);
    }
    let mut work = Work::new(charge, settlement, &held, energy, close.as_ref())?;
    if tx.is_postgres() && !is_new && work.is_plain() {
        work.write_together(tx, &mut held, close.as_ref())?;
    } else {
        work.write_apart(tx, &mut held, is_new, close.as_ref())?;
    }
    work.finish(tx, &held)?;
    Ok(before + work.charged)
}

/// A settlement that is a debit and nothing else, and the first of its run.
struct Plain<'a> {
    /// Its place among the settlements.
    place: usize,
    work: Work<'a>,
    held: Held,
    freed_micros: i64,
    close: Option<Closing<'a>>,
}

/// [`ports::EnergyMeter::settle_all`].
pub(super) fn settle_all(tx: &mut Tx, settlements: &[(Charge, Settlement<'_>)]) -> Result<Vec<i64>> {
    let mut plain = plain_ones(tx, settlements)?;
    let mut charged = vec![None; settlements.len()];
    let debits: Vec<together::Debit<'_>> = plain
        .iter()
        .map(|one| one.work.planned(&one.held, one.close.as_ref(), &[], one.freed_micros))
        .collect::<Result<_>>()?;
    let debited = if debits.is_empty() { Vec::new() } else { together::debit(tx, &debits)? };
    if debited.len() != debits.len() {
        return Err(Error::internal("a workspace has no Energy account"));
    }
    drop(debits);
    for (one, debited) in plain.iter_mut().zip(debited) {
        one.work.note(tx, &one.held, debited)?;
        if let Some(place) = charged.get_mut(one.place) {
            *place = Some(one.work.charged);
        }
    }
    finish_all(tx, &plain)?;
    let all = settlements.iter().zip(charged);
    all.map(|((charge, settlement), charged)| match charged {
        Some(charged) => Ok(charged),
        None => settle(tx, charge, settlement),
    })
    .collect()
}

/// Those of some settlements that can be written together, with their holds locked and brought to where they leave them.
fn plain_ones<'a>(tx: &mut Tx, settlements: &'a [(Charge, Settlement<'a>)]) -> Result<Vec<Plain<'a>>> {
    let steps: Vec<(&Charge, i64)> =
        settlements.iter().map(|(charge, settlement)| (charge, settlement.step)).collect();
    let mut unsettled = hold::lock_unsettled(tx, &steps)?;
    let mut plain = Vec::with_capacity(settlements.len());
    for (place, (charge, settlement)) in settlements.iter().enumerate() {
        let Some(mut held) = unsettled.remove(&charge.run).filter(|held| !held.is_closed()) else { continue };
        let close = settlement.close;
        let energy = settlement.energy.clamp(0, MOST_BALANCE);
        let work = Work::new(charge, settlement, &held, energy, close.as_ref())?;
        if energy == settlement.energy && held.used == 0 && work.is_plain() {
            let freed_micros = work.apply(&mut held, close.as_ref())?;
            plain.push(Plain { place, work, held, freed_micros, close });
        }
    }
    Ok(plain)
}

/// Says what settlements changed together: the states of accounts, and the thresholds of keys that have a budget.
fn finish_all(tx: &mut Tx, plain: &[Plain<'_>]) -> Result<()> {
    let accounts: BTreeMap<WorkspaceId, &Account> =
        plain.iter().filter_map(|one| Some((one.work.workspace, one.work.account.as_ref()?))).collect();
    for (workspace, account) in accounts {
        account::refresh_state(tx, workspace, account)?;
    }
    // Read now that the months are locked: a budget that is being set waits for them, and tells what it finds spent.
    let keys: Vec<&KeyId> = plain.iter().map(|one| &one.work.charge.caller.key.id).collect();
    let budgets = auth::keys::budgets(tx, &keys)?;
    for one in plain {
        let (Some(budget), Some(spent)) = (budgets.get(&one.work.charge.caller.key.id), one.work.spent)
        else {
            continue;
        };
        let cause = one.work.charge.caller.cause();
        budget::emit_reached(tx, &one.work.spender(&one.held, &cause), spent, *budget)?;
    }
    Ok(())
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

/// One settlement on its way.
struct Work<'a> {
    charge: &'a Charge,
    settlement: &'a Settlement<'a>,
    workspace: WorkspaceId,
    /// Whether the account pays.
    metered: bool,
    /// Debited.
    charged: i64,
    /// What `charged` costs.
    micros: i64,
    /// Used beyond what was held: the platform's loss.
    absorbed: i64,
    /// Set free again.
    released: i64,
    /// Whether what was debited is given back.
    refunds: bool,
    /// The account and the key's spending as they stand now, where they changed.
    account: Option<Account>,
    spent: Option<i64>,
}

impl<'a> Work<'a> {
    fn new(
        charge: &'a Charge,
        settlement: &'a Settlement<'a>,
        held: &Held,
        energy: i64,
        closing: Option<&Closing<'_>>,
    ) -> Result<Self> {
        let charged = energy.min(held.unused());
        let price = charge.caller.workspace.plan.usd_micros_per_1000_energy;
        let cost = money::cost(charged, price)?;
        // Steps are rounded up one by one, but together never above what the budget set aside.
        let micros = if held.reserved_micros > 0 { cost.min(held.reserved_micros) } else { cost };
        Ok(Self {
            charge,
            settlement,
            workspace: charge.caller.workspace_id(),
            metered: held.metered,
            charged,
            micros,
            absorbed: energy - charged,
            released: if closing.is_some() { held.unused() - charged } else { 0 },
            refunds: closing.is_some_and(|closing| closing.refund) && held.used + charged > 0,
            account: None,
            spent: None,
        })
    }

    fn source(&self) -> (&'static str, &'a str) {
        ("run", self.charge.run.as_str())
    }

    fn entry(&self, kind: EntryKind, amount: i64, micros: i64, balance_after: i64) -> NewEntry<'a> {
        NewEntry {
            kind,
            amount,
            metered: self.metered,
            balance_after,
            usd_micros: micros,
            source: self.source(),
            step: self.settlement.step,
            charge: Some(self.charge),
            operation: self.charge.operation,
            model: Some(self.settlement.model),
        }
    }

    /// Whether it is a debit, and nothing but one.
    fn is_plain(&self) -> bool {
        self.charged > 0 && self.micros > 0 && self.absorbed == 0 && !self.refunds
    }

    /// Writes everything by one statement.
    fn write_together(&mut self, tx: &mut Tx, held: &mut Held, closing: Option<&Closing<'_>>) -> Result<()> {
        let earlier = if closing.is_some() && held.used > 0 { self.debits(tx)? } else { Vec::new() };
        let freed_micros = self.apply(held, closing)?;
        let debit = self.planned(held, closing, &earlier, freed_micros)?;
        let debited = together::debit(tx, &[debit])?.pop().ok_or_else(|| account::missing(self.workspace))?;
        self.note(tx, held, debited)
    }

    /// Brings a hold to where a debit leaves it. Gives the money that is no longer set aside.
    fn apply(&self, held: &mut Held, closing: Option<&Closing<'_>>) -> Result<i64> {
        let still_reserved = self.still_reserved(held)?;
        let freed_micros = held.reserved_micros - still_reserved;
        held.used += self.charged;
        held.reserved_micros = still_reserved;
        if closing.is_some() {
            held.state = HoldState::Settled;
        }
        Ok(freed_micros)
    }

    /// The debit that leaves a hold so, after the `earlier` ones of its attempt.
    fn planned<'d>(
        &'d self,
        held: &'d Held,
        closing: Option<&Closing<'d>>,
        earlier: &[Debit],
        freed_micros: i64,
    ) -> Result<together::Debit<'d>> {
        let micros = money::sum(earlier.iter().map(|debit| -debit.usd_micros).chain([self.micros]))?;
        Ok(together::Debit {
            charge: self.charge,
            settlement: self.settlement,
            energy: self.charged,
            micros: self.micros,
            unreserved: self.charged + self.released,
            freed_micros,
            held,
            execution: closing.map(|closing| self.ended(held, closing, held.used, micros)),
        })
    }

    /// Takes in what a debit has changed.
    fn note(&mut self, tx: &mut Tx, held: &Held, debited: together::Debited) -> Result<()> {
        let entry = debited.entry.ok_or_else(settled_meanwhile)?;
        let lineage = &self.charge.caller.key.lineage;
        budget::check_range(lineage, &held.month, debited.key_spent, debited.key_reserved)?;
        agent_month::check_range(self.charge, &held.month, debited.agent_spent)?;
        if !debited.is_burnt {
            entries::burn_several(tx, self.workspace, &entry, self.charged)?;
        }
        self.account = Some(debited.account);
        self.spent = Some(debited.key_spent);
        Ok(())
    }

    /// Writes statement by statement.
    fn write_apart(
        &mut self,
        tx: &mut Tx,
        held: &mut Held,
        is_new: bool,
        closing: Option<&Closing<'_>>,
    ) -> Result<()> {
        self.debit(tx, held)?;
        if let Some(closing) = closing {
            held.state = HoldState::Settled;
            hold::store(tx, self.charge, held, is_new)?;
            self.close(tx, held, closing)
        } else if !is_new {
            hold::store(tx, self.charge, held, false)
        } else {
            Ok(())
        }
    }

    /// The money that stays set aside in the key's month.
    fn still_reserved(&self, held: &Held) -> Result<i64> {
        let rest = held.unused() - self.charged - self.released;
        let price = self.charge.caller.workspace.plan.usd_micros_per_1000_energy;
        Ok((held.reserved_micros - self.micros).max(0).min(money::cost(rest, price)?))
    }

    /// Key, agent, account, entry and grants, in the order of locks.
    fn debit(&mut self, tx: &mut Tx, held: &mut Held) -> Result<()> {
        let still_reserved = self.still_reserved(held)?;
        let freed = held.reserved_micros - still_reserved;
        // A refund changes the key's month after the account, so it is locked here: first the key, then the account.
        if self.micros > 0 || freed > 0 || self.refunds {
            let lineage = &self.charge.caller.key.lineage;
            self.spent = Some(budget::add(tx, lineage, &held.month, self.micros, -freed)?.spent);
        }
        // Also where only a refund will come back to the agent: then the account is locked already.
        if self.charged > 0 || self.refunds {
            agent_month::add(tx, self.charge, &held.month, self.charged)?;
        }
        if self.metered && (self.charged > 0 || self.released > 0) {
            let reserved = -(self.charged + self.released);
            self.account = Some(account::change(tx, self.workspace, -self.charged, reserved)?);
        }
        if self.charged > 0 {
            let balance = self.balance(tx)?;
            let entry = self.entry(EntryKind::Debit, -self.charged, -self.micros, balance);
            let id = entries::insert(tx, self.workspace, &entry)?.ok_or_else(settled_meanwhile)?;
            if self.metered {
                entries::burn(tx, self.workspace, &id, self.charged)?;
            }
        }
        if self.absorbed > 0 {
            self.absorb(tx)?;
        }
        held.used += self.charged;
        held.reserved_micros = still_reserved;
        Ok(())
    }

    /// The balance as it stands now.
    fn balance(&self, tx: &mut Tx) -> Result<i64> {
        match &self.account {
            Some(account) => Ok(account.balance),
            None => Ok(account::find(tx, self.workspace)?.balance),
        }
    }

    fn absorb(&self, tx: &mut Tx) -> Result<()> {
        tracing::warn!(run = %self.charge.run, energy = self.absorbed, "a step cost more than was held");
        let price = self.charge.caller.workspace.plan.usd_micros_per_1000_energy;
        let balance = self.balance(tx)?;
        let micros = money::cost(self.absorbed, price)?;
        let entry =
            NewEntry { metered: true, ..self.entry(EntryKind::Absorb, self.absorbed, micros, balance) };
        entries::insert(tx, self.workspace, &entry)?.ok_or_else(settled_meanwhile)?;
        Ok(())
    }

    /// Writes the execution, after a refund where nothing usable came of it.
    fn close(&mut self, tx: &mut Tx, held: &Held, closing: &Closing<'_>) -> Result<()> {
        let (energy, usd_micros) = if closing.refund {
            self.refund(tx, held)?;
            (0, 0)
        } else if held.used == self.charged {
            (held.used, self.micros)
        } else {
            // Several steps, each rounded up by itself.
            (held.used, money::sum(self.debits(tx)?.into_iter().map(|debit| -debit.usd_micros))?)
        };
        execution::record(tx, self.charge, &self.ended(held, closing, energy, usd_micros))
    }

    fn ended<'e>(&'e self, held: &Held, closing: &Closing<'e>, energy: i64, usd_micros: i64) -> Ended<'e> {
        Ended {
            status: closing.status,
            livemode: true,
            energy,
            usd_micros,
            model: self.settlement.model,
            first_step: held.first_step,
            last_step: closing.last_step,
        }
    }

    /// The debits of this attempt: those before a refund were given back with it.
    fn debits(&self, tx: &mut Tx) -> Result<Vec<Debit>> {
        use energy_entries as e;
        let (kind, id) = self.source();
        let own = || {
            e::table
                .filter(e::source_type.eq(kind))
                .filter(e::source_id.eq(id))
                .filter(e::workspace_id.eq(self.workspace))
        };
        let refunded: Option<i64> =
            own().filter(e::kind.eq(EntryKind::Refund)).select(max(e::step)).get_result(tx.connection())?;
        Ok(own()
            .filter(e::kind.eq(EntryKind::Debit))
            .filter(e::step.gt(refunded.unwrap_or(i64::MIN)))
            .select(Debit::as_select())
            .load(tx.connection())?)
    }

    /// Gives everything back that the run was debited, to the grants it came from: none where Energy is not metered.
    fn refund(&mut self, tx: &mut Tx, held: &Held) -> Result<()> {
        let debits = self.debits(tx)?;
        let energy = money::sum(debits.iter().map(|debit| -debit.amount))?;
        let micros = money::sum(debits.iter().map(|debit| -debit.usd_micros))?;
        if energy == 0 {
            return Ok(());
        }
        let lineage = &self.charge.caller.key.lineage;
        self.spent = Some(budget::add(tx, lineage, &held.month, -micros, 0)?.spent);
        agent_month::add(tx, self.charge, &held.month, -energy)?;
        if self.metered {
            self.account = Some(account::change(tx, self.workspace, energy, 0)?);
        }
        let entry = self.entry(EntryKind::Refund, energy, micros, self.balance(tx)?);
        let id = entries::insert(tx, self.workspace, &entry)?.ok_or_else(settled_meanwhile)?;
        for (grant, amount) in burnt(tx, &debits)? {
            entries::take(tx, &grant, -amount)?;
            entries::note_burn(tx, &id, &grant, -amount)?;
        }
        Ok(())
    }

    /// Says what the settlement changed: the account's state, and the key's thresholds.
    fn finish(&self, tx: &mut Tx, held: &Held) -> Result<()> {
        if let Some(account) = &self.account {
            account::refresh_state(tx, self.workspace, account)?;
        }
        let Some(spent) = self.spent else { return Ok(()) };
        budget::emit_thresholds(tx, &self.spender(held, &self.charge.caller.cause()), spent)
    }

    fn spender<'s>(&'s self, held: &'s Held, cause: &'s Cause) -> budget::Spender<'s> {
        let key = &self.charge.caller.key;
        let Work { workspace, .. } = *self;
        budget::Spender { workspace, cause, key: &key.id, lineage: &key.lineage, month: &held.month }
    }
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

/// What `debits` took, summed by grant.
fn burnt(tx: &mut Tx, debits: &[Debit]) -> Result<std::collections::BTreeMap<GrantId, i64>> {
    let mut sums = std::collections::BTreeMap::new();
    for debit in debits {
        let burns: Vec<(GrantId, i64)> = grant_burns::table
            .filter(grant_burns::entry_id.eq(&debit.id))
            .select((grant_burns::grant_id, grant_burns::amount))
            .load(tx.connection())?;
        for (grant, amount) in burns {
            *sums.entry(grant).or_insert(0) += amount;
        }
    }
    Ok(sums)
}
