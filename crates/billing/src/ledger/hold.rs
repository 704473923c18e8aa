//! Setting Energy aside before it is used, so that parallel work can never spend the same Energy twice.

use super::{account, agent_month, budget, expiry, money};
use crate::schema::{energy_entries, energy_holds};
use diesel::dsl::exists;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text, Timestamp as SqlTimestamp};
use model::{AgentId, Code, Error, KeyId, Result, RunId, Timestamp, WorkspaceId, text_enum};
use operation::TableGauge;
use operation::ports::{AgentLimits, Charge};
use store::{AnyConnection, Cached, CachedChange, MOST_COUNTED, Read, Tx, each};

/// Energy that is set aside.
pub(crate) const HELD_ENERGY: TableGauge = TableGauge::new(
    "svc_energy_held",
    "Energy that is held for running work, over all workspaces.",
    |read| Ok(vec![("".into(), held_energy(read)?)]),
);

/// A hold that nobody touches for this long belongs to a run that died. The longest step is shorter.
pub(super) const HOLD_SECONDS: i64 = 15 * 60;

text_enum! {
    /// Where a hold stands.
    pub(super) enum HoldState {
        /// The run may take more.
        Open = "open",
        /// The sweeper took back what was unused. The run may go on, and hold again.
        Expired = "expired",
        /// The run has ended.
        Settled = "settled",
    }
}

/// What a run has set aside.
#[derive(Debug, Clone, Queryable)]
pub(super) struct Held {
    /// The month of the run's admission, whose budget it uses to its end.
    pub(super) month: String,
    pub(super) amount: i64,
    pub(super) used: i64,
    /// Money set aside in the key's month for what is unused.
    pub(super) reserved_micros: i64,
    pub(super) state: HoldState,
    /// The first step of this attempt.
    pub(super) first_step: i64,
}

/// The columns of [`Held`].
const COLUMNS: (
    energy_holds::month,
    energy_holds::amount,
    energy_holds::used,
    energy_holds::reserved_micros,
    energy_holds::state,
    energy_holds::first_step,
) = (
    energy_holds::month,
    energy_holds::amount,
    energy_holds::used,
    energy_holds::reserved_micros,
    energy_holds::state,
    energy_holds::first_step,
);

impl Held {
    /// What it may still use.
    pub(super) fn unused(&self) -> i64 {
        if self.state == HoldState::Open { self.amount - self.used } else { 0 }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state == HoldState::Settled
    }
}

/// Locks a run's hold.
///
/// Not by `first`: its `LIMIT ?` makes SQLite plan the statement anew whenever it is run.
pub(super) fn lock(tx: &mut Tx, charge: &Charge) -> Result<Option<Held>> {
    let query = energy_holds::table
        .find(&charge.run)
        .filter(energy_holds::workspace_id.eq(charge.caller.workspace_id()))
        .select(COLUMNS);
    Ok(match tx.connection() {
        AnyConnection::Sqlite(connection) => query.get_result(connection),
        AnyConnection::Postgres(connection) => query.for_update().get_result(connection),
    }
    .optional()?)
}

/// Locks a run's hold and tells whether `step` was settled before.
pub(super) fn lock_for_step(tx: &mut Tx, charge: &Charge, step: i64) -> Result<(Option<Held>, bool)> {
    use energy_entries as e;
    let settled = e::table
        .filter(e::source_type.eq("run"))
        .filter(e::source_id.eq(charge.run.as_str()))
        .filter(e::step.eq(step))
        .filter(e::kind.ne("refund"));
    let query = energy_holds::table
        .find(&charge.run)
        .filter(energy_holds::workspace_id.eq(charge.caller.workspace_id()))
        .select((COLUMNS, exists(settled)));
    let row: Option<(Held, bool)> = match tx.connection() {
        AnyConnection::Sqlite(connection) => query.get_result(connection),
        AnyConnection::Postgres(connection) => query.for_update().get_result(connection),
    }
    .optional()?;
    match row {
        Some((held, settled)) => Ok((Some(held), settled)),
        None => {
            let settled = diesel::select(exists(settled)).get_result(tx.connection())?;
            Ok((None, settled))
        }
    }
}

#[derive(Insertable)]
#[diesel(table_name = energy_holds, treat_none_as_default_value = false)]
struct HoldRow<'a> {
    run_id: &'a RunId,
    workspace_id: WorkspaceId,
    key_lineage: &'a KeyId,
    month: &'a str,
    amount: i64,
    used: i64,
    reserved_micros: i64,
    state: HoldState,
    expires_at: Timestamp,
    created_at: Timestamp,
    agent_id: AgentId,
}

/// Writes a run's hold: `held` is what there was, `None` for its first.
pub(super) fn store(tx: &mut Tx, charge: &Charge, held: &Held, is_new: bool) -> Result<()> {
    use energy_holds as h;
    let expires_at = tx.now().plus_seconds(HOLD_SECONDS);
    if is_new {
        let row = HoldRow {
            run_id: &charge.run,
            workspace_id: charge.caller.workspace_id(),
            key_lineage: &charge.caller.key.lineage,
            month: &held.month,
            amount: held.amount,
            used: held.used,
            reserved_micros: held.reserved_micros,
            state: held.state,
            expires_at,
            created_at: tx.now(),
            agent_id: charge.agent,
        };
        each!(tx.connection(), |connection| diesel::insert_into(h::table).values(row).execute(connection))?;
        return Ok(());
    }
    each!(tx.connection(), |connection| {
        let update = diesel::update(h::table.find(&charge.run)).set((
            h::amount.eq(held.amount),
            h::used.eq(held.used),
            h::reserved_micros.eq(held.reserved_micros),
            h::state.eq(held.state),
            h::expires_at.eq(expires_at),
        ));
        CachedChange(update).run(connection)
    })?;
    Ok(())
}

/// The hold of a run that has none.
pub(super) fn nothing(tx: &Tx, state: HoldState) -> Held {
    Held { month: tx.now().month(), amount: 0, used: 0, reserved_micros: 0, state, first_step: 0 }
}

/// [`operation::ports::EnergyMeter::hold`].
pub(super) fn hold(tx: &mut Tx, charge: &Charge, wanted: i64, least: i64, recharge_url: &str) -> Result<i64> {
    let workspace = charge.caller.workspace_id();
    let least = least.max(0);
    let wanted = wanted.max(least);
    let may_hold_at_once =
        charge.is_new && tx.is_postgres() && wanted > 0 && charge.limits == AgentLimits::default();
    if may_hold_at_once && budget_limit(tx, charge)?.is_none() && hold_at_once(tx, charge, wanted)? {
        return Ok(wanted);
    }
    let found = lock(tx, charge)?;
    let is_new = found.is_none();
    let mut held = found.unwrap_or_else(|| nothing(tx, HoldState::Open));
    if held.is_closed() {
        return Err(Error::new(Code::InvalidState, "The run has ended."));
    }
    let unused = held.unused();
    if unused >= wanted {
        if !is_new {
            store(tx, charge, &held, false)?;
        }
        return Ok(wanted);
    }
    // Everything is decided before anything is written, so that a refusal leaves no trace.
    let limit = budget_limit(tx, charge)?;
    let room = room(tx, charge, &held, limit, least, recharge_url)?;
    let missing = wanted.min(room.max(unused)) - unused;
    let taken = take(tx, workspace, missing, least - unused)?.ok_or_else(|| depleted(recharge_url))?;
    let total = unused + taken;
    let price = charge.caller.workspace.plan.usd_micros_per_1000_energy;
    let reserved = if limit.is_some() { money::cost(total, price)? } else { 0 };
    if reserved != held.reserved_micros {
        let more = reserved - held.reserved_micros;
        budget::add(tx, &charge.caller.key.lineage, &held.month, 0, more)?;
        held.reserved_micros = reserved;
    }
    held.amount = held.used + total;
    held.state = HoldState::Open;
    store(tx, charge, &held, is_new)?;
    Ok(total)
}

/// That there is a row says it.
#[derive(QueryableByName)]
struct Reserved {
    #[diesel(sql_type = BigInt, column_name = "workspace_id")]
    _workspace: i64,
}

/// Writes the first hold of a run by one statement, on PostgreSQL, where all of `wanted` is available and nothing has expired since the last sweep.
/// `false` changes nothing.
///
/// # Errors
/// When the database fails.
fn hold_at_once(tx: &mut Tx, charge: &Charge, wanted: i64) -> Result<bool> {
    let now = tx.now();
    let month = now.month();
    let AnyConnection::Postgres(connection) = tx.connection() else { return Ok(false) };
    let statement = diesel::sql_query(
        "WITH reserved AS (
            UPDATE energy_accounts SET reserved = reserved + $1
            WHERE workspace_id = $2 AND balance - reserved >= $1
                AND NOT EXISTS (SELECT 1 FROM energy_grants WHERE workspace_id = $2 AND energy_grants.remaining > 0
                    AND (expires_at <= $3 OR voided_at IS NOT NULL))
                AND NOT EXISTS (SELECT 1 FROM energy_holds WHERE run_id = $4)
            RETURNING workspace_id
        )
        INSERT INTO energy_holds (run_id, workspace_id, key_lineage, month, amount, used, reserved_micros, state,
            expires_at, created_at, agent_id)
        SELECT $4, workspace_id, $5, $6, $1, 0, 0, $7, $8, $3, $9 FROM reserved
        RETURNING workspace_id",
    )
    .bind::<BigInt, _>(wanted)
    .bind::<BigInt, _>(charge.caller.workspace_id())
    .bind::<SqlTimestamp, _>(now)
    .bind::<Text, _>(&charge.run)
    .bind::<Text, _>(&charge.caller.key.lineage)
    .bind::<Text, _>(&month)
    .bind::<Text, _>(HoldState::Open)
    .bind::<SqlTimestamp, _>(now.plus_seconds(HOLD_SECONDS))
    .bind::<BigInt, _>(charge.agent);
    Ok(Cached(statement).get_result::<Reserved>(connection).optional()?.is_some())
}

/// [`operation::ports::EnergyMeter::admit`].
pub(super) fn admit(tx: &mut Tx, charge: &Charge, least: i64, recharge_url: &str) -> Result<()> {
    let held = nothing(tx, HoldState::Open);
    let limit = budget_limit(tx, charge)?;
    room(tx, charge, &held, limit, least, recharge_url)?;
    if account::find(tx, charge.caller.workspace_id())?.available() < least {
        return Err(depleted(recharge_url));
    }
    Ok(())
}

/// Where the key's budget cuts off, as it stands now: it may have changed since the run began.
fn budget_limit(tx: &mut Tx, charge: &Charge) -> Result<Option<i64>> {
    Ok(auth::keys::budget(tx, &charge.caller.key.id)?.and_then(budget::limit))
}

/// How much Energy in all the key's budget, which cuts off at `limit`, and the agent's limits let the run set aside: at
/// least `least`. Locks the key's month and the agent's, where they are limited.
fn room(
    tx: &mut Tx,
    charge: &Charge,
    held: &Held,
    limit: Option<i64>,
    least: i64,
    recharge_url: &str,
) -> Result<i64> {
    let budget = budget_room(tx, charge, held, limit)?;
    if budget < least {
        let message = "The key's Energy budget of this month is used up.";
        return Err(Error::new(Code::BudgetExceeded, message).resets_at(tx.now().next_month_start()));
    }
    let rooms = agent_rooms(tx, charge, held)?;
    if let Some(room) = rooms.iter().find(|room| room.energy < least) {
        // What the workspace lacks is told first: raising the agent's limit would not help.
        let available = account::find(tx, charge.caller.workspace_id())?.available();
        let lacks = available < least - held.unused();
        if lacks {
            return Err(depleted(recharge_url));
        }
        let message = format!("{}, and the rest does not cover an answer.", room.limited);
        return Err(refusal(&message, recharge_url).param(room.param));
    }
    Ok(rooms.iter().map(|room| room.energy).fold(budget, i64::min))
}

/// How much Energy in all a limit of the agent lets the run set aside.
struct AgentRoom {
    energy: i64,
    /// What is limited, for people.
    limited: String,
    /// The agent's field.
    param: &'static str,
}

/// What each limit of the agent leaves, the month's first. Locks the month.
fn agent_rooms(tx: &mut Tx, charge: &Charge, held: &Held) -> Result<Vec<AgentRoom>> {
    let mut rooms = Vec::new();
    if let Some(limit) = charge.limits.month {
        let spent = agent_month::add(tx, charge, &held.month, 0)?;
        let reserved = agent_month::reserved_by_others(tx, charge, &held.month)?;
        let energy = limit.saturating_sub(spent).saturating_sub(reserved);
        let limited = format!("The agent may use {limit} Energy a month");
        rooms.push(AgentRoom { energy, limited, param: "energy_limit_monthly" });
    }
    if let Some(limit) = charge.limits.run {
        let limited = format!("The run may use {limit} Energy");
        rooms.push(AgentRoom { energy: limit - held.used, limited, param: "energy_limit_per_run" });
    }
    Ok(rooms)
}

fn depleted(recharge_url: &str) -> Error {
    refusal("The workspace has not enough Energy left.", recharge_url)
}

fn refusal(message: &str, recharge_url: &str) -> Error {
    Error::new(Code::EnergyDepleted, message).with("recharge_url", recharge_url)
}

/// [`operation::ports::EnergyMeter::reopen`]: as after a sweep, the run holds nothing and may hold again, now in the
/// month that it is.
pub(super) fn reopen(tx: &mut Tx, charge: &Charge, first_step: i64) -> Result<()> {
    use energy_holds as h;
    let Some(held) = lock(tx, charge)?.filter(Held::is_closed) else { return Ok(()) };
    debug_assert_eq!(held.reserved_micros, 0, "a closed hold reserves nothing");
    diesel::update(h::table.find(&charge.run))
        .set((
            h::month.eq(tx.now().month()),
            h::amount.eq(0),
            h::used.eq(0),
            h::state.eq(HoldState::Expired),
            h::first_step.eq(first_step),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// How much Energy in all a budget that cuts off at `limit` lets the run set aside. Locks the key's month where the
/// run has or will have money set aside in it.
fn budget_room(tx: &mut Tx, charge: &Charge, held: &Held, limit: Option<i64>) -> Result<i64> {
    if limit.is_none() && held.reserved_micros == 0 {
        return Ok(i64::MAX);
    }
    let month = budget::add(tx, &charge.caller.key.lineage, &held.month, 0, 0)?;
    let Some(limit) = limit else { return Ok(i64::MAX) };
    if month.spent >= limit {
        return Ok(-1);
    }
    let left = limit.saturating_sub(month.spent).saturating_sub(month.reserved - held.reserved_micros);
    Ok(money::affordable(left, charge.caller.workspace.plan.usd_micros_per_1000_energy))
}

/// Sets aside `wanted` of what is available, or all of it where that is at least `least`. `None` takes nothing.
fn take(tx: &mut Tx, workspace: WorkspaceId, wanted: i64, least: i64) -> Result<Option<i64>> {
    if wanted <= 0 {
        return Ok((least <= 0).then_some(0));
    }
    if account::reserve(tx, workspace, wanted)? {
        return Ok(Some(wanted));
    }
    let Some(account) = expiry::sweep_workspace(tx, workspace)? else { return Ok((least <= 0).then_some(0)) };
    let taken = account.available().min(wanted);
    if taken < least {
        return Ok(None);
    }
    if taken > 0 {
        account::change(tx, workspace, 0, taken)?;
    }
    Ok(Some(taken))
}

fn held_energy(read: &mut Read) -> Result<i64> {
    #[derive(QueryableByName)]
    struct Sum {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        energy: i64,
    }
    let sql = format!(
        "SELECT CAST(COALESCE(SUM(amount - used), 0) AS BIGINT) AS energy FROM
            (SELECT amount, used FROM energy_holds WHERE state = 'open' LIMIT {MOST_COUNTED}) AS holds"
    );
    Ok(diesel::sql_query(sql).get_result::<Sum>(read.connection())?.energy)
}
