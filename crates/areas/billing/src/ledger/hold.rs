//! Setting Energy aside before it is used, so that parallel work can never spend the same Energy twice.

use super::{account, agent_month, budget, expiry, money};
use crate::schema::energy_holds;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Text};
use model::{Code, Error, KeyId, Result, RunId, WorkspaceId, text_enum};
use operation::TableGauge;
use ports::{AgentLimits, Charge};
use std::collections::{BTreeMap, HashMap, HashSet};
use store::{MOST_COUNTED, OnConflict, Read, Rows, Tx, for_update};

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
    Ok(for_update(query).get_result(tx.connection()).optional()?)
}

/// What the settlement of a step finds.
#[derive(QueryableByName)]
struct FoundHold {
    #[diesel(sql_type = Text)]
    run: RunId,
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

/// Locks the holds of different runs, in their order. Tells of each run whether its step was settled before; runs of which there is
/// nothing to tell are left out.
pub(super) fn lock_for_steps(
    tx: &mut Tx,
    steps: &[(&Charge, i64)],
) -> Result<HashMap<RunId, (Option<Held>, bool)>> {
    let asked = Rows::of(steps)
        .text("run", |(charge, _)| &charge.run)
        .big_int("workspace", |(charge, _)| charge.caller.workspace_id())
        .big_int("step", |(_, step)| *step);
    let found: Vec<FoundHold> = asked.load(
        tx,
        "SELECT h.run_id AS run, h.month, h.amount, h.used, h.reserved_micros, h.state, h.first_step, h.metered,
            EXISTS (SELECT 1 FROM energy_entries AS e WHERE e.source_type = 'run' AND e.source_id = h.run_id
                AND e.step = asked.step AND e.kind <> 'refund') AS is_settled
        FROM {asked} CROSS JOIN energy_holds AS h WHERE h.run_id = asked.run AND h.workspace_id = asked.workspace
        ORDER BY h.run_id {for update of h}",
    )?;
    let found = found.into_iter().map(|found| {
        let FoundHold { run, month, amount, used, reserved_micros, state, first_step, metered, is_settled } =
            found;
        let held = Held { month, amount, used, reserved_micros, state, first_step, metered };
        (run, (Some(held), is_settled))
    });
    let mut found: HashMap<RunId, (Option<Held>, bool)> = found.collect();
    let without: Vec<&(&Charge, i64)> =
        steps.iter().filter(|(charge, _)| !found.contains_key(&charge.run)).collect();
    let settled: Vec<FoundRun> = Rows::of(&without)
        .text("run", |(charge, _)| &charge.run)
        .big_int("step", |(_, step)| *step)
        .load(
            tx,
            "SELECT asked.run FROM {asked} WHERE EXISTS (SELECT 1 FROM energy_entries AS e
                WHERE e.source_type = 'run' AND e.source_id = asked.run AND e.step = asked.step AND e.kind <> 'refund')",
        )?;
    found.extend(settled.into_iter().map(|settled| (settled.run, (None, true))));
    Ok(found)
}

#[derive(QueryableByName)]
struct FoundRun {
    #[diesel(sql_type = Text)]
    run: RunId,
}

/// Writes the first holds of different runs. Returns the runs that have one by that.
pub(super) fn insert_all(
    tx: &mut Tx,
    holds: &[(&Charge, &Held)],
    conflict: OnConflict<'_>,
) -> Result<HashSet<RunId>> {
    let now = tx.now();
    let rows = Rows::of(holds)
        .text("run_id", |(charge, _)| &charge.run)
        .big_int("workspace_id", |(charge, _)| charge.caller.workspace_id())
        .text("key_lineage", |(charge, _)| &charge.caller.key.lineage)
        .text("month", |(_, held)| held.month.as_str())
        .big_int("amount", |(_, held)| held.amount)
        .big_int("used", |(_, held)| held.used)
        .big_int("reserved_micros", |(_, held)| held.reserved_micros)
        .text("state", |(_, held)| held.state)
        .time("expires_at", |_| now.plus_seconds(HOLD_SECONDS))
        .time("created_at", |_| now)
        .big_int("agent_id", |(charge, _)| charge.agent)
        .bool("metered", |(_, held)| held.metered);
    let written: Vec<FoundRun> = rows.insert_returning(tx, "energy_holds", conflict, "run_id AS run")?;
    Ok(written.into_iter().map(|written| written.run).collect())
}

/// Changes holds that are locked to where they now stand.
pub(super) fn update_all(tx: &mut Tx, holds: &[(&Charge, &Held)]) -> Result<()> {
    let expires_at = tx.now().plus_seconds(HOLD_SECONDS);
    let rows = Rows::of(holds)
        .text("run", |(charge, _)| &charge.run)
        .big_int("amount", |(_, held)| held.amount)
        .big_int("used", |(_, held)| held.used)
        .big_int("reserved_micros", |(_, held)| held.reserved_micros)
        .text("state", |(_, held)| held.state)
        .given_time("expires_at", expires_at);
    rows.execute(
        tx,
        "UPDATE energy_holds SET amount = held.amount, used = held.used, reserved_micros = held.reserved_micros,
            state = held.state, expires_at = {expires_at}
        FROM {held} WHERE energy_holds.run_id = held.run",
    )?;
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
    let mut limit = None;
    if is_first(charge, wanted) {
        let cuts_off_at = budget_limit(tx, charge)?;
        if cuts_off_at.is_none() && !hold_first(tx, &[(charge, wanted)])?.is_empty() {
            return Ok(wanted);
        }
        limit = Some(cuts_off_at);
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
            update_all(tx, &[(charge, &held)])?;
        }
        return Ok(wanted);
    }
    // Everything is decided before anything is written, so that a refusal leaves no trace.
    let limit = limit.map_or_else(|| budget_limit(tx, charge), Ok)?;
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
    let holds = [(charge, &held)];
    if is_new { insert_all(tx, &holds, OnConflict::Fail).map(drop) } else { update_all(tx, &holds) }?;
    Ok(total)
}

/// Whether it is the first hold of a run whose agent has no limits.
fn is_first(charge: &Charge, wanted: i64) -> bool {
    charge.is_new && wanted > 0 && charge.limits == AgentLimits::default()
}

/// [`ports::EnergyMeter::hold_all`].
pub(super) fn hold_all(tx: &mut Tx, holds: &[(Charge, i64)]) -> Result<Vec<bool>> {
    let keys: Vec<&KeyId> = holds.iter().map(|(charge, _)| &charge.caller.key.id).collect();
    let budgets = auth::keys::budgets(tx, &keys)?;
    let is_ordinary = |charge: &Charge, wanted: i64| {
        let limit = budgets.get(&charge.caller.key.id).copied().and_then(budget::limit);
        is_first(charge, wanted) && limit.is_none()
    };
    let ordinary: Vec<(&Charge, i64)> = holds
        .iter()
        .filter(|(charge, wanted)| is_ordinary(charge, *wanted))
        .map(|(charge, wanted)| (charge, *wanted))
        .collect();
    let held = hold_first(tx, &ordinary)?;
    Ok(holds.iter().map(|(charge, _)| held.contains(&charge.run)).collect())
}

/// Writes the first holds of different runs whose keys and agents have no limits. Returns the runs that got all that they want. Of
/// the others nothing is written: those that have a hold, and all metered runs of a workspace that cannot pay for all of them, or
/// where something has expired since the last sweep.
fn hold_first(tx: &mut Tx, wanted: &[(&Charge, i64)]) -> Result<HashSet<RunId>> {
    let held: Vec<Held> = wanted
        .iter()
        .map(|(charge, energy)| Held { amount: *energy, ..nothing(tx, charge, HoldState::Open) })
        .collect();
    let holds: Vec<(&Charge, &Held)> =
        wanted.iter().zip(&held).map(|((charge, _), held)| (*charge, held)).collect();
    // Holds come before accounts in the order of locks.
    let mut written = insert_all(tx, &holds, OnConflict::Ignore)?;
    let mut sums: BTreeMap<WorkspaceId, i64> = BTreeMap::new();
    for (charge, held) in holds.iter().filter(|(charge, held)| held.metered && written.contains(&charge.run))
    {
        *sums.entry(charge.caller.workspace_id()).or_default() += held.amount;
    }
    let sums: Vec<(WorkspaceId, i64)> = sums.into_iter().collect();
    let reserved = account::reserve_all(tx, &sums)?;
    let is_refused = |charge: &Charge, held: &Held| {
        held.metered && written.contains(&charge.run) && !reserved.contains(&charge.caller.workspace_id())
    };
    let refused = holds.iter().filter(|(charge, held)| is_refused(charge, held));
    let refused: Vec<&RunId> = refused.map(|(charge, _)| &charge.run).collect();
    if !refused.is_empty() {
        diesel::delete(energy_holds::table.filter(energy_holds::run_id.eq_any(&refused)))
            .execute(tx.connection())?;
        written.retain(|run| !refused.contains(&run));
    }
    Ok(written)
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
    if !account::reserve_all(tx, &[(workspace, wanted)])?.is_empty() {
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
