//! Entries, and what they take out of grants.

use crate::schema::{energy_entries, energy_grants, grant_burns};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use model::{AgentId, Error, GrantId, KeyId, LedgerId, RequestId, Result, Timestamp, WorkspaceId, text_enum};
use ports::Charge;
use store::Cached;
use store::{Tx, each};

text_enum! {
    /// The type of a ledger entry.
    pub enum EntryKind {
        /// Energy was added.
        Grant = "grant",
        /// The operator corrected the balance.
        Adjust = "adjust",
        /// A step of a run spent Energy.
        Debit = "debit",
        /// A run without a usable result was refunded.
        Refund = "refund",
        /// The rest of a grant expired.
        Expire = "expire",
        /// The rest of a grant was revoked.
        Void = "void",
        /// A cost above the reserved amount. The platform paid it, so it does not change the balance.
        Absorb = "absorb",
    }
}

impl EntryKind {
    /// The other side of an entry that changes the balance.
    pub(super) fn counter_account(self) -> &'static str {
        match self {
            Self::Grant | Self::Adjust | Self::Void => "funding",
            Self::Debit | Self::Refund => "consumed",
            Self::Expire => "breakage",
            Self::Absorb => "platform_absorbed",
        }
    }
}

/// The other side of entries that record what work would have cost on a plan that does not meter Energy.
pub(crate) const UNMETERED: &str = "unmetered";

/// An entry to be written.
pub(super) struct NewEntry<'a> {
    pub(super) kind: EntryKind,
    /// Signed: what the balance gains, or would gain if Energy were metered.
    pub(super) amount: i64,
    /// Whether the balance changes by `amount`.
    pub(super) metered: bool,
    pub(super) balance_after: i64,
    /// Signed like `amount`.
    pub(super) usd_micros: i64,
    /// With `step` and the kind, unique: what caused the entry.
    pub(super) source: (&'a str, &'a str),
    pub(super) step: i64,
    pub(super) charge: Option<&'a Charge>,
    pub(super) operation: &'a str,
    pub(super) model: Option<&'a str>,
}

#[derive(Insertable)]
#[diesel(table_name = energy_entries, treat_none_as_default_value = false)]
struct EntryRow<'a> {
    workspace_id: WorkspaceId,
    id: &'a LedgerId,
    kind: EntryKind,
    amount: i64,
    balance_after: i64,
    counter_account: &'a str,
    usd_micros: i64,
    source_type: &'a str,
    source_id: &'a str,
    step: i64,
    key_id: Option<&'a KeyId>,
    agent_id: Option<AgentId>,
    request_id: Option<&'a RequestId>,
    operation: &'a str,
    model: Option<&'a str>,
    created_at: Timestamp,
}

/// Writes an entry. `None` where its cause has one already.
pub(super) fn insert(tx: &mut Tx, workspace: WorkspaceId, entry: &NewEntry<'_>) -> Result<Option<LedgerId>> {
    let id = LedgerId::new(tx.now(), &*tx.random());
    let caller = entry.charge.map(|charge| &charge.caller);
    let row = EntryRow {
        workspace_id: workspace,
        id: &id,
        kind: entry.kind,
        amount: entry.amount,
        balance_after: entry.balance_after,
        counter_account: if entry.metered { entry.kind.counter_account() } else { UNMETERED },
        usd_micros: entry.usd_micros,
        source_type: entry.source.0,
        source_id: entry.source.1,
        step: entry.step,
        key_id: caller.map(|caller| &caller.key.id),
        agent_id: entry.charge.map(|charge| charge.agent),
        request_id: caller.map(|caller| &caller.request),
        operation: entry.operation,
        model: entry.model,
        created_at: tx.now(),
    };
    let written = each!(tx.connection(), |connection| diesel::insert_into(energy_entries::table)
        .values(&row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    Ok((written == 1).then_some(id))
}

#[derive(Insertable)]
#[diesel(table_name = grant_burns, treat_none_as_default_value = false)]
struct Burn<'a> {
    entry_id: &'a LedgerId,
    grant_id: &'a GrantId,
    amount: i64,
}

/// Notes what `entry` took out of a grant (negative: put in).
pub(super) fn note_burn(tx: &mut Tx, entry: &LedgerId, grant: &GrantId, amount: i64) -> Result<()> {
    let burn = Burn { entry_id: entry, grant_id: grant, amount };
    each!(tx.connection(), |connection| diesel::insert_into(grant_burns::table)
        .values(burn)
        .execute(connection))?;
    Ok(())
}

diesel::alias!(energy_grants as candidates: Candidates);

/// How many grants are looked at together when the first does not cover a debit.
const GRANTS_AT_ONCE: i64 = 20;

/// Takes `amount` out of the workspace's grants in their order: priority, soonest end, oldest. The caller has
/// locked the account, so nobody else burns here.
pub(super) fn burn(tx: &mut Tx, workspace: WorkspaceId, entry: &LedgerId, amount: i64) -> Result<()> {
    use energy_grants as g;
    // Nearly always the first grant covers it, and one statement finds and burns it. The index is found by its
    // own words, as in `account::reserve`.
    let first = candidates
        .filter(candidates.field(g::workspace_id).eq(workspace))
        .filter(sql::<Bool>("candidates.remaining > 0"))
        .order((
            candidates.field(g::priority).asc(),
            candidates.field(g::expires_at).is_null().asc(),
            candidates.field(g::expires_at).asc(),
            candidates.field(g::created_at).asc(),
            candidates.field(g::id).asc(),
        ))
        .select(candidates.field(g::id))
        .limit(1)
        .single_value();
    let burnt: Option<GrantId> = each!(tx.connection(), |connection| {
        let update = diesel::update(g::table)
            .filter(g::id.nullable().eq(first))
            .filter(g::remaining.ge(amount))
            .set(g::remaining.eq(g::remaining - amount))
            .returning(g::id);
        Cached(update).get_result(connection).optional()
    })?;
    match burnt {
        Some(grant) => note_burn(tx, entry, &grant, amount),
        None => burn_several(tx, workspace, entry, amount),
    }
}

/// Takes `amount` out of as many grants as it needs, as [`burn`] does.
pub(super) fn burn_several(tx: &mut Tx, workspace: WorkspaceId, entry: &LedgerId, amount: i64) -> Result<()> {
    let shares = shares(tx, workspace, amount)?;
    burn_shares(tx, entry, &shares)
}

/// What is taken of one grant.
pub(super) struct Share {
    grant: GrantId,
    pub(super) amount: i64,
    /// What 1,000 of it cost, in micros.
    pub(super) usd_micros_per_1000: i64,
}

/// The grants that `amount` comes out of, in the order of [`burn`].
pub(super) fn shares(tx: &mut Tx, workspace: WorkspaceId, amount: i64) -> Result<Vec<Share>> {
    use energy_grants as g;
    let (mut shares, mut seen, mut left) = (Vec::new(), 0, amount);
    while left > 0 {
        let grants: Vec<(GrantId, i64, i64)> = g::table
            .filter(g::workspace_id.eq(workspace))
            .filter(g::remaining.gt(0))
            .order((
                g::priority.asc(),
                g::expires_at.is_null().asc(),
                g::expires_at.asc(),
                g::created_at.asc(),
                g::id.asc(),
            ))
            .select((g::id, g::remaining, g::usd_micros_per_1000))
            .limit(GRANTS_AT_ONCE)
            .offset(seen)
            .load(tx.connection())?;
        seen += GRANTS_AT_ONCE;
        if grants.is_empty() {
            return Err(Error::internal(format!("the grants of workspace {workspace} miss {left} Energy")));
        }
        for (grant, remaining, usd_micros_per_1000) in grants {
            let amount = remaining.min(left);
            if amount == 0 {
                break;
            }
            left -= amount;
            shares.push(Share { grant, amount, usd_micros_per_1000 });
        }
    }
    Ok(shares)
}

/// Takes shares out of their grants.
pub(super) fn burn_shares(tx: &mut Tx, entry: &LedgerId, shares: &[Share]) -> Result<()> {
    for share in shares {
        take(tx, &share.grant, share.amount)?;
        note_burn(tx, entry, &share.grant, share.amount)?;
    }
    Ok(())
}

/// Takes out of one grant; puts in where negative.
pub(super) fn take(tx: &mut Tx, grant: &GrantId, amount: i64) -> Result<()> {
    diesel::update(energy_grants::table.find(grant))
        .set(energy_grants::remaining.eq(energy_grants::remaining - amount))
        .execute(tx.connection())?;
    Ok(())
}
