//! Drafting, reading, sending, pausing and cancelling broadcasts.

use super::check;
use super::clock::Clock;
use super::counts;
use super::events::publish;
use super::model::{
    Broadcast, BroadcastPatch, BroadcastPauseReason, BroadcastRecipient, BroadcastRecipientState as State,
    BroadcastRetry, BroadcastSending, BroadcastSkipReason, BroadcastStatus as Status, NewBroadcast,
};
use super::row::{BroadcastRow, RecipientRow, find, locked};
use super::run;
use crate::schema::{broadcast_recipients, broadcasts};
use diesel::prelude::*;
use model::{
    BroadcastId, BroadcastRecipientId, Caller, Code, Error, JsonText, MessageId, Patch, Result, Timestamp,
};
use operation::ports::People;
use operation::{
    Body, Created, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, Query, State as Service, With,
    operation,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Read, Tx};
use utoipa::IntoParams;

/// A broadcast as an answer, with its version as `ETag`.
type BroadcastAnswer = With<Json<Broadcast>>;

fn shown(read: &mut Read, row: &BroadcastRow) -> Result<BroadcastAnswer> {
    Ok(With::etag(row.version, Json(row.shown(read)?)))
}

/// Which broadcasts to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct BroadcastQuery {
    /// Only broadcasts with this status.
    #[serde(default)]
    status: Option<Status>,
}

/// List broadcasts
///
/// Lists the broadcasts of the workspace with their counts, newest first.
#[operation(get "/broadcasts", scope = "conversations:read", ceiling = 50)]
pub fn list_broadcasts(
    read: &mut Read,
    caller: &Caller,
    Query(query): Query<BroadcastQuery>,
    page: OptIn,
) -> Result<OptInList<Broadcast>> {
    let mut rows = broadcasts::table
        .filter(broadcasts::workspace_id.eq(caller.workspace_id()))
        .order(broadcasts::id.desc())
        .limit(page.page().fetch())
        .select(BroadcastRow::as_select())
        .into_boxed();
    if let Some(status) = query.status {
        rows = rows.filter(broadcasts::status.eq(status));
    }
    if let Some(after) = page.page().after::<BroadcastId>()? {
        rows = rows.filter(broadcasts::id.lt(after));
    }
    let rows = rows.load(read.connection())?;
    let ids: Vec<BroadcastId> = rows.iter().map(|row| row.id).collect();
    let mut counted = counts::of(read, &ids)?;
    let mut shown = Vec::with_capacity(rows.len());
    for row in &rows {
        let counts = counted.remove(&row.id).unwrap_or_default();
        let eta = counts::eta(read, row, &counts)?;
        shown.push(Broadcast::of(row, counts, eta)?);
    }
    Ok(page.answer(shown, |broadcast| broadcast.id.to_string()))
}

/// Draft a broadcast: template, audience, schedule
///
/// Nothing is sent until `POST /broadcasts/{broadcastId}/send`. What a draft lacks can be added later.
#[operation(post "/broadcasts", scope = "channels:send")]
pub fn create_broadcast(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<NewBroadcast>,
    people: Service<People>,
) -> Result<With<Created<Broadcast>>> {
    let now = tx.now();
    let row: BroadcastRow = diesel::insert_into(broadcasts::table)
        .values((
            broadcasts::workspace_id.eq(caller.workspace_id()),
            broadcasts::channel_id.eq(new.channel_id),
            broadcasts::name.eq(new.name.trim()),
            broadcasts::template.eq(new.template.as_ref().map(JsonText::of)),
            broadcasts::audience.eq(new.audience.as_ref().map(JsonText::of)),
            broadcasts::schedule.eq(new.schedule.as_ref().map(JsonText::of)),
            broadcasts::rate_per_minute.eq(new.throttle.map(|throttle| throttle.rate_per_minute)),
            broadcasts::frequency_cap.eq(new.frequency_cap.as_ref().map(JsonText::of)),
            broadcasts::status.eq(Status::Draft),
            broadcasts::version.eq(1),
            broadcasts::created_by.eq(caller.cause().actor),
            broadcasts::created_at.eq(now),
            broadcasts::updated_at.eq(now),
        ))
        .returning(broadcasts::all_columns)
        .get_result(tx.connection())?;
    check::draft(tx, &people.0, &row)?;
    Ok(With::etag(row.version, Created(row.shown(tx)?)))
}

/// One broadcast with its counts
///
/// The counts are those of the moment of the request.
#[operation(get "/broadcasts/{broadcastId}", scope = "conversations:read")]
pub fn get_broadcast(
    read: &mut Read,
    caller: &Caller,
    Path(broadcast_id): Path<BroadcastId>,
) -> Result<BroadcastAnswer> {
    let row = find(read, caller.workspace_id(), broadcast_id)?;
    shown(read, &row)
}

/// Change a draft or scheduled broadcast
///
/// A scheduled broadcast becomes a draft again. Once it has started, a broadcast cannot be changed: 409 `invalid_state`.
#[operation(patch "/broadcasts/{broadcastId}", scope = "channels:send")]
pub fn update_broadcast(
    tx: &mut Tx,
    caller: &Caller,
    Path(broadcast_id): Path<BroadcastId>,
    Body(patch): Body<BroadcastPatch>,
    if_match: IfMatch,
    people: Service<People>,
) -> Result<BroadcastAnswer> {
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let old = locked(tx, caller.workspace_id(), broadcast_id)?;
    expected.check(old.version)?;
    if !matches!(old.status, Status::Draft | Status::Scheduled) {
        return Err(wrong_state(&old, "be changed"));
    }
    let mut row = old.clone();
    if let Some(name) = &patch.name {
        name.trim().clone_into(&mut row.name);
    }
    patch.channel_id.apply(&mut row.channel_id);
    as_json(patch.template, &mut row.template);
    as_json(patch.audience, &mut row.audience);
    as_json(patch.schedule, &mut row.schedule);
    as_json(patch.frequency_cap, &mut row.frequency_cap);
    match patch.throttle {
        Patch::Keep => {}
        Patch::Clear => row.rate_per_minute = None,
        Patch::Set(throttle) => row.rate_per_minute = Some(throttle.rate_per_minute),
    }
    if row != old {
        check::draft(tx, &people.0, &row)?;
        row.status = Status::Draft;
        row.starts_at = None;
        row.store(tx)?;
    }
    shown(tx, &row)
}

fn as_json<T: Serialize>(patch: Patch<T>, stored: &mut Option<JsonText>) {
    match patch {
        Patch::Keep => {}
        Patch::Clear => *stored = None,
        Patch::Set(value) => *stored = Some(JsonText::of(&value)),
    }
}

fn wrong_state(row: &BroadcastRow, what: &str) -> Error {
    let status = row.status.as_str();
    let message = format!("The broadcast is {status}, so it cannot {what}.");
    Error::new(Code::InvalidState, message).with("details", json!({ "state": status }))
}

/// Which recipients to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct BroadcastRecipientQuery {
    /// Only recipients in this state.
    #[serde(default)]
    state: Option<State>,
    /// Only recipients who were left out for this reason.
    #[serde(default)]
    skip_reason: Option<BroadcastSkipReason>,
}

/// Each recipient's delivery status
///
/// Lists the recipients in the order in which they were prepared. Their states are those of the messages.
#[operation(get "/broadcasts/{broadcastId}/recipients", scope = "conversations:read", ceiling = 100)]
pub fn list_broadcast_recipients(
    read: &mut Read,
    caller: &Caller,
    Path(broadcast_id): Path<BroadcastId>,
    Query(query): Query<BroadcastRecipientQuery>,
    page: OptIn,
) -> Result<OptInList<BroadcastRecipient>> {
    let broadcast = find(read, caller.workspace_id(), broadcast_id)?;
    let mut rows = broadcast_recipients::table
        .filter(broadcast_recipients::broadcast_id.eq(broadcast.id))
        .order(broadcast_recipients::id)
        .limit(page.page().fetch())
        .select(RecipientRow::as_select())
        .into_boxed();
    if let Some(state) = query.state {
        rows = rows.filter(broadcast_recipients::state.eq(state));
    }
    if let Some(reason) = query.skip_reason {
        rows = rows.filter(broadcast_recipients::skip_reason.eq(reason));
    }
    if let Some(after) = page.page().after::<BroadcastRecipientId>()? {
        rows = rows.filter(broadcast_recipients::id.gt(after));
    }
    let rows = rows.load(read.connection())?;
    let recipients = rows.iter().map(RecipientRow::recipient).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(recipients, |recipient| recipient.id.to_string()))
}

/// Start, schedule or resume it
///
/// A draft starts, or is scheduled for `schedule.send_at`; with `now` it starts at once. Its audience is then frozen with
/// the values of the template. A paused broadcast is resumed: nobody gets the message twice. `retry` sends a completed
/// broadcast again to those whom it did not reach. A broadcast that is being sent is answered unchanged.
#[operation(post "/broadcasts/{broadcastId}/send", scope = "channels:send")]
pub fn send_broadcast(
    tx: &mut Tx,
    caller: &Caller,
    Path(broadcast_id): Path<BroadcastId>,
    Body(sending): Body<BroadcastSending>,
    people: Service<People>,
) -> Result<BroadcastAnswer> {
    let mut row = locked(tx, caller.workspace_id(), broadcast_id)?;
    let now = tx.now();
    if let Some(retry) = sending.retry {
        if row.status != Status::Completed {
            return Err(wrong_state(&row, "be sent again"));
        }
        check::Ready::of(tx, &row)?.expect_sendable()?;
        again(tx, &row, retry)?;
        (row.status, row.completed_at) = (Status::Sending, None);
    } else {
        match row.status {
            Status::Scheduled if !sending.now => return shown(tx, &row),
            Status::Preparing | Status::Sending => return shown(tx, &row),
            Status::Draft | Status::Scheduled => {
                check::startable(tx, &people.0, &row, sending.now)?;
                let later = Clock::of(row.schedule()?.as_ref()).starts_at();
                row.starts_at = later.filter(|at| !sending.now && *at > now);
                row.status = if row.starts_at.is_some() { Status::Scheduled } else { Status::Preparing };
            }
            Status::Paused => {
                check::Ready::of(tx, &row)?.expect_sendable()?;
                let is_prepared = row.prepared_at.is_some();
                row.starts_at = None;
                row.status = if is_prepared { Status::Sending } else { Status::Preparing };
            }
            Status::Completed | Status::Cancelling | Status::Cancelled => {
                return Err(wrong_state(&row, "be sent"));
            }
        }
    }
    row.pause_reason = None;
    row.judged_from = Some(now);
    if row.status != Status::Scheduled {
        row.started_at = row.started_at.or(Some(now));
    }
    row.store(tx)?;
    run::enqueue(tx, &row, row.starts_at.unwrap_or(now))?;
    publish(tx, &caller.cause(), &row)?;
    shown(tx, &row)
}

/// Makes the recipients who are to be sent the message again pending.
fn again(tx: &mut Tx, row: &BroadcastRow, retry: BroadcastRetry) -> Result<()> {
    let now = tx.now();
    let state = match retry {
        BroadcastRetry::Failed => State::Failed,
        BroadcastRetry::Unknown => State::Unknown,
    };
    let again = diesel::update(broadcast_recipients::table)
        .filter(broadcast_recipients::broadcast_id.eq(row.id))
        .filter(broadcast_recipients::state.eq(state))
        .set((
            broadcast_recipients::state.eq(State::Pending),
            broadcast_recipients::attempt.eq(broadcast_recipients::attempt + 1),
            broadcast_recipients::message_id.eq(None::<MessageId>),
            broadcast_recipients::error.eq(None::<JsonText>),
            broadcast_recipients::settled_at.eq(None::<Timestamp>),
            broadcast_recipients::not_before.eq(now),
            broadcast_recipients::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    if again == 0 {
        let message = format!("The broadcast has no recipient in the state {}.", state.as_str());
        return Err(Error::new(Code::InvalidState, message).param("retry"));
    }
    Ok(())
}

/// Stop sending for now
///
/// Takes effect within two seconds; messages that already wait for their turn are still sent. A paused broadcast is
/// answered unchanged.
#[operation(post "/broadcasts/{broadcastId}/pause", scope = "channels:send")]
pub fn pause_broadcast(
    tx: &mut Tx,
    caller: &Caller,
    Path(broadcast_id): Path<BroadcastId>,
) -> Result<BroadcastAnswer> {
    let mut row = locked(tx, caller.workspace_id(), broadcast_id)?;
    match row.status {
        Status::Paused => return shown(tx, &row),
        Status::Preparing | Status::Sending => {}
        _ => return Err(wrong_state(&row, "be paused")),
    }
    (row.status, row.pause_reason) = (Status::Paused, Some(BroadcastPauseReason::Requested));
    row.store(tx)?;
    publish(tx, &caller.cause(), &row)?;
    shown(tx, &row)
}

/// Stop for good; what was sent stays sent
///
/// Recipients to whom nothing was sent become `cancelled`. A cancelled broadcast is answered unchanged.
#[operation(post "/broadcasts/{broadcastId}/cancel", scope = "channels:send")]
pub fn cancel_broadcast(
    tx: &mut Tx,
    caller: &Caller,
    Path(broadcast_id): Path<BroadcastId>,
) -> Result<BroadcastAnswer> {
    let mut row = locked(tx, caller.workspace_id(), broadcast_id)?;
    let now = tx.now();
    match row.status {
        Status::Cancelling | Status::Cancelled => return shown(tx, &row),
        Status::Completed => return Err(wrong_state(&row, "be cancelled")),
        Status::Draft | Status::Scheduled => {
            (row.status, row.completed_at) = (Status::Cancelled, Some(now));
        }
        Status::Preparing | Status::Sending | Status::Paused => row.status = Status::Cancelling,
    }
    (row.pause_reason, row.starts_at) = (None, None);
    row.store(tx)?;
    run::enqueue(tx, &row, now)?;
    publish(tx, &caller.cause(), &row)?;
    shown(tx, &row)
}
