//! A turn of the engine: one transaction that writes down what came of the last attempts, loads the next deliveries of
//! the endpoints that are ours, gives back those that have nothing to do, and claims others that do.
//!
//! An endpoint is ours while we hold its queue's lease. So order, pace and breaker of an endpoint are one worker's
//! matter, and a delivery needs no lease of its own: whoever takes over a queue whose lease ran out finds what was on
//! its way then, and sends it again.

use super::super::deliveries::Status;
use super::super::fanout::lock_queues;
use super::super::model::{DisabledReason, EndpointRow};
use super::super::{EndpointEvent, closing, endpoints};
use super::health::{ABREAST, Health};
use super::settle::{Finished, Parcel, let_next_go, settle};
use crate::log::Catalogue;
use crate::schema::{webhook_bodies, webhook_deliveries, webhook_endpoints, webhook_queues};
use diesel::prelude::*;
use model::{DeliveryId, EventId, Result, ScopeSet, Timestamp, WebhookEndpointId, WorkspaceId};
use std::collections::{BTreeMap, BTreeSet};
use store::{AnyConnection, LockLevel, LockMode, Tx, each};

/// How long a queue stays ours without a sign of life, in seconds.
pub(crate) const LEASE_SECONDS: i64 = 30;
/// Deliveries that are loaded for a quick endpoint beyond those on their way.
pub(crate) const AHEAD: usize = 40;
/// The most deliveries in memory, over all endpoints and for one workspace. With bodies of up to 64 KB, 32 MB.
pub(crate) const LOADED: usize = 512;
pub(crate) const WORKSPACE_LOADED: usize = 192;
/// The most endpoints that are claimed in a turn.
const CLAIM: usize = 32;

/// What the engine knows of an endpoint that it holds.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) id: WebhookEndpointId,
    pub(crate) epoch: i64,
    pub(crate) health: Health,
    /// The health is not as it is stored.
    pub(crate) changed: bool,
    /// Why it has to be switched off.
    pub(crate) off: Option<DisabledReason>,
    /// Its owners have to be warned.
    pub(crate) warn: bool,
    /// How many deliveries to load.
    pub(crate) want: usize,
    /// Nothing of it is loaded or on its way.
    pub(crate) idle: bool,
    /// Until when its pace keeps the next delivery back.
    pub(crate) paced_until: Option<Timestamp>,
}

/// What a turn is to do. It may run again, so it is only read.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    pub(crate) finished: Vec<Finished>,
    /// Numbers of deliveries that were loaded and will not be sent.
    pub(crate) unsent: Vec<i64>,
    pub(crate) held: Vec<Held>,
    /// Deliveries that are loaded or on their way, by workspace.
    pub(crate) in_hand: BTreeMap<WorkspaceId, usize>,
    /// Everything is to be given back, because the service stops.
    pub(crate) stopping: bool,
}

/// An endpoint that became ours.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) endpoint: EndpointRow,
    pub(crate) epoch: i64,
    pub(crate) health: Health,
    pub(crate) parcels: Vec<Parcel>,
}

/// What came of a turn.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Endpoints that are no longer ours.
    pub(crate) dropped: Vec<WebhookEndpointId>,
    /// Endpoints that are switched off: what is on its way ends, and nothing more is sent.
    pub(crate) closed: Vec<WebhookEndpointId>,
    /// Endpoints whose keys do not stand behind them any more. Nothing of them is loaded; they are to be switched off by
    /// [`closing::close_lapsed`], which locks endpoints before queues, as all do.
    pub(crate) lapsed: Vec<(WorkspaceId, WebhookEndpointId)>,
    /// What was loaded for those that are.
    pub(crate) loaded: BTreeMap<WebhookEndpointId, Vec<Parcel>>,
    /// Rows of endpoints that are ours, as they are now.
    pub(crate) rows: Vec<EndpointRow>,
    pub(crate) claimed: Vec<Claimed>,
    /// Other endpoints may be waiting for room.
    pub(crate) contended: bool,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = webhook_queues)]
struct QueueRow {
    endpoint_id: WebhookEndpointId,
    workspace_id: WorkspaceId,
    lease_until: Option<Timestamp>,
    epoch: i64,
    failures: i64,
    breaker_step: i64,
    breaker_until: Option<Timestamp>,
    failing_since: Option<Timestamp>,
    warned_at: Option<Timestamp>,
    skip_through: i64,
}

impl QueueRow {
    fn health(&self) -> Health {
        Health {
            failures: self.failures,
            breaker_step: self.breaker_step,
            breaker_until: self.breaker_until,
            failing_since: self.failing_since,
            warned_at: self.warned_at,
        }
    }
}

#[derive(AsChangeset)]
#[diesel(table_name = webhook_queues, treat_none_as_null = true)]
struct HealthChange {
    failures: i64,
    breaker_step: i64,
    breaker_until: Option<Timestamp>,
    failing_since: Option<Timestamp>,
    warned_at: Option<Timestamp>,
}

/// One turn.
pub(crate) fn turn(tx: &mut Tx, catalogue: &Catalogue, orders: &Orders) -> Result<Report> {
    let mut report = Report::default();
    let off = orders.held.iter().filter(|held| held.off.is_some());
    endpoints::lock(tx, &off.map(|held| &held.id).collect())?;
    let ours = still_ours(tx, orders, &mut report)?;
    give_up_unsent(tx, &orders.unsent)?;
    let finished: Vec<&Finished> =
        orders.finished.iter().filter(|done| ours.contains_key(&done.parcel.endpoint_id)).collect();
    settle(tx, &finished)?;
    for held in &orders.held {
        let Some(own) = ours.get(&held.id) else { continue };
        go_on(tx, catalogue, orders, held, own, &mut report)?;
    }
    report.rows = ours.into_values().map(|own| own.row).collect();
    if !orders.stopping {
        claim(tx, catalogue, orders, &mut report)?;
    }
    Ok(report)
}

/// Puts back what was loaded and not sent. No attempt is counted.
fn give_up_unsent(tx: &mut Tx, numbers: &[i64]) -> Result<()> {
    if numbers.is_empty() {
        return Ok(());
    }
    let now = tx.now();
    each!(tx.connection(), |connection| diesel::update(
        webhook_deliveries::table
            .filter(webhook_deliveries::number.eq_any(numbers))
            .filter(webhook_deliveries::status.eq(Status::Delivering))
    )
    .set((webhook_deliveries::status.eq(Status::Pending), webhook_deliveries::due_at.eq(now)))
    .execute(connection))?;
    Ok(())
}

/// An endpoint that is ours, with what the key behind it may do now.
struct Own {
    queue: QueueRow,
    row: EndpointRow,
    scopes: ScopeSet,
}

type Ours = BTreeMap<WebhookEndpointId, Own>;

/// The held endpoints whose leases nobody has taken over, locked, with their rows.
fn still_ours(tx: &mut Tx, orders: &Orders, report: &mut Report) -> Result<Ours> {
    if orders.held.is_empty() {
        return Ok(Ours::new());
    }
    let ids: BTreeSet<&WebhookEndpointId> = orders.held.iter().map(|held| &held.id).collect();
    lock_queues(tx, &ids)?;
    let ids: Vec<&WebhookEndpointId> = ids.into_iter().collect();
    let rows: Vec<(QueueRow, EndpointRow)> = webhook_queues::table
        .inner_join(webhook_endpoints::table.on(webhook_endpoints::id.eq(webhook_queues::endpoint_id)))
        .filter(webhook_queues::endpoint_id.eq_any(ids))
        .select((QueueRow::as_select(), webhook_endpoints::all_columns))
        .load(tx.connection())?;
    let standing = auth::keys::standing(tx, rows.iter().map(|(_, row)| (&row.key_id, row.workspace_id)))?;
    let own = |(queue, row): (QueueRow, EndpointRow)| {
        let scopes = standing.get(&(row.key_id.clone(), row.workspace_id)).copied().unwrap_or_default();
        (row.id.clone(), Own { queue, row, scopes })
    };
    let mut ours: Ours = rows.into_iter().map(own).collect();
    for held in &orders.held {
        if ours.get(&held.id).is_none_or(|own| own.queue.epoch != held.epoch) {
            ours.remove(&held.id);
            report.dropped.push(held.id.clone());
        }
    }
    Ok(ours)
}

/// Goes on with an endpoint that is ours: health, switching off, loading, giving back.
fn go_on(
    tx: &mut Tx,
    catalogue: &Catalogue,
    orders: &Orders,
    held: &Held,
    own: &Own,
    report: &mut Report,
) -> Result<()> {
    let (Own { queue, row, scopes }, now) = (own, tx.now());
    if held.changed {
        let Health { failures, breaker_step, breaker_until, failing_since, warned_at } = held.health.clone();
        let change = HealthChange { failures, breaker_step, breaker_until, failing_since, warned_at };
        diesel::update(webhook_queues::table.find(&held.id)).set(change).execute(tx.connection())?;
    }
    if held.warn {
        EndpointEvent::failing(row, &held.health).emit(tx, row)?;
    }
    if let Some(reason) = held.off.filter(|_| row.is_enabled()) {
        closing::switch_off(tx, &mut row.clone(), reason, held.health.failing_since)?;
    }
    let is_off = held.off.is_some() || !row.is_enabled();
    let lapsed = !is_off && !closing::stands(catalogue, &row.enabled_events()?, *scopes);
    if is_off || lapsed {
        report.closed.push(held.id.clone());
    }
    if lapsed {
        report.lapsed.push((row.workspace_id, held.id.clone()));
    }
    if is_off && held.idle {
        // What came back since it was switched off is not sent any more either.
        endpoints::skip_backlog(tx, row)?;
        report.dropped.push(held.id.clone());
        return release(tx, &held.id, None);
    }
    let room = if orders.stopping || is_off || lapsed { 0 } else { held.want };
    let parcels = load(tx, catalogue, queue, *scopes, room)?;
    if parcels.is_empty() && held.idle {
        report.dropped.push(held.id.clone());
        let due = next_due(tx, queue, [held.health.breaker_until, held.paced_until])?;
        return release(tx, &held.id, due);
    }
    renew(tx, queue, now)?;
    if !parcels.is_empty() {
        report.loaded.insert(held.id.clone(), parcels);
    }
    Ok(())
}

/// Holds on to a queue, written as rarely as the lease allows.
fn renew(tx: &mut Tx, queue: &QueueRow, now: Timestamp) -> Result<()> {
    let renew_at = queue.lease_until.map(|until| until.plus_seconds(-LEASE_SECONDS * 2 / 3));
    if renew_at.is_none_or(|at| at <= now) {
        diesel::update(webhook_queues::table.find(&queue.endpoint_id))
            .set(webhook_queues::lease_until.eq(now.plus_seconds(LEASE_SECONDS)))
            .execute(tx.connection())?;
    }
    Ok(())
}

/// When the queue has something to do next: `None` where nothing waits. What is due already is due from now on, behind
/// the queues that have waited meanwhile.
fn next_due(tx: &mut Tx, queue: &QueueRow, not_before: [Option<Timestamp>; 2]) -> Result<Option<Timestamp>> {
    let due: Option<Option<Timestamp>> = webhook_deliveries::table
        .filter(webhook_deliveries::endpoint_id.eq(&queue.endpoint_id))
        .filter(webhook_deliveries::due_at.is_not_null())
        .filter(webhook_deliveries::number.gt(queue.skip_through))
        .order((webhook_deliveries::due_at, webhook_deliveries::number))
        .select(webhook_deliveries::due_at)
        .limit(1)
        .get_result(tx.connection())
        .optional()?;
    let now = tx.now();
    Ok(due.flatten().map(|due| not_before.into_iter().flatten().fold(due.max(now), Timestamp::max)))
}

/// How many of `most` deliveries an endpoint with this pace can use.
pub(crate) fn pace_limit(rate: Option<i64>, most: usize) -> usize {
    rate.map_or(most, |rate| usize::try_from(rate).unwrap_or(1).min(most))
}

fn release(tx: &mut Tx, id: &WebhookEndpointId, due: Option<Timestamp>) -> Result<()> {
    diesel::update(webhook_queues::table.find(id))
        .set((webhook_queues::lease_until.eq(None::<Timestamp>), webhook_queues::due_at.eq(due)))
        .execute(tx.connection())?;
    Ok(())
}

/// Takes up queues that are due and nobody's, those that have waited longest first, as far as their workspaces have not
/// had their share.
fn claim(tx: &mut Tx, catalogue: &Catalogue, orders: &Orders, report: &mut Report) -> Result<()> {
    let now = tx.now();
    let mut in_hand = orders.in_hand.clone();
    for parcel in report.loaded.values().flatten() {
        *in_hand.entry(parcel.workspace_id).or_default() += 1;
    }
    let room = LOADED.saturating_sub(in_hand.values().sum());
    let limit = CLAIM.min(room / ABREAST);
    let sated = in_hand.iter().filter(|(_, count)| **count >= WORKSPACE_LOADED).map(|(id, _)| *id);
    let sated: Vec<WorkspaceId> = sated.collect();
    report.contended = limit == 0 || !sated.is_empty();
    if limit == 0 {
        return Ok(());
    }
    let mut due = webhook_queues::table
        .filter(webhook_queues::due_at.le(now))
        .filter(webhook_queues::lease_until.is_null().or(webhook_queues::lease_until.le(now)))
        .order(webhook_queues::due_at)
        .limit(i64::try_from(limit).unwrap_or(1))
        .select(QueueRow::as_select())
        .into_boxed();
    if !sated.is_empty() {
        due = due.filter(webhook_queues::workspace_id.ne_all(sated));
    }
    let queues: Vec<QueueRow> = due.load(tx.connection())?;
    for queue in queues {
        let of_workspace = in_hand.entry(queue.workspace_id).or_default();
        let room = WORKSPACE_LOADED.saturating_sub(*of_workspace);
        if room == 0 {
            report.contended = true;
        } else if lock_free(tx, &queue, now)? {
            *of_workspace += claim_one(tx, catalogue, &queue, room, report)?;
        }
    }
    report.contended |= report.claimed.len() >= limit;
    Ok(())
}

/// Takes the queue's lease, unless somebody was faster.
fn lock_free(tx: &mut Tx, queue: &QueueRow, now: Timestamp) -> Result<bool> {
    tx.expect_lock_order(LockLevel::WebhookQueues, 0, LockMode::Exclusive)?;
    if let AnyConnection::Postgres(connection) = tx.connection() {
        let locked: Option<i64> = webhook_queues::table
            .find(&queue.endpoint_id)
            .filter(webhook_queues::epoch.eq(queue.epoch))
            .select(webhook_queues::epoch)
            .for_update()
            .skip_locked()
            .get_result(connection)
            .optional()?;
        if locked.is_none() {
            return Ok(false);
        }
    }
    let taken = diesel::update(
        webhook_queues::table.find(&queue.endpoint_id).filter(webhook_queues::epoch.eq(queue.epoch)),
    )
    .set((
        webhook_queues::epoch.eq(queue.epoch + 1),
        webhook_queues::lease_until.eq(now.plus_seconds(LEASE_SECONDS)),
    ))
    .execute(tx.connection())?;
    Ok(taken == 1)
}

/// Takes up a queue that is ours now, with at most `room` deliveries; says how many those are.
fn claim_one(
    tx: &mut Tx,
    catalogue: &Catalogue,
    queue: &QueueRow,
    room: usize,
    report: &mut Report,
) -> Result<usize> {
    let now = tx.now();
    let row: EndpointRow = webhook_endpoints::table.find(&queue.endpoint_id).get_result(tx.connection())?;
    if queue.lease_until.is_some() {
        take_over(tx, queue)?;
    }
    if !row.is_enabled() {
        // Added while it was switched off, or on its way when a worker vanished.
        endpoints::skip_backlog(tx, &row)?;
        release(tx, &queue.endpoint_id, None)?;
        return Ok(0);
    }
    let scopes = auth::keys::standing_scopes(tx, &row.key_id, row.workspace_id)?;
    let stands = closing::stands(catalogue, &row.enabled_events()?, scopes);
    if !stands {
        report.lapsed.push((row.workspace_id, row.id.clone()));
    }
    let health = queue.health();
    let most = if stands { room } else { 0 };
    let want = pace_limit(row.rate_limit_per_second, health.abreast(now)).min(most);
    let parcels = load(tx, catalogue, queue, scopes, want)?;
    if parcels.is_empty() {
        let due = next_due(tx, queue, [health.breaker_until, None])?;
        release(tx, &queue.endpoint_id, due)?;
        return Ok(0);
    }
    let loaded = parcels.len();
    report.claimed.push(Claimed { endpoint: row, epoch: queue.epoch + 1, health, parcels });
    Ok(loaded)
}

/// Makes due again what was on its way when the worker before vanished. It may have arrived: at least once.
fn take_over(tx: &mut Tx, queue: &QueueRow) -> Result<()> {
    let now = tx.now();
    // The word stands in the statement, so that the index of what is on its way serves it.
    let in_flight = diesel::dsl::sql::<diesel::sql_types::Bool>("status = 'delivering'");
    each!(tx.connection(), |connection| diesel::update(
        webhook_deliveries::table
            .filter(webhook_deliveries::endpoint_id.eq(&queue.endpoint_id))
            .filter(in_flight)
    )
    .set((webhook_deliveries::status.eq(Status::Pending), webhook_deliveries::due_at.eq(now)))
    .execute(connection))?;
    Ok(())
}

type Loaded =
    (i64, DeliveryId, EventId, String, bool, Option<String>, i64, Option<Timestamp>, Option<String>);

/// Loads up to `want` due deliveries of a queue, and marks them as on their way.
fn load(
    tx: &mut Tx,
    catalogue: &Catalogue,
    queue: &QueueRow,
    scopes: ScopeSet,
    want: usize,
) -> Result<Vec<Parcel>> {
    if want == 0 {
        return Ok(Vec::new());
    }
    use webhook_deliveries as d;
    let now = tx.now();
    let rows: Vec<Loaded> = d::table
        .left_join(
            webhook_bodies::table
                .on(webhook_bodies::event_id.eq(d::event_id).and(webhook_bodies::form.eq(d::form))),
        )
        .filter(d::endpoint_id.eq(&queue.endpoint_id))
        .filter(d::due_at.le(now))
        .filter(d::number.gt(queue.skip_through))
        .order((d::due_at, d::number))
        .limit(i64::try_from(want).unwrap_or(1))
        .select((
            d::number,
            d::id,
            d::event_id,
            d::event_type,
            d::livemode,
            d::lane,
            d::attempts,
            d::first_attempt_at,
            webhook_bodies::body.nullable(),
        ))
        .load(tx.connection())?;
    let (mut parcels, mut unsendable) = (Vec::with_capacity(rows.len()), Vec::new());
    for (number, id, event_id, kind, livemode, lane, attempts, first_attempt_at, body) in rows {
        // A pattern stands for what its key may see, whatever that is by now.
        match body.filter(|_| catalogue.may_see(scopes, &kind)) {
            Some(body) => parcels.push(Parcel {
                number,
                id,
                workspace_id: queue.workspace_id,
                endpoint_id: queue.endpoint_id.clone(),
                event_id,
                livemode,
                lane,
                attempts,
                first_attempt_at,
                body,
            }),
            None => unsendable.push((number, lane)),
        }
    }
    let numbers: Vec<i64> = parcels.iter().map(|parcel| parcel.number).collect();
    if !numbers.is_empty() {
        each!(tx.connection(), |connection| diesel::update(d::table.filter(d::number.eq_any(&numbers)))
            .set((d::status.eq(Status::Delivering), d::due_at.eq(None::<Timestamp>)))
            .execute(connection))?;
    }
    for (number, lane) in unsendable {
        diesel::update(d::table.find(number))
            .set((d::status.eq(Status::Skipped), d::due_at.eq(None::<Timestamp>), d::ended_at.eq(now)))
            .execute(tx.connection())?;
        if let Some(lane) = lane {
            let_next_go(tx, &queue.endpoint_id, &lane)?;
        }
    }
    Ok(parcels)
}
