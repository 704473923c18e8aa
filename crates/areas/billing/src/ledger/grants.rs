//! Grants: how Energy comes in, at once or later, and how it is taken back.

use super::account::{self, MOST_BALANCE};
use super::entries::{self, EntryKind, NewEntry};
use super::recharged::Recharged;
use super::{expiry, money};
use crate::schema::{energy_entries, energy_grants, grant_burns};
use auth::workspaces;
use diesel::prelude::*;
use model::{Cause, Code, Error, GrantId, LedgerId, Result, Timestamp, WorkspaceId, text_enum};
use store::{OneRow, Tx};

text_enum! {
    /// The source of Energy.
    pub enum GrantKind {
        /// Bought.
        Purchase = "purchase",
        /// Included in the plan.
        Plan = "plan",
        /// Promotional.
        Promo = "promo",
        /// A correction by the operator.
        Adjustment = "adjustment",
    }
}

impl GrantKind {
    /// Whether it is the measure of what is low. What was given away or put right says nothing about what is used.
    fn is_recharge(self) -> bool {
        matches!(self, Self::Purchase | Self::Plan)
    }

    fn entry(self) -> EntryKind {
        if self == Self::Adjustment { EntryKind::Adjust } else { EntryKind::Grant }
    }

    /// What was given is used before what was bought.
    fn priority(self) -> i64 {
        match self {
            Self::Promo => 10,
            Self::Plan => 20,
            Self::Adjustment => 30,
            Self::Purchase => 50,
        }
    }
}

/// What a grant is made for, so that it is made once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantSource {
    /// The kind of cause, such as `recharge`. `adjustment`, `grant` and `run` are taken.
    pub kind: &'static str,
    /// The id.
    pub id: String,
}

/// Energy to be given to a workspace.
#[derive(Debug, Clone)]
pub struct NewGrant {
    /// Where it comes from.
    pub kind: GrantKind,
    /// How much, at least 1.
    pub amount: i64,
    /// Lower burns first: 0 to 100.
    pub priority: i64,
    /// What 1,000 of it cost, in millionths of a dollar. `None` takes the plan's price for a purchase and nothing
    /// for the others.
    pub usd_micros_per_1000: Option<i64>,
    /// When it is given; `None` is now. Until then it is pending.
    pub effective_at: Option<Timestamp>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// A word for people, at most 500 characters.
    pub note: Option<String>,
    /// Its cause; a second grant for the same cause is not made. For grants that are given now.
    pub source: Option<GrantSource>,
}

impl NewGrant {
    /// A grant of `amount` that does not end, in its kind's usual place in the order.
    pub fn new(kind: GrantKind, amount: i64) -> Self {
        Self {
            kind,
            amount,
            priority: kind.priority(),
            usd_micros_per_1000: None,
            effective_at: None,
            expires_at: None,
            note: None,
            source: None,
        }
    }

    fn check(&self, now: Timestamp) -> Result<()> {
        if !(1..=MOST_BALANCE).contains(&self.amount) {
            return Err(Error::invalid("amount", format_args!("must be between 1 and {MOST_BALANCE}")));
        }
        if !(0..=100).contains(&self.priority) {
            return Err(Error::invalid("priority", "must be between 0 and 100"));
        }
        if self.usd_micros_per_1000.is_some_and(|price| !(0..=1_000_000_000_000).contains(&price)) {
            return Err(Error::invalid("usd_micros_per_1000", "must be between 0 and 1000000000000"));
        }
        let is_pending = self.effective_at.is_some_and(|start| start > now);
        if is_pending && self.source.is_some() {
            return Err(Error::invalid("effective_at", "must not be in the future for a grant with a cause"));
        }
        let start = self.effective_at.map_or(now, |start| start.max(now));
        if self.expires_at.is_some_and(|end| end <= start) {
            let rule = if is_pending { "must be after `effective_at`" } else { "must be in the future" };
            return Err(Error::invalid("expires_at", rule));
        }
        if self.note.as_ref().is_some_and(|note| note.chars().count() > 500) {
            return Err(Error::invalid("note", "must have at most 500 characters"));
        }
        Ok(())
    }
}

#[derive(Insertable)]
#[diesel(table_name = energy_grants)]
struct LedgerGrant<'a> {
    id: &'a GrantId,
    workspace_id: WorkspaceId,
    kind: GrantKind,
    amount: i64,
    remaining: i64,
    priority: i64,
    usd_micros_per_1000: i64,
    effective_at: Timestamp,
    expires_at: Option<Timestamp>,
    note: Option<&'a str>,
    created_at: Timestamp,
    pending: bool,
}

/// Gives Energy to a workspace, which ends its depletion with the same commit, or notes that it is to be given.
/// Where the grant's source was granted before, nothing changes and that grant's id is given.
///
/// # Errors
/// `validation_error` for a grant that cannot be, `workspace_not_found`.
pub fn grant(tx: &mut Tx, workspace: WorkspaceId, new: &NewGrant) -> Result<GrantId> {
    new.check(tx.now())?;
    let price = match new.usd_micros_per_1000 {
        Some(price) => price,
        None if new.kind == GrantKind::Purchase => workspaces::energy_price(tx, workspace)?,
        None => 0,
    };
    if money::cost(new.amount, price).is_err() {
        let rule = format!(
            "must be smaller: at {price} micros for 1,000, the grant would cost more than 4,000,000,000,000 dollars"
        );
        return Err(Error::invalid("amount", rule));
    }
    // The account is locked from here on, so that two grants for the same cause see each other.
    if account::lock(tx, workspace)?.is_none() {
        return Err(unknown());
    }
    if let Some(source) = &new.source
        && let Some(known) = granted_for(tx, workspace, source)?
    {
        return Ok(known);
    }
    let id = GrantId::new(tx.now(), &*tx.random());
    let pending = new.effective_at.filter(|start| *start > tx.now());
    let row = LedgerGrant {
        id: &id,
        workspace_id: workspace,
        kind: new.kind,
        amount: new.amount,
        remaining: if pending.is_some() { 0 } else { new.amount },
        priority: new.priority,
        usd_micros_per_1000: price,
        effective_at: pending.unwrap_or(tx.now()),
        expires_at: new.expires_at,
        note: new.note.as_deref(),
        created_at: tx.now(),
        pending: pending.is_some(),
    };
    diesel::insert_into(energy_grants::table).values(row).execute(tx.connection())?;
    if pending.is_none() {
        let source = new.source.as_ref().map(|source| (source.kind, source.id.as_str()));
        let granted = Granted { id: &id, kind: new.kind, amount: new.amount, usd_micros_per_1000: price };
        book(tx, workspace, &granted, source)?;
    }
    Ok(id)
}

/// A grant whose Energy comes in.
struct Granted<'a> {
    id: &'a GrantId,
    kind: GrantKind,
    amount: i64,
    usd_micros_per_1000: i64,
}

/// Writes a grant's Energy into the books. The caller has locked the account.
fn book(
    tx: &mut Tx,
    workspace: WorkspaceId,
    granted: &Granted<'_>,
    source: Option<(&str, &str)>,
) -> Result<()> {
    let Granted { id, kind, amount, usd_micros_per_1000 } = *granted;
    let account = account::recharge(tx, workspace, amount, kind.is_recharge())?.ok_or_else(|| {
        Error::invalid("amount", format_args!("would raise the balance above {MOST_BALANCE}"))
    })?;
    let entry = NewEntry {
        kind: kind.entry(),
        amount,
        metered: true,
        balance_after: account.balance,
        usd_micros: money::cost(amount, usd_micros_per_1000)?,
        source: source.unwrap_or(("grant", id.as_str())),
        step: 0,
        charge: None,
        operation: kind.as_str(),
        model: None,
    };
    let entry = entries::insert(tx, workspace, entry)?.ok_or_else(|| {
        Error::new(Code::DuplicateValue, "Energy was granted for this to another workspace.")
    })?;
    entries::note_burn(tx, &entry, id, -amount)?;
    if kind.is_recharge() {
        let event =
            Recharged { grant_id: id, source: kind.as_str(), energy: amount, available: account.available() };
        tx.emit(workspace, &Cause::system("billing"), true, &event)?;
    }
    account::refresh_state(tx, workspace, &account)
}

/// The most pending grants that one sweep gives.
const BATCH: i64 = 100;

/// Gives the Energy of grants whose time has come, and says how many those were: at most 100, and then there may be
/// more.
///
/// # Errors
/// When the database fails.
pub fn sweep_pending_grants(tx: &mut Tx) -> Result<usize> {
    use energy_grants as g;
    let now = tx.now();
    let mut due: Vec<(WorkspaceId, GrantId)> = g::table
        .filter(g::pending)
        .filter(g::effective_at.le(now))
        .order((g::effective_at.asc(), g::id.asc()))
        .select((g::workspace_id, g::id))
        .limit(BATCH)
        .load(tx.connection())?;
    // Whoever locks several accounts does so in this order.
    due.sort();
    let mut given = 0;
    for (workspace, id) in &due {
        given += usize::from(give_pending(tx, *workspace, id)?);
    }
    Ok(given)
}

fn give_pending(tx: &mut Tx, workspace: WorkspaceId, id: &GrantId) -> Result<bool> {
    use energy_grants as g;
    let Some(account) = account::lock(tx, workspace)? else { return Ok(false) };
    // Asked again under the lock: it may have been given or voided meanwhile.
    let own = g::table.find(id).filter(g::workspace_id.eq(workspace)).filter(g::pending);
    let row: Option<(GrantKind, i64, i64)> =
        own.select((g::kind, g::amount, g::usd_micros_per_1000)).get_result(tx.connection()).optional()?;
    let Some((kind, amount, usd_micros_per_1000)) = row else { return Ok(false) };
    if account.balance > MOST_BALANCE - amount {
        tracing::error!(workspace = workspace.0, grant = %id, "a pending grant would overflow the balance");
        return Ok(false);
    }
    diesel::update(own).set((g::pending.eq(false), g::remaining.eq(amount))).execute(tx.connection())?;
    book(tx, workspace, &Granted { id, kind, amount, usd_micros_per_1000 }, None)?;
    Ok(true)
}

fn granted_for(tx: &mut Tx, workspace: WorkspaceId, source: &GrantSource) -> Result<Option<GrantId>> {
    use energy_entries as e;
    Ok(e::table
        .inner_join(grant_burns::table.on(grant_burns::entry_id.eq(e::id)))
        .filter(e::source_type.eq(source.kind))
        .filter(e::source_id.eq(&source.id))
        .filter(e::kind.eq_any([EntryKind::Grant, EntryKind::Adjust]))
        .filter(e::workspace_id.eq(workspace))
        .select(grant_burns::grant_id)
        .first(tx.connection())
        .optional()?)
}

fn unknown() -> Error {
    Error::new(Code::WorkspaceNotFound, "The workspace does not exist.")
}

/// Takes back what is left of a grant and gives how much that was. What running work has set aside stays until
/// that work is settled, and is then taken by [`super::sweep_expired_grants`]. A pending grant will not be given.
/// Voiding twice changes nothing.
///
/// # Errors
/// `not_found`.
pub fn void_grant(tx: &mut Tx, workspace: WorkspaceId, id: &GrantId) -> Result<i64> {
    use energy_grants as g;
    account::lock(tx, workspace)?;
    let known = g::table.find(id).filter(g::workspace_id.eq(workspace));
    let before: i64 = known.select(g::remaining).first(tx.connection()).or_not_found("grant")?;
    let now = tx.now();
    diesel::update(g::table.find(id))
        .filter(g::voided_at.is_null())
        .set((g::voided_at.eq(now), g::pending.eq(false)))
        .execute(tx.connection())?;
    expiry::sweep_workspace(tx, workspace)?;
    let after: i64 = known.select(g::remaining).first(tx.connection())?;
    Ok(before - after)
}

/// Puts a balance right by `amount`: gives it as a grant, whose id is then answered, or takes it, where negative, out
/// of what no running work has set aside, in the order in which grants burn.
///
/// # Errors
/// `validation_error` for an amount of 0, or of more than there is to take; `workspace_not_found`.
pub fn adjust(tx: &mut Tx, workspace: WorkspaceId, amount: i64) -> Result<Option<GrantId>> {
    if amount >= 0 {
        return grant(tx, workspace, &NewGrant::new(GrantKind::Adjustment, amount)).map(Some);
    }
    let account = expiry::sweep_workspace(tx, workspace)?.ok_or_else(unknown)?;
    let energy = amount.saturating_neg();
    if energy > account.available() {
        let available = account.available();
        return Err(Error::invalid(
            "amount",
            format_args!("must take at most the {available} Energy that is available"),
        ));
    }
    let shares = entries::shares(tx, workspace, energy)?;
    let micros = shares.iter().map(|share| money::cost(share.amount, share.usd_micros_per_1000));
    let micros = money::sum(micros.collect::<Result<Vec<_>>>()?)?;
    let account = account::change(tx, workspace, -energy, 0)?;
    let source = LedgerId::new(tx.now(), &*tx.random());
    let entry = NewEntry {
        kind: EntryKind::Adjust,
        amount: -energy,
        metered: true,
        balance_after: account.balance,
        usd_micros: -micros,
        source: ("adjustment", source.as_str()),
        step: 0,
        charge: None,
        operation: GrantKind::Adjustment.as_str(),
        model: None,
    };
    let entry = entries::insert(tx, workspace, entry)?
        .ok_or_else(|| Error::internal("a new adjustment has an entry already"))?;
    entries::burn_shares(tx, &entry, &shares)?;
    account::refresh_state(tx, workspace, &account)?;
    Ok(None)
}
