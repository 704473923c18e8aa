//! Turn of the engine: one transaction that writes down what came of the last attempts, loads the next deliveries of
//! the endpoints that are ours, gives back those that have nothing to do, and claims others that do.
//!
//! An endpoint is ours while we hold its queue's lease. So order, pace and breaker of an endpoint are one worker's
//! matter, and a delivery needs no lease of its own: whoever takes over a queue whose lease ran out finds what was on
//! its way then, and sends it again.

use super::super::queues::lock_queues;
use super::super::rows::Status;
use super::super::{EndpointEvent, closing, endpoints};
use super::load::{Source, load, next_due, recover};
use super::rows::{
    Claimed, Finished, Held, LEASE_SECONDS, LOADED, LoadedDelivery, QueueRow, TurnInput, TurnResult,
    WORKSPACE_LOADED,
};
use super::settle::settle;
use crate::endpoint::model::EndpointRow;
use crate::schema::{webhook_deliveries, webhook_endpoints, webhook_queues};
use crate::sending::health::ABREAST;
use crate::sending::schedule::pace_limit;
use diesel::prelude::*;
use events::Catalogue;
use model::{Result, ScopeSet, Timestamp, WebhookEndpointId, WorkspaceId};
use std::collections::{BTreeMap, BTreeSet};
use store::{LockLevel, LockMode, Tx, column, each, for_update_skip_locked};

/// The most endpoints that are claimed in a turn.
const CLAIM: usize = 32;

/// One turn.
pub(crate) fn turn(tx: &mut Tx, catalogue: &Catalogue, input: &TurnInput) -> Result<TurnResult> {
    let mut result = TurnResult::default();
    let off = input.held.iter().filter(|held| held.off.is_some());
    endpoints::lock(tx, &off.map(|held| &held.id).collect())?;
    let ours = still_ours(tx, input, &mut result)?;
    give_up_unsent(tx, &ours, &input.unsent)?;
    let finished: Vec<&Finished> = input.finished.iter().filter(|done| ours.loaded(&done.delivery)).collect();
    settle(tx, &finished)?;
    let mut sources = Vec::with_capacity(ours.0.len());
    for held in &input.held {
        let Some(own) = ours.0.get(&held.id) else { continue };
        if go_on(tx, catalogue, held, own, &mut result)? {
            let limit = if input.stopping { 0 } else { held.want };
            sources.push((held, Source { queue: &own.queue, scopes: own.scopes, limit }));
        }
    }
    load_held(tx, catalogue, sources, &mut result)?;
    result.rows = ours.0.into_values().map(|own| own.row).collect();
    if !input.stopping {
        claim(tx, catalogue, input, &mut result)?;
    }
    if result.claimed.is_empty() && result.loaded.is_empty() {
        // What a crash of the database undoes of it is sent and written down once more. An epoch must never be given twice,
        // and nothing may be sent of which the crash would undo the cause.
        tx.answer_before_flush();
    }
    Ok(result)
}

/// Puts back what was loaded and not sent. No attempt is counted.
fn give_up_unsent(tx: &mut Tx, ours: &Ours, unsent: &[LoadedDelivery]) -> Result<()> {
    let unsent = unsent.iter().filter(|delivery| ours.loaded(delivery));
    let numbers: Vec<i64> = unsent.map(|delivery| delivery.number).collect();
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

/// The endpoints that are ours.
#[derive(Default)]
struct Ours(BTreeMap<WebhookEndpointId, Own>);

impl Ours {
    /// Whether the delivery was loaded under the lease that we hold.
    fn loaded(&self, delivery: &LoadedDelivery) -> bool {
        self.0.get(&delivery.endpoint_id).is_some_and(|own| own.queue.epoch == delivery.epoch)
    }
}

/// The held endpoints whose leases nobody has taken over, locked, with their rows.
fn still_ours(tx: &mut Tx, input: &TurnInput, result: &mut TurnResult) -> Result<Ours> {
    if input.held.is_empty() {
        return Ok(Ours::default());
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
    let mut ours = Ours(rows.into_iter().map(own).collect());
    for held in &input.held {
        if ours.0.get(&held.id).is_none_or(|own| own.queue.epoch != held.epoch) {
            ours.0.remove(&held.id);
            result.dropped.push(held.id.clone());
        }
    }
    Ok(ours)
}

/// Goes on with an endpoint that is ours: health, switching off. Gives whether more of it may be sent or is on its way.
fn go_on(
    tx: &mut Tx,
    catalogue: &Catalogue,
    held: &Held,
    own: &Own,
    result: &mut TurnResult,
) -> Result<bool> {
    let Own { row, scopes, .. } = own;
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
    if is_off && held.in_hand.is_empty() {
        // What came back since it was switched off is not sent any more either.
        endpoints::skip_backlog(tx, row)?;
        result.dropped.push(held.id.clone());
        release(tx, &held.id, None)?;
        return Ok(false);
    }
    Ok(true)
}

/// Loads more of endpoints that are ours, and gives back those that have nothing to do.
fn load_held(
    tx: &mut Tx,
    catalogue: &Catalogue,
    sources: Vec<(&Held, Source<'_>)>,
    result: &mut TurnResult,
) -> Result<()> {
    let held: Vec<(&Held, &QueueRow)> = sources.iter().map(|(held, source)| (*held, source.queue)).collect();
    let closed = |source: &Source<'_>| result.closed.contains(&source.queue.endpoint_id);
    let open = sources.into_iter().map(|(_, source)| source).filter(|source| !closed(source));
    result.loaded = load(tx, catalogue, open.collect())?;
    for (held, queue) in held {
        if held.in_hand.is_empty() && !result.loaded.contains_key(&held.id) {
            result.dropped.push(held.id.clone());
            recover(tx, queue, &[])?;
            let due = next_due(tx, queue, [held.health.breaker_until, held.paced_until])?;
            release(tx, &held.id, due)?;
        } else {
            renew(tx, queue, held, result.loaded.get(&held.id))?;
        }
    }
    Ok(())
}

/// Holds on to a queue, written as rarely as the lease allows.
fn renew(tx: &mut Tx, queue: &QueueRow, held: &Held, loaded: Option<&Vec<LoadedDelivery>>) -> Result<()> {
    let now = tx.now();
    let renew_at = queue.lease_until.map(|until| until.plus_seconds(-LEASE_SECONDS * 2 / 3));
    if renew_at.is_none_or(|at| at <= now) {
        diesel::update(webhook_queues::table.find(&queue.endpoint_id))
            .set(webhook_queues::lease_until.eq(now.plus_seconds(LEASE_SECONDS)))
            .execute(tx.connection())?;
        let loaded = loaded.into_iter().flatten().map(|delivery| delivery.number);
        let in_hand: Vec<i64> = held.in_hand.iter().copied().chain(loaded).collect();
        recover(tx, queue, &in_hand)?;
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
    let mut in_hand = input.in_hand.clone();
    for delivery in result.loaded.values().flatten() {
        *in_hand.entry(delivery.workspace_id).or_default() += 1;
    }
    let room = LOADED.saturating_sub(in_hand.values().sum());
    let limit = CLAIM.min(room / ABREAST);
    let fits = |in_hand: usize| in_hand + ABREAST <= WORKSPACE_LOADED;
    let sated: Vec<WorkspaceId> =
        in_hand.iter().filter(|(_, count)| !fits(**count)).map(|(id, _)| *id).collect();
    let mut is_full = limit == 0 || !sated.is_empty();
    let mut queues = if limit == 0 { Vec::new() } else { lock_due(tx, &sated, limit)? };
    is_full |= queues.len() >= limit;
    queues.retain(|queue| {
        let of_workspace = in_hand.entry(queue.workspace_id).or_default();
        let claimed = fits(*of_workspace);
        is_full |= !claimed;
        *of_workspace += ABREAST;
        claimed
    });
    if !queues.is_empty() {
        take_leases(tx, &mut queues)?;
        claim_all(tx, catalogue, queues, result)?;
    }
    result.contended = is_full && any_due(tx)?;
    Ok(())
}

/// Queues that are due and nobody's, locked. Those that somebody else has locked are passed.
fn lock_due(tx: &mut Tx, sated: &[WorkspaceId], limit: usize) -> Result<Vec<QueueRow>> {
    tx.expect_lock_order(LockLevel::WebhookQueues, 0, LockMode::Exclusive)?;
    let now = tx.now();
    let due = webhook_queues::table
        .filter(webhook_queues::due_at.le(now))
        .filter(webhook_queues::lease_until.is_null().or(webhook_queues::lease_until.le(now)))
        .filter(webhook_queues::workspace_id.ne_all(sated))
        .order(webhook_queues::due_at)
        .limit(i64::try_from(limit).unwrap_or(1));
    Ok(for_update_skip_locked(due.select(QueueRow::as_select())).load(tx.connection())?)
}

/// Whether a queue is due and nobody's.
fn any_due(tx: &mut Tx) -> Result<bool> {
    let now = tx.now();
    let due = webhook_queues::table
        .filter(webhook_queues::due_at.le(now))
        .filter(webhook_queues::lease_until.is_null().or(webhook_queues::lease_until.le(now)));
    Ok(diesel::select(diesel::dsl::exists(due)).get_result(tx.connection())?)
}

/// Takes the leases of queues that are locked.
fn take_leases(tx: &mut Tx, queues: &mut [QueueRow]) -> Result<()> {
    let (now, ids) = (tx.now(), column(queues, |queue| queue.endpoint_id.clone()));
    each!(tx.connection(), |connection| diesel::update(
        webhook_queues::table.filter(webhook_queues::endpoint_id.eq_any(ids))
    )
    .set((
        webhook_queues::epoch.eq(webhook_queues::epoch + 1),
        webhook_queues::lease_until.eq(now.plus_seconds(LEASE_SECONDS)),
    ))
    .execute(connection))?;
    for queue in queues {
        queue.epoch += 1;
    }
    Ok(())
}

/// Takes up queues that are ours now.
fn claim_all(
    tx: &mut Tx,
    catalogue: &Catalogue,
    queues: Vec<QueueRow>,
    result: &mut TurnResult,
) -> Result<()> {
    let now = tx.now();
    let ids = column(&queues, |queue| &queue.endpoint_id);
    let rows: Vec<EndpointRow> =
        webhook_endpoints::table.filter(webhook_endpoints::id.eq_any(ids)).load(tx.connection())?;
    let mut rows: BTreeMap<_, _> = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
    let standing = auth::keys::standing(tx, rows.values().map(|row| (&row.key_id, row.workspace_id)))?;
    let mut sources = Vec::with_capacity(queues.len());
    for queue in &queues {
        let Some(row) = rows.get(&queue.endpoint_id) else { continue };
        if queue.lease_until.is_some() {
            recover(tx, queue, &[])?;
        }
        if !row.is_enabled() {
            // Added while it was switched off, or on its way when a worker vanished.
            endpoints::skip_backlog(tx, row)?;
            release(tx, &queue.endpoint_id, None)?;
            continue;
        }
        let scopes = standing.get(&(row.key_id.clone(), row.workspace_id)).copied().unwrap_or_default();
        let stands = closing::stands(catalogue, &row.enabled_events()?, scopes);
        if !stands {
            result.lapsed.push((row.workspace_id, row.id.clone()));
        }
        let want = pace_limit(row.rate_limit_per_second, queue.health.abreast(now));
        sources.push(Source { queue, scopes, limit: if stands { want } else { 0 } });
    }
    let enabled = column(&sources, |source| source.queue);
    let mut loaded = load(tx, catalogue, sources)?;
    for queue in enabled {
        let claimed = loaded.remove(&queue.endpoint_id).zip(rows.remove(&queue.endpoint_id));
        let Some((deliveries, endpoint)) = claimed else {
            let due = next_due(tx, queue, [queue.health.breaker_until, None])?;
            release(tx, &queue.endpoint_id, due)?;
            continue;
        };
        let (epoch, health) = (queue.epoch, queue.health.clone());
        result.claimed.push(Claimed { endpoint, epoch, health, deliveries });
    }
    Ok(())
}
