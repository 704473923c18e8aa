//! `GET /billing/energy`.

use crate::ledger::{EnergyState, EntryKind, GrantKind, UNMETERED, find_account};
use crate::schema::{energy_entries, energy_grants};
use diesel::dsl::exists;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{Caller, GrantId, Result, Timestamp, WorkspaceId, text_enum};
use operation::{Json, operation};
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// The most grants that are listed.
const GRANTS: i64 = 100;
/// The days whose spending tells how long the Energy will last.
const FORECAST_DAYS: i64 = 7;

/// The Energy balance of a workspace.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "balance": 18000, "reserved": 800, "available": 17200, "metered": true, "spent_this_month": 2000, "forecast_days": 17 }))]
pub struct EnergyBalance {
    /// Always `energy`.
    object: &'static str,
    /// The Energy that the workspace owns.
    balance: i64,
    /// The part of the balance that is reserved by work in progress.
    reserved: i64,
    /// The Energy available for new work.
    available: i64,
    /// Whether there is enough Energy: always `ok` if it is not metered.
    state: EnergyState,
    /// Whether work is paid from the balance. On a plan that does not meter Energy, its cost is only recorded.
    metered: bool,
    /// The Energy spent in this calendar month (UTC), after refunds.
    spent_this_month: i64,
    /// At most 100 grants: those with remaining Energy in the order in which they are used, then the others, newest
    /// first.
    grants: Vec<EnergyGrant>,
    /// The Energy that expires next. `null` if none does.
    expiring_next: Option<ExpiringEnergy>,
    /// How many days the available Energy lasts at the average of the last seven days. `null` if none was spent,
    /// or Energy is not metered.
    forecast_days: Option<i64>,
}

/// A grant of Energy.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "kind": "plan", "amount": 20000, "remaining": 18000, "priority": 20, "status": "active",
    "expires_at": "2026-12-01T00:00:00.000Z",
}))]
pub struct EnergyGrant {
    /// The id.
    id: GrantId,
    /// The source of the Energy.
    kind: GrantKind,
    /// The amount granted.
    amount: i64,
    /// The amount remaining. 0 while the grant is pending.
    remaining: i64,
    /// Grants with a lower number are used first.
    priority: i64,
    /// When the Energy can be used.
    effective_at: Timestamp,
    /// When the Energy expires. `null` means never.
    expires_at: Option<Timestamp>,
    /// The status of the grant.
    status: GrantStatus,
}

text_enum! {
    /// The status of a grant.
    pub enum GrantStatus {
        /// Not usable yet.
        Pending = "pending",
        /// Usable.
        Active = "active",
        /// Expired before it was used up.
        Expired = "expired",
        /// Revoked.
        Voided = "voided",
        /// Used up.
        Exhausted = "exhausted",
    }
}

/// Energy that will expire.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ExpiringEnergy {
    /// The id of the grant.
    grant_id: GrantId,
    /// The amount that expires.
    amount: i64,
    /// When it expires.
    expires_at: Timestamp,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = energy_grants)]
struct GrantRow {
    id: GrantId,
    kind: GrantKind,
    amount: i64,
    remaining: i64,
    priority: i64,
    effective_at: Timestamp,
    expires_at: Option<Timestamp>,
    voided_at: Option<Timestamp>,
    pending: bool,
}

impl GrantRow {
    /// `lapsed`: some of it was left at its end.
    fn show(self, lapsed: bool, now: Timestamp) -> EnergyGrant {
        let status = if self.voided_at.is_some() {
            GrantStatus::Voided
        } else if self.pending {
            GrantStatus::Pending
        } else if lapsed || self.remaining > 0 && self.expires_at.is_some_and(|end| end <= now) {
            GrantStatus::Expired
        } else if self.remaining == 0 {
            GrantStatus::Exhausted
        } else {
            GrantStatus::Active
        };
        EnergyGrant {
            kind: self.kind,
            id: self.id,
            amount: self.amount,
            remaining: self.remaining,
            priority: self.priority,
            effective_at: self.effective_at,
            expires_at: self.expires_at,
            status,
        }
    }
}

/// Energy balance, reserved and spent
///
/// Returns the balance, the amount reserved by work in progress and the Energy spent this month, with the grants that
/// make up the balance. `forecast_days` estimates how long it lasts.
#[operation(get "/billing/energy", scope = "billing:read")]
pub fn get_energy_balance(read: &mut Read, caller: &Caller) -> Result<Json<EnergyBalance>> {
    let workspace = caller.workspace_id();
    let now = read.now();
    let account = find_account(read, workspace)?;
    let available = account.available();
    let metered = caller.workspace.plan.energy_metered;
    let recent = spent_since(read, workspace, now.plus_seconds(-FORECAST_DAYS * 86_400))?;
    let forecast = i128::from(available) * i128::from(FORECAST_DAYS) / i128::from(recent.max(1));
    Ok(Json(EnergyBalance {
        object: "energy",
        balance: account.balance,
        reserved: account.reserved,
        available,
        state: if metered { account.state() } else { EnergyState::Ok },
        metered,
        spent_this_month: spent_since(read, workspace, now.month_start())?,
        grants: grants(read, workspace, now)?,
        expiring_next: expiring_next(read, workspace, now)?,
        forecast_days: (metered && recent > 0).then(|| i64::try_from(forecast).unwrap_or(i64::MAX)),
    }))
}

fn grants(read: &mut Read, workspace: WorkspaceId, now: Timestamp) -> Result<Vec<EnergyGrant>> {
    use energy_grants as g;
    let lapsed = || {
        energy_entries::table
            .filter(energy_entries::source_type.eq("grant"))
            .filter(energy_entries::source_id.eq(g::id))
            .filter(energy_entries::kind.eq(EntryKind::Expire))
    };
    let own = || g::table.filter(g::workspace_id.eq(workspace)).limit(GRANTS);
    let mut rows: Vec<(GrantRow, bool)> = own()
        .filter(g::remaining.gt(0))
        .order((
            g::priority.asc(),
            g::expires_at.is_null().asc(),
            g::expires_at.asc(),
            g::created_at.asc(),
            g::id.asc(),
        ))
        .select((GrantRow::as_select(), exists(lapsed())))
        .load(read.connection())?;
    let used: Vec<(GrantRow, bool)> = own()
        .filter(g::remaining.eq(0))
        .order(g::id.desc())
        .select((GrantRow::as_select(), exists(lapsed())))
        .load(read.connection())?;
    rows.extend(used);
    rows.truncate(usize::try_from(GRANTS).unwrap_or(usize::MAX));
    Ok(rows.into_iter().map(|(row, lapsed)| row.show(lapsed, now)).collect())
}

/// The grant that ends next with something left: of those that end together, the one that burns first.
fn expiring_next(read: &mut Read, workspace: WorkspaceId, now: Timestamp) -> Result<Option<ExpiringEnergy>> {
    use energy_grants as g;
    let row: Option<(GrantId, i64, Option<Timestamp>)> = g::table
        .filter(g::workspace_id.eq(workspace))
        .filter(g::remaining.gt(0))
        .filter(g::voided_at.is_null())
        .filter(g::expires_at.gt(now))
        .order((g::expires_at.asc(), g::priority.asc(), g::created_at.asc(), g::id.asc()))
        .select((g::id, g::remaining, g::expires_at))
        .first(read.connection())
        .optional()?;
    Ok(row.and_then(|(grant_id, amount, expires_at)| {
        Some(ExpiringEnergy { grant_id, amount, expires_at: expires_at? })
    }))
}

/// Energy debited since `from`, without what was given back.
fn spent_since(read: &mut Read, workspace: WorkspaceId, from: Timestamp) -> Result<i64> {
    use energy_entries as e;
    let sum: i64 = e::table
        .filter(e::workspace_id.eq(workspace))
        .filter(e::created_at.ge(from))
        .filter(e::counter_account.eq_any(["consumed", UNMETERED]))
        .select(diesel::dsl::sql::<BigInt>("CAST(COALESCE(SUM(-amount), 0) AS BIGINT)"))
        .first(read.connection())?;
    // A refund of a run from before may outweigh what was spent since.
    Ok(sum.max(0))
}
