//! Rows and types of the delivery engine: queues, loaded deliveries, and what a turn takes and gives.

use crate::endpoint::model::{DisabledReason, EndpointRow};
use crate::schema::webhook_queues;
use crate::sending::health::Health;
use crate::sending::send::Attempt;
use diesel::prelude::*;
use model::{DeliveryId, EventId, Timestamp, Trace, WebhookEndpointId, WorkspaceId};
use std::collections::BTreeMap;

/// How long a queue stays ours without a sign of life, in seconds.
pub(crate) const LEASE_SECONDS: i64 = 30;
/// Deliveries that are loaded for a quick endpoint beyond those on their way: so many that it does not run out of them
/// while a turn is under way.
pub(crate) const AHEAD: usize = 150;
/// The most deliveries in memory, over all endpoints and for one workspace. With bodies of up to 64 KB, 32 MB.
pub(crate) const LOADED: usize = 512;
pub(crate) const WORKSPACE_LOADED: usize = 192;

/// A delivery that is loaded to be sent.
#[derive(Debug, Clone)]
pub(crate) struct LoadedDelivery {
    pub(crate) number: i64,
    pub(crate) id: DeliveryId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) endpoint_id: WebhookEndpointId,
    /// The epoch of the lease under which it was loaded.
    pub(crate) epoch: i64,
    pub(crate) event_id: EventId,
    pub(crate) livemode: bool,
    pub(crate) lane: Option<String>,
    /// Attempts before this one.
    pub(crate) attempts: i64,
    pub(crate) first_attempt_at: Option<Timestamp>,
    pub(crate) body: String,
    /// The trace that it continues; `None` if no request caused its event.
    pub(crate) traceparent: Option<String>,
}

impl LoadedDelivery {
    /// The trace that it continues.
    pub(crate) fn trace(&self) -> Option<Trace> {
        Trace::parse(self.traceparent.as_deref()?, None)
    }
}

/// What becomes of a delivery after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Succeeded,
    /// It is tried again then.
    Retry(Timestamp),
    Failed,
}

/// An attempt that was made.
#[derive(Debug, Clone)]
pub(crate) struct Finished {
    pub(crate) delivery: LoadedDelivery,
    pub(crate) attempt: Attempt,
    pub(crate) verdict: Verdict,
}

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
    /// Numbers of deliveries that are loaded or on their way.
    pub(crate) in_hand: Vec<i64>,
    /// Until when its pace keeps the next delivery back.
    pub(crate) paced_until: Option<Timestamp>,
}

/// What a turn is to do. It may run again, so it is only read.
#[derive(Debug, Default)]
pub(crate) struct TurnInput {
    pub(crate) finished: Vec<Finished>,
    /// Deliveries that were loaded and will not be sent.
    pub(crate) unsent: Vec<LoadedDelivery>,
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
    pub(crate) deliveries: Vec<LoadedDelivery>,
}

/// What came of a turn.
#[derive(Debug, Default)]
pub(crate) struct TurnResult {
    /// Endpoints that are no longer ours.
    pub(crate) dropped: Vec<WebhookEndpointId>,
    /// Endpoints that are switched off: what is on its way ends, and nothing more is sent.
    pub(crate) closed: Vec<WebhookEndpointId>,
    /// Endpoints whose keys do not stand behind them any more. Nothing of them is loaded; they are to be switched off by
    /// [`close_lapsed`](super::super::closing::close_lapsed), which locks endpoints before queues, as all do.
    pub(crate) lapsed: Vec<(WorkspaceId, WebhookEndpointId)>,
    /// What was loaded for those that are.
    pub(crate) loaded: BTreeMap<WebhookEndpointId, Vec<LoadedDelivery>>,
    /// Rows of endpoints that are ours, as they are now.
    pub(crate) rows: Vec<EndpointRow>,
    pub(crate) claimed: Vec<Claimed>,
    /// Other endpoints may be waiting for room.
    pub(crate) contended: bool,
}

/// A queue and its lease.
#[derive(Queryable, Selectable)]
#[diesel(table_name = webhook_queues)]
pub(crate) struct QueueRow {
    pub(crate) endpoint_id: WebhookEndpointId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) lease_until: Option<Timestamp>,
    pub(crate) epoch: i64,
    pub(crate) skip_through: i64,
    #[diesel(embed)]
    pub(crate) health: Health,
}
