//! Turn of the engine: one transaction that writes down what came of the last attempts, loads the next deliveries of
//! the endpoints that are ours, gives back those that have nothing to do, and claims others that do.
//!
//! An endpoint is ours while we hold its queue's lease. So order, pace and breaker of an endpoint are one worker's
//! matter, and a delivery needs no lease of its own: whoever takes over a queue whose lease ran out finds what was on
//! its way then, and sends it again.

use super::super::model::EndpointRow;
use super::super::queues::lock_queues;
use super::super::rows::Status;
use super::super::{EndpointEvent, closing, endpoints};
use super::health::ABREAST;
use super::load::{load, next_due};
use super::rows::{
    Claimed, Finished, Held, LEASE_SECONDS, LOADED, QueueRow, TurnInput, TurnResult, WORKSPACE_LOADED,
};
use super::schedule::pace_limit;
use super::settle::settle;
use crate::log::Catalogue;
use crate::schema::{webhook_deliveries, webhook_endpoints, webhook_queues};
use diesel::prelude::*;
use model::{Result, ScopeSet, Timestamp, WebhookEndpointId, WorkspaceId};
use std::collections::{BTreeMap, BTreeSet};
use store::{AnyConnection, LockLevel, LockMode, Tx, each};

/// The most endpoints that are claimed in a turn.
const CLAIM: usize = 32;

/// One turn.
pub(crate) fn turn(tx: &mut Tx, catalogue: &Catalogue, input: &TurnInput) -> Result<TurnResult> {
    let mut result = TurnResult::default();
    let off = input.held.iter().filter(|held| held.off.is_some());
    endpoints::lock(tx, &off.map(|held| &held.id).collect())?;
    let ours = still_ours(tx, input, &mut result)?;
    give_up_unsent(tx, &input.unsent)?;
    let finished: Vec<&Finished> =
        input.finished.iter().filter(|done| ours.contains_key(&done.delivery.endpoint_id)).collect();
    settle(tx, &finished)?;
    for held in &input.held {
        let Some(own) = ours.get(&held.id) else { continue };
        go_on(tx, catalogue, input, held, own, &mut result)?;
    }
    result.rows = ours.into_values().map(|own| own.row).collect();
    if !input.stopping {
        claim(tx, catalogue, input, &mut result)?;
    }
    Ok(result)
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
fn still_ours(tx: &mut Tx, input: &TurnInput, result: &mut TurnResult) -> Result<Ours> {
    if input.held.is_empty() {
        return Ok(Ours::new());
    }
    let ids: BTreeSet<&WebhookEndpointId> = input.held.iter().map(|held| &held.id).collect();
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
    for held in &input.held {
        if ours.get(&held.id).is_none_or(|own| own.queue.epoch != held.epoch) {
            ours.remove(&held.id);
            result.dropped.push(held.id.clone());
        }
    }
    Ok(ours)
}

/// Goes on with an endpoint that is ours: health, switching off, loading, giving back.
fn go_on(
    tx: &mut Tx,
    catalogue: &Catalogue,
    input: &TurnInput,
    held: &Held,
    own: &Own,
    result: &mut TurnResult,
) -> Result<()> {
    let (Own { queue, row, scopes }, now) = (own, tx.now());
    if held.changed {
        diesel::update(webhook_queues::table.find(&held.id)).set(&held.health).execute(tx.connection())?;
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
        result.closed.push(held.id.clone());
    }
    if lapsed {
        result.lapsed.push((row.workspace_id, held.id.clone()));
    }
    if is_off && held.idle {
        // What came back since it was switched off is not sent any more either.
        endpoints::skip_backlog(tx, row)?;
        result.dropped.push(held.id.clone());
        return release(tx, &held.id, None);
    }
    let room = if input.stopping || is_off || lapsed { 0 } else { held.want };
    let deliveries = load(tx, catalogue, queue, *scopes, room)?;
    if deliveries.is_empty() && held.idle {
        result.dropped.push(held.id.clone());
        let due = next_due(tx, queue, [held.health.breaker_until, held.paced_until])?;
        return release(tx, &held.id, due);
    }
    renew(tx, queue, now)?;
    if !deliveries.is_empty() {
        result.loaded.insert(held.id.clone(), deliveries);
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

fn release(tx: &mut Tx, id: &WebhookEndpointId, due: Option<Timestamp>) -> Result<()> {
    diesel::update(webhook_queues::table.find(id))
        .set((webhook_queues::lease_until.eq(None::<Timestamp>), webhook_queues::due_at.eq(due)))
        .execute(tx.connection())?;
    Ok(())
}

/// Takes up queues that are due and nobody's, those that have waited longest first, as far as their workspaces have not
/// had their share.
fn claim(tx: &mut Tx, catalogue: &Catalogue, input: &TurnInput, result: &mut TurnResult) -> Result<()> {
    let now = tx.now();
    let mut in_hand = input.in_hand.clone();
    for delivery in result.loaded.values().flatten() {
        *in_hand.entry(delivery.workspace_id).or_default() += 1;
    }
    let room = LOADED.saturating_sub(in_hand.values().sum());
    let limit = CLAIM.min(room / ABREAST);
    let sated = in_hand.iter().filter(|(_, count)| **count >= WORKSPACE_LOADED).map(|(id, _)| *id);
    let sated: Vec<WorkspaceId> = sated.collect();
    result.contended = limit == 0 || !sated.is_empty();
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
            result.contended = true;
        } else if lock_free(tx, &queue, now)? {
            *of_workspace += claim_one(tx, catalogue, &queue, room, result)?;
        }
    }
    result.contended |= result.claimed.len() >= limit;
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
    result: &mut TurnResult,
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
        result.lapsed.push((row.workspace_id, row.id.clone()));
    }
    let health = queue.health.clone();
    let most = if stands { room } else { 0 };
    let want = pace_limit(row.rate_limit_per_second, health.abreast(now)).min(most);
    let deliveries = load(tx, catalogue, queue, scopes, want)?;
    if deliveries.is_empty() {
        let due = next_due(tx, queue, [health.breaker_until, None])?;
        release(tx, &queue.endpoint_id, due)?;
        return Ok(0);
    }
    let loaded = deliveries.len();
    result.claimed.push(Claimed { endpoint: row, epoch: queue.epoch + 1, health, deliveries });
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
