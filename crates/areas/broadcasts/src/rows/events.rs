//! The events of broadcasts.

use crate::model::{Broadcast, BroadcastStatus};
use crate::rows::output::output;
use crate::rows::row::BroadcastRow;
use model::{Cause, Result};
use operation::Event;
use serde::Serialize;
use store::Tx;
use utoipa::ToSchema;

/// An event of a broadcast.
#[derive(Event)]
#[event(scope = "conversations:read", subject = "broadcast", id = "broadcast.id")]
pub(crate) enum BroadcastEvent {
    /// A broadcast was scheduled.
    #[event(name = "broadcast.scheduled")]
    Scheduled(BroadcastChanged),
    /// A broadcast was started, or resumed.
    #[event(name = "broadcast.started")]
    Started(BroadcastChanged),
    /// A broadcast was paused. `pause_reason` says why.
    #[event(name = "broadcast.paused")]
    Paused(BroadcastChanged),
    /// Every recipient of a broadcast was sent the message or left out.
    #[event(name = "broadcast.completed")]
    Completed(BroadcastChanged),
    /// A broadcast was cancelled.
    #[event(name = "broadcast.cancelled")]
    Cancelled(BroadcastChanged),
}

/// What happened to a broadcast.
#[derive(Serialize, ToSchema)]
pub(crate) struct BroadcastChanged {
    /// The broadcast as it then is.
    broadcast: Broadcast,
}

/// Publishes the event for the current status of a broadcast, if there is one.
pub(crate) fn publish(tx: &mut Tx, cause: &Cause, row: &BroadcastRow) -> Result<()> {
    let event = match row.status {
        BroadcastStatus::Scheduled => BroadcastEvent::Scheduled,
        BroadcastStatus::Preparing | BroadcastStatus::Sending => BroadcastEvent::Started,
        BroadcastStatus::Paused => BroadcastEvent::Paused,
        BroadcastStatus::Completed => BroadcastEvent::Completed,
        BroadcastStatus::Cancelled => BroadcastEvent::Cancelled,
        BroadcastStatus::Draft | BroadcastStatus::Cancelling => return Ok(()),
    };
    let broadcast = output(tx, row)?;
    tx.emit(row.workspace_id, cause, true, &event(BroadcastChanged { broadcast }))?;
    Ok(())
}
