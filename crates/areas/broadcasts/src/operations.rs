//! Operations that read, change, send, pause and cancel broadcasts.

use crate::checks::check;
use crate::checks::clock::Clock;
use crate::drafts::preview;
use crate::drafts::test_send;
use crate::model::{
    Broadcast, BroadcastDryRun, BroadcastPatch, BroadcastPauseReason, BroadcastRecipient,
    BroadcastRecipientState as State, BroadcastRetry, BroadcastSending, BroadcastSkipReason,
    BroadcastStatus as Status,
};
use crate::recipients::retry;
use crate::recipients::withdraw;
use crate::rows::events::publish;
use crate::rows::output;
use crate::rows::row::{BroadcastRow, RecipientRow, find, locked};
use crate::schema::{broadcast_recipients, broadcasts};
use crate::sending::progress::{enqueue, pause, resume, start};
use diesel::prelude::*;
use model::{BroadcastId, BroadcastRecipientId, Caller, Code, Error, JsonText, Patch, Result};
use operation::{
    Body, Cx, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, Query, State as Service, With,
    operation,
};
use sends::SendParts;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Read, Tx};
use utoipa::IntoParams;

/// A response with a broadcast and its version as `ETag`.
type BroadcastAnswer = With<Json<Broadcast>>;

fn answer(read: &mut Read, row: &BroadcastRow) -> Result<BroadcastAnswer> {
    Ok(With::etag(row.version, Json(output::output(read, row)?)))
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
    let rows: Vec<BroadcastRow> = rows.load(read.connection())?;
    let shown = output::outputs(read, &rows)?;
    Ok(page.answer(shown, |broadcast| broadcast.id.to_string()))
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
    answer(read, &row)
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
    parts: Service<SendParts>,
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
        check::hold_files(tx, &row)?;
        check::draft(tx, &parts.0, &row)?;
        row.status = Status::Draft;
        row.starts_at = None;
        row.store(tx)?;
    }
    answer(tx, &row)
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
/// the values of the template. A paused broadcast is resumed if what paused it is over, else the answer is a 409: nobody gets
/// the message twice. `retry` sends a completed broadcast again to those whom it did not reach. A broadcast that is being
/// sent is answered unchanged. With `dry_run=true` nothing is sent: `preview` has who would get a draft and what they would
/// read. `test_contact_id` sends the message to one contact only.
#[operation(post "/broadcasts/{broadcastId}/send", scope = "channels:send")]
pub async fn send_broadcast(
    cx: &Cx,
    Path(broadcast_id): Path<BroadcastId>,
    Query(query): Query<BroadcastDryRun>,
    Body(sending): Body<BroadcastSending>,
    Service(parts): Service<SendParts>,
) -> Result<BroadcastAnswer> {
    let (caller, workspace) = (cx.caller.clone(), cx.caller.workspace_id());
    let (mut tested, mut previewed) = (None, None);
    if let Some(contact) = sending.test_contact_id {
        let to = (broadcast_id, contact);
        let sent = cx.change(move |tx| test_send::send(tx, &caller, &parts, to, query.dry_run));
        tested = Some(sent.await?);
    } else if query.dry_run {
        let for_checks = parts.clone();
        let row = cx.db.read(move |read| {
            let mut row = find(read, workspace, broadcast_id)?;
            if !matches!(row.status, Status::Draft | Status::Scheduled) || sending.retry.is_some() {
                return Err(wrong_state(&row, "be previewed"));
            }
            let channel = check::choose_channel(read, &mut row)?;
            check::startable(read, &for_checks, &row, sending.now)?;
            Ok((row, channel))
        });
        previewed = Some(preview::of(&cx.db, &parts, row.await?).await?);
    } else {
        cx.change(move |tx| send(tx, &caller, &parts, broadcast_id, sending)).await?;
    }
    let sent = cx.db.read(move |read| {
        let row = find(read, workspace, broadcast_id)?;
        let mut broadcast = output::output(read, &row)?;
        (broadcast.preview, broadcast.test) = (previewed, tested);
        Ok(With::etag(row.version, Json(broadcast)))
    });
    sent.await
}

/// Starts, schedules, resumes or retries a broadcast.
fn send(
    tx: &mut Tx,
    caller: &Caller,
    parts: &SendParts,
    id: BroadcastId,
    sending: BroadcastSending,
) -> Result<()> {
    let mut row = locked(tx, caller.workspace_id(), id)?;
    let (now, cause) = (tx.now(), caller.cause());
    if let Some(retry) = sending.retry {
        if row.status != Status::Completed {
            return Err(wrong_state(&row, "be sent again"));
        }
        check::Ready::of(tx, parts, &row)?.expect_sendable()?;
        send_again(tx, &row, retry)?;
        (row.status, row.completed_at) = (Status::Sending, None);
        return start(tx, &mut row, &cause);
    }
    match row.status {
        Status::Scheduled if !sending.now => Ok(()),
        Status::Preparing | Status::Sending => Ok(()),
        Status::Draft | Status::Scheduled => {
            check::choose_channel(tx, &mut row)?;
            check::startable(tx, parts, &row, sending.now)?;
            let later = Clock::of(row.schedule()?.as_ref()).starts_at();
            row.starts_at = later.filter(|at| !sending.now && *at > now);
            row.status = if row.starts_at.is_some() { Status::Scheduled } else { Status::Preparing };
            start(tx, &mut row, &cause)
        }
        Status::Paused => {
            check::resumable(tx, parts, &row)?;
            resume(tx, &mut row, &cause)
        }
        Status::Completed | Status::Cancelling | Status::Cancelled => Err(wrong_state(&row, "be sent")),
    }
}

/// Makes the recipients of a retry pending again.
fn send_again(tx: &mut Tx, row: &BroadcastRow, retry: BroadcastRetry) -> Result<()> {
    let state = match retry {
        BroadcastRetry::Failed => State::Failed,
        BroadcastRetry::Unknown => State::Unknown,
    };
    if retry::in_state(tx, row, state)? == 0 {
        let message = format!("The broadcast has no recipient in the state {}.", state.as_str());
        return Err(Error::new(Code::InvalidState, message).param("retry"));
    }
    Ok(())
}

/// Stop sending for now
///
/// Messages that wait for their turn are taken back, and sent when the broadcast continues; those that are being handed to the
/// network at this moment are still sent. A paused broadcast is answered unchanged.
#[operation(post "/broadcasts/{broadcastId}/pause", scope = "channels:send")]
pub fn pause_broadcast(
    tx: &mut Tx,
    caller: &Caller,
    Path(broadcast_id): Path<BroadcastId>,
) -> Result<BroadcastAnswer> {
    let mut row = locked(tx, caller.workspace_id(), broadcast_id)?;
    match row.status {
        Status::Paused => return answer(tx, &row),
        Status::Preparing | Status::Sending => {}
        _ => return Err(wrong_state(&row, "be paused")),
    }
    pause(tx, &mut row, &caller.cause(), BroadcastPauseReason::Requested)?;
    answer(tx, &row)
}

/// Stop for good; what was sent stays sent
///
/// Recipients to whom nothing was sent become `cancelled`, and messages that wait for their turn are not sent. A cancelled
/// broadcast is answered unchanged.
#[operation(post "/broadcasts/{broadcastId}/cancel", scope = "channels:send")]
pub fn cancel_broadcast(
    tx: &mut Tx,
    caller: &Caller,
    Path(broadcast_id): Path<BroadcastId>,
) -> Result<BroadcastAnswer> {
    let mut row = locked(tx, caller.workspace_id(), broadcast_id)?;
    let now = tx.now();
    match row.status {
        Status::Cancelling | Status::Cancelled => return answer(tx, &row),
        Status::Completed => return Err(wrong_state(&row, "be cancelled")),
        Status::Draft | Status::Scheduled => {
            (row.status, row.completed_at) = (Status::Cancelled, Some(now));
        }
        Status::Preparing | Status::Sending | Status::Paused => {
            row.status = Status::Cancelling;
            withdraw::cancel(tx, &row)?;
        }
    }
    (row.pause_reason, row.starts_at) = (None, None);
    row.store(tx)?;
    enqueue(tx, &row, now)?;
    publish(tx, &caller.cause(), &row)?;
    answer(tx, &row)
}
