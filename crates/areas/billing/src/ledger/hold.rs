//! Setting Energy aside before it is used, so that parallel work can never spend the same Energy twice.

use super::{account, agent_month, budget, expiry, money};
use crate::schema::{energy_entries, energy_holds};
use diesel::dsl::exists;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Text, Timestamp as SqlTimestamp};
use model::{AgentId, Code, Error, KeyId, Result, RunId, Timestamp, WorkspaceId, text_enum};
use operation::TableGauge;
use ports::{AgentLimits, Charge};
use std::collections::{HashMap, HashSet};
use store::{AnyConnection, Cached, CachedChange, MOST_COUNTED, Read, Tx, column, each};

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
    /// Whether the Energy is set aside of the account. A run stays as its plan was when it first held any.
    pub(super) metered: bool,
}

/// The columns of [`Held`].
const COLUMNS: (
    energy_holds::month,
    energy_holds::amount,
    energy_holds::used,
    energy_holds::reserved_micros,
    energy_holds::state,
    energy_holds::first_step,
    energy_holds::metered,
) = (
    energy_holds::month,
    energy_holds::amount,
    energy_holds::used,
    energy_holds::reserved_micros,
    energy_holds::state,
    energy_holds::first_step,
    energy_holds::metered,
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

/// What the settlement of a step finds.
#[derive(QueryableByName)]
struct FoundHold {
    #[diesel(sql_type = Text)]
    run: RunId,
    #[diesel(sql_type = BigInt)]
    workspace: WorkspaceId,
    #[diesel(sql_type = Text)]
    month: String,
    #[diesel(sql_type = BigInt)]
    amount: i64,
    #[diesel(sql_type = BigInt)]
    used: i64,
    #[diesel(sql_type = BigInt)]
    reserved_micros: i64,
    #[diesel(sql_type = Text)]
    state: HoldState,
    #[diesel(sql_type = BigInt)]
    first_step: i64,
    #[diesel(sql_type = Bool)]
    metered: bool,
    #[diesel(sql_type = Bool)]
    is_settled: bool,
}

/// Locks the holds of runs, in their order, on PostgreSQL. Gives those whose step was not settled before.
pub(super) fn lock_unsettled(tx: &mut Tx, steps: &[(&Charge, i64)]) -> Result<HashMap<RunId, Held>> {
    let AnyConnection::Postgres(connection) = tx.connection() else { return Ok(HashMap::new()) };
    let statement = diesel::sql_query(
        "SELECT h.run_id AS run, h.workspace_id AS workspace, h.month, h.amount, h.used, h.reserved_micros, h.state,
            h.first_step, h.metered, EXISTS (SELECT 1 FROM energy_entries AS e
                WHERE e.source_type = 'run' AND e.source_id = h.run_id AND e.step = asked.step AND e.kind <> 'refund') AS is_settled
        FROM unnest($1, $2) AS asked (run, step) JOIN energy_holds AS h ON h.run_id = asked.run
        ORDER BY h.run_id FOR UPDATE OF h",
    )
    .bind::<Array<Text>, _>(column(steps, |(charge, _)| charge.run.as_str()))
    .bind::<Array<BigInt>, _>(column(steps, |(_, step)| *step));
    let found: Vec<FoundHold> = Cached(statement).load(connection)?;
    let owners: HashMap<&RunId, WorkspaceId> =
        steps.iter().map(|(charge, _)| (&charge.run, charge.caller.workspace_id())).collect();
    let unsettled = found
        .into_iter()
        .filter(|found| !found.is_settled && owners.get(&found.run) == Some(&found.workspace));
    let held = |found: FoundHold| {
        let FoundHold { run, month, amount, used, reserved_micros, state, first_step, metered, .. } = found;
        (run, Held { month, amount, used, reserved_micros, state, first_step, metered })
    };
    Ok(unsettled.map(held).collect())
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
    metered: bool,
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
            metered: held.metered,
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
pub(super) fn nothing(tx: &Tx, charge: &Charge, state: HoldState) -> Held {
    let (month, metered) = (tx.now().month(), charge.caller.workspace.plan.energy_metered);
    Held { month, amount: 0, used: 0, reserved_micros: 0, state, first_step: 0, metered }
}

/// [`ports::EnergyMeter::hold`].
pub(super) fn hold(
    tx: &mut Tx,
    charge: &Charge,
    wanted: i64,
    least: i64,
    recharge_url: Option<&str>,
) -> Result<i64> {
    let workspace = charge.caller.workspace_id();
    let least = least.max(0);
    let wanted = wanted.max(least);
    let may_hold_at_once =
        charge.is_new && tx.is_postgres() && wanted > 0 && charge.limits == AgentLimits::default();
    if may_hold_at_once
        && budget_limit(tx, charge)?.is_none()
        && !hold_together(tx, &[(charge, wanted)])?.is_empty()
    {
        return Ok(wanted);
    }
    let found = lock(tx, charge)?;
    let is_new = found.is_none();
    let mut held = found.unwrap_or_else(|| nothing(tx, charge, HoldState::Open));
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
    let taken = if held.metered {
        take(tx, workspace, missing, least - unused)?.ok_or_else(|| depleted(recharge_url))?
    } else {
        missing.max(0)
    };
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

/// Writes the first holds of runs, where none of a workspace's has one, all that they want is available, and nothing has expired
/// since the last sweep. A run whose Energy is not metered only needs to have none yet. Accounts are locked in their order, so
/// that two batches never wait for each other in a circle.
const HOLD: &str = "WITH wanted AS MATERIALIZED (
        SELECT * FROM unnest($1, $2, $3, $4, $5, $10) AS wanted (run, workspace, lineage, agent, energy, metered)
    ), sums AS (
        SELECT workspace, sum(energy)::bigint AS energy FROM wanted WHERE metered GROUP BY workspace
    ), locked AS (
        SELECT workspace_id FROM energy_accounts WHERE workspace_id IN (SELECT workspace FROM sums)
        ORDER BY workspace_id FOR UPDATE
    ), reserved AS (
        UPDATE energy_accounts AS a SET reserved = a.reserved + sums.energy
        FROM sums JOIN locked ON locked.workspace_id = sums.workspace
        WHERE a.workspace_id = sums.workspace AND a.balance - a.reserved >= sums.energy
            AND NOT EXISTS (SELECT 1 FROM energy_grants AS g WHERE g.workspace_id = sums.workspace AND g.remaining > 0
                AND (g.expires_at <= $6 OR g.voided_at IS NOT NULL))
            AND NOT EXISTS (SELECT 1 FROM wanted JOIN energy_holds AS h ON h.run_id = wanted.run
                WHERE wanted.workspace = sums.workspace)
        RETURNING a.workspace_id
    )
    INSERT INTO energy_holds (run_id, workspace_id, key_lineage, month, amount, used, reserved_micros, state, expires_at,
        created_at, agent_id, metered)
    SELECT run, workspace, lineage, $7, energy, 0, 0, $8, $9, $6, agent, metered
    FROM wanted LEFT JOIN reserved ON reserved.workspace_id = wanted.workspace
    WHERE CASE WHEN metered THEN reserved.workspace_id IS NOT NULL
        ELSE NOT EXISTS (SELECT 1 FROM energy_holds AS h WHERE h.run_id = wanted.run) END
    RETURNING run_id AS run";

/// A run that got its hold.
#[derive(QueryableByName)]
struct Holding {
    #[diesel(sql_type = Text)]
    run: RunId,
}

/// [`ports::EnergyMeter::hold_all`].
pub(super) fn hold_all(tx: &mut Tx, holds: &[(Charge, i64)]) -> Result<Vec<bool>> {
    if !tx.is_postgres() {
        return Ok(vec![false; holds.len()]);
    }
    let keys: Vec<&KeyId> = holds.iter().map(|(charge, _)| &charge.caller.key.id).collect();
    let budgets = auth::keys::budgets(tx, &keys)?;
    let is_ordinary = |charge: &Charge, wanted: i64| {
        let limit = budgets.get(&charge.caller.key.id).copied().and_then(budget::limit);
        charge.is_new && wanted > 0 && limit.is_none() && charge.limits == AgentLimits::default()
    };
    let ordinary: Vec<(&Charge, i64)> = holds
        .iter()
        .filter(|(charge, wanted)| is_ordinary(charge, *wanted))
        .map(|(charge, wanted)| (charge, *wanted))
        .collect();
    let held = hold_together(tx, &ordinary)?;
    Ok(holds.iter().map(|(charge, _)| held.contains(&charge.run)).collect())
}

/// The runs that got what they want, by one statement, on PostgreSQL.
fn hold_together(tx: &mut Tx, holds: &[(&Charge, i64)]) -> Result<HashSet<RunId>> {
    let now = tx.now();
    let AnyConnection::Postgres(connection) = tx.connection() else { return Ok(HashSet::new()) };
    let statement = diesel::sql_query(HOLD)
        .bind::<Array<Text>, _>(column(holds, |(charge, _)| charge.run.as_str()))
        .bind::<Array<BigInt>, _>(column(holds, |(charge, _)| charge.caller.workspace_id()))
        .bind::<Array<Text>, _>(column(holds, |(charge, _)| charge.caller.key.lineage.as_str()))
        .bind::<Array<BigInt>, _>(column(holds, |(charge, _)| charge.agent))
        .bind::<Array<BigInt>, _>(column(holds, |(_, wanted)| *wanted))
        .bind::<SqlTimestamp, _>(now)
        .bind::<Text, _>(now.month())
        .bind::<Text, _>(HoldState::Open)
        .bind::<SqlTimestamp, _>(now.plus_seconds(HOLD_SECONDS))
        .bind::<Array<Bool>, _>(column(holds, |(charge, _)| charge.caller.workspace.plan.energy_metered));
    let held: Vec<Holding> = Cached(statement).load(connection)?;
    Ok(held.into_iter().map(|held| held.run).collect())
}

/// [`ports::EnergyMeter::admit`].
pub(super) fn admit(tx: &mut Tx, charge: &Charge, least: i64, recharge_url: Option<&str>) -> Result<()> {
    let held = nothing(tx, charge, HoldState::Open);
    let limit = budget_limit(tx, charge)?;
    room(tx, charge, &held, limit, least, recharge_url)?;
    if held.metered && account::find(tx, charge.caller.workspace_id())?.available() < least {
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
    recharge_url: Option<&str>,
) -> Result<i64> {
    let budget = budget_room(tx, charge, held, limit)?;
    if budget < least {
        let message = "The key's Energy budget of this month is used up.";
        return Err(Error::new(Code::BudgetExceeded, message).resets_at(tx.now().next_month_start()));
    }
    let rooms = agent_rooms(tx, charge, held)?;
    if let Some(room) = rooms.iter().find(|room| room.energy < least) {
        // What the workspace lacks is told first: raising the agent's limit would not help.
        let mut lacks = || -> Result<bool> {
            Ok(account::find(tx, charge.caller.workspace_id())?.available() < least - held.unused())
        };
        if held.metered && lacks()? {
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

fn depleted(recharge_url: Option<&str>) -> Error {
    refusal("The workspace has not enough Energy left.", recharge_url)
}

fn refusal(message: &str, recharge_url: Option<&str>) -> Error {
    let error = Error::new(Code::EnergyDepleted, message);
    match recharge_url {
        Some(url) => error.with("recharge_url", url),
        None => error,
    }
}

/// [`ports::EnergyMeter::reopen`]: as after a sweep, the run holds nothing and may hold again, now in the
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
