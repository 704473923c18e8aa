//! Entries, and what they take out of grants.

use crate::schema::energy_grants;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use model::{Error, GrantId, LedgerId, Result, Timestamp, WorkspaceId, text_enum};
use ports::Charge;
use std::collections::{BTreeMap, HashMap};
use store::{OnConflict, Rows, Tx};

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

impl NewEntry<'_> {
    /// Whether the balance changes by the amount.
    pub(super) fn changes_balance(&self) -> bool {
        self.metered && self.kind != EntryKind::Absorb
    }
}

/// An entry with its id.
pub(super) struct Entry<'a> {
    pub(super) workspace: WorkspaceId,
    pub(super) id: LedgerId,
    pub(super) new: NewEntry<'a>,
}

/// Entries as rows of `energy_entries`.
pub(super) fn entry_rows<'a>(entries: &'a [Entry<'a>], now: Timestamp) -> Rows<'a, Entry<'a>> {
    let counter_account =
        |new: &NewEntry<'_>| if new.metered { new.kind.counter_account() } else { UNMETERED };
    Rows::of(entries)
        .big_int("workspace_id", |entry| entry.workspace)
        .text("id", |entry| &entry.id)
        .text("kind", |entry| entry.new.kind)
        .big_int("amount", |entry| entry.new.amount)
        .big_int("balance_after", |entry| entry.new.balance_after)
        .text("counter_account", move |entry| counter_account(&entry.new))
        .big_int("usd_micros", |entry| entry.new.usd_micros)
        .text("source_type", |entry| entry.new.source.0)
        .text("source_id", |entry| entry.new.source.1)
        .big_int("step", |entry| entry.new.step)
        .text("key_id", |entry| entry.new.charge.map(|charge| &charge.caller.key.id))
        .big_int("agent_id", |entry| entry.new.charge.map(|charge| charge.agent))
        .text("request_id", |entry| entry.new.charge.map(|charge| &charge.caller.request))
        .text("operation", |entry| entry.new.operation)
        .text("model", |entry| entry.new.model)
        .time("created_at", move |_| now)
}

/// Writes an entry. `None` where its cause has one already.
pub(super) fn insert(tx: &mut Tx, workspace: WorkspaceId, new: NewEntry<'_>) -> Result<Option<LedgerId>> {
    let now = tx.now();
    let entry = [Entry { workspace, id: LedgerId::new(now, &*tx.random()), new }];
    let written = entry_rows(&entry, now).insert_or(tx, "energy_entries", OnConflict::Ignore)?;
    let [Entry { id, .. }] = entry;
    Ok((written == 1).then_some(id))
}

/// What an entry took out of a grant (negative: put in).
pub(super) struct Burn<'a> {
    pub(super) entry: &'a LedgerId,
    pub(super) grant: GrantId,
    pub(super) amount: i64,
}

/// Burns as rows of `grant_burns`.
pub(super) fn burn_rows<'a>(burns: &'a [Burn<'a>]) -> Rows<'a, Burn<'a>> {
    Rows::of(burns)
        .text("entry_id", |burn| burn.entry)
        .text("grant_id", |burn| &burn.grant)
        .big_int("amount", |burn| burn.amount)
}

/// Notes what `entry` took out of a grant (negative: put in).
pub(super) fn note_burn(tx: &mut Tx, entry: &LedgerId, grant: &GrantId, amount: i64) -> Result<()> {
    burn_rows(&[Burn { entry, grant: grant.clone(), amount }]).insert(tx, "grant_burns")
}

/// How many grants are looked at together when the first does not cover a debit.
const GRANTS_AT_ONCE: i64 = 20;

#[derive(QueryableByName)]
struct Burnt {
    #[diesel(sql_type = Text)]
    id: GrantId,
    #[diesel(sql_type = BigInt)]
    workspace_id: WorkspaceId,
}

/// Takes debits of metered Energy out of the grants of their workspaces, in the order of grants: priority, soonest end, oldest.
/// The caller has locked the accounts, so nobody else burns here. Returns what is to be noted of the grants.
pub(super) fn burn<'a>(tx: &mut Tx, debits: &[(WorkspaceId, &'a LedgerId, i64)]) -> Result<Vec<Burn<'a>>> {
    let mut sums: BTreeMap<WorkspaceId, i64> = BTreeMap::new();
    for (workspace, _, amount) in debits {
        *sums.entry(*workspace).or_default() += amount;
    }
    let sums: Vec<(WorkspaceId, i64)> = sums.into_iter().collect();
    // Nearly always the first grant covers them all, and one statement finds and burns it. The index is found by its own words,
    // as in `account::reserve_all`.
    let burnt: Vec<Burnt> = Rows::of(&sums)
        .big_int("workspace", |(workspace, _)| *workspace)
        .big_int("energy", |(_, energy)| *energy)
        .load(
            tx,
            "UPDATE energy_grants AS g SET remaining = g.remaining - wanted.energy FROM {wanted}
            WHERE g.remaining >= wanted.energy AND g.id = (
                SELECT best.id FROM energy_grants AS best
                WHERE best.workspace_id = wanted.workspace AND best.remaining > 0
                ORDER BY best.priority, best.expires_at IS NULL, best.expires_at, best.created_at, best.id
                LIMIT 1
            )
            RETURNING id, workspace_id",
        )?;
    let first: HashMap<WorkspaceId, GrantId> =
        burnt.into_iter().map(|burnt| (burnt.workspace_id, burnt.id)).collect();
    let mut burns = Vec::with_capacity(debits.len());
    for (workspace, entry, amount) in debits.iter().copied() {
        if let Some(grant) = first.get(&workspace) {
            burns.push(Burn { entry, grant: grant.clone(), amount });
            continue;
        }
        for Share { grant, amount, .. } in shares(tx, workspace, amount)? {
            take(tx, &grant, amount)?;
            burns.push(Burn { entry, grant, amount });
        }
    }
    Ok(burns)
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
