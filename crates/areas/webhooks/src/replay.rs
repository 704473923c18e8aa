//! Replay of deliveries: `POST /webhook-endpoints/{endpointId}/replay`.

use super::deliveries::{redeliver, refuse_disabled};
use super::fanout::{Subscriber, store_bodies};
use super::queues::enqueue;
use super::rows::{DeliveryRow, Origin, Status};
use super::size::hold_bodies;
use super::{deliveries, endpoints};
use crate::Deliveries;
use crate::schema::webhook_deliveries;
use diesel::prelude::*;
use events::{Catalogue, LoggedEvent, placed_event, placed_since};
use jobs::{JobContext, JobError};
use model::{
    Caller, DeliveryId, Error, EventId, Result, Timestamp, WebhookEndpointId, WorkspaceId, text_enum,
};
use operation::{Body, Json, Path, State, operation};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use store::{Read, Tx};
use utoipa::ToSchema;

/// The job that replays.
pub(crate) const REPLAY: &str = "webhooks.replay";
/// The longest range.
const LONGEST_SECONDS: i64 = 7 * 86_400;
/// From one replayed delivery to the next: ten in a second.
const SPACING_MS: i64 = 100;
/// Events that are looked at in one transaction.
const CHUNK: i64 = 500;

text_enum! {
    /// Which events of a time range to send.
    #[derive(Default)]
    pub enum ReplayStatus {
        /// Events whose deliveries all failed or were skipped.
        #[default]
        Failed = "failed",
        /// Events that match the subscription and have no delivery, because the endpoint did not exist or was disabled.
        Missing = "missing",
        /// All events that match the subscription.
        Any = "any",
    }
}

/// What to send: deliveries, events, or a time range.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "since": "2026-11-20T00:00:00.000Z", "until": "2026-11-21T00:00:00.000Z", "status": "failed",
}))]
pub struct NewReplay {
    /// The ids of deliveries, in this order.
    #[serde(default)]
    #[schema(nullable = false, min_items = 1, max_items = 100)]
    delivery_ids: Option<Vec<DeliveryId>>,
    /// The ids of events, in this order.
    #[serde(default)]
    #[schema(nullable = false, min_items = 1, max_items = 100)]
    event_ids: Option<Vec<EventId>>,
    /// Events from this time on.
    #[serde(default)]
    #[schema(nullable = false)]
    since: Option<Timestamp>,
    /// Events before this time; now if not given. At most 7 days after `since`.
    #[serde(default)]
    #[schema(nullable = false)]
    until: Option<Timestamp>,
    /// Which events of the time range to send; `failed` if not given.
    #[serde(default)]
    #[schema(nullable = false)]
    status: Option<ReplayStatus>,
    /// Only events of these types.
    #[serde(default)]
    #[schema(nullable = false, min_items = 1, max_items = 100)]
    types: Option<Vec<String>>,
    /// Whether to count the deliveries without sending them.
    #[serde(default)]
    dry_run: bool,
}

/// The result of a replay request.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "count": 3, "ends_at": "2026-11-20T09:30:00.600Z" }))]
pub struct WebhookReplay {
    /// Always `webhook_replay`.
    object: &'static str,
    /// The id of the endpoint.
    endpoint_id: WebhookEndpointId,
    /// Whether the deliveries were only counted.
    dry_run: bool,
    /// The number of deliveries. At most ten per second are sent.
    count: i64,
    /// When the last of them is due.
    ends_at: Option<Timestamp>,
}

/// A range that was asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Range {
    workspace_id: WorkspaceId,
    endpoint_id: WebhookEndpointId,
    since: Timestamp,
    until: Timestamp,
    status: ReplayStatus,
    types: Option<Vec<String>>,
    asked_at: Timestamp,
}

/// Deliver again all that failed since a time
///
/// Selects deliveries by id, by event, or by a time range of up to seven days, and sends them in the background, at
/// most ten per second. With `dry_run`, they are only counted.
#[operation(post "/webhook-endpoints/{endpointId}/replay", scope = "webhooks:manage")]
pub fn replay_webhook_endpoint(
    tx: &mut Tx,
    caller: &Caller,
    Path(endpoint_id): Path<WebhookEndpointId>,
    Body(new): Body<NewReplay>,
    catalogue: State<Catalogue>,
    engine: State<Deliveries>,
) -> Result<Json<WebhookReplay>> {
    let row = endpoints::locked(tx, caller.workspace_id(), &endpoint_id)?;
    refuse_disabled(&row)?;
    check_kinds(&new)?;
    hold_bodies(tx)?;
    let (now, workspace, dry_run) = (tx.now(), caller.workspace_id(), new.dry_run);
    let count = if let Some(ids) = &new.delivery_ids {
        let rows = chosen_deliveries(tx, workspace, &endpoint_id, ids, now)?;
        if !dry_run {
            redeliver(tx, &rows)?;
        }
        rows.len()
    } else {
        let subscriber = Subscriber::load(tx, &catalogue.0, workspace, &endpoint_id)?;
        if let Some(ids) = &new.event_ids {
            let events = chosen_events(tx, &catalogue.0, &subscriber, ids)?;
            if !dry_run {
                deliver(tx, &catalogue.0, &subscriber, &events, now, 0)?;
            }
            events.len()
        } else {
            let range = range(&new, workspace, endpoint_id.clone(), now)?;
            check_types(&catalogue.0, range.types.as_deref())?;
            let count = count(tx, &catalogue.0, &subscriber, &range)?;
            if !dry_run && count > 0 {
                tx.enqueue(workspace, REPLAY, None, &range, now)?;
            }
            count
        }
    };
    engine.0.wake_after(tx);
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let ends_at = (count > 0 && !dry_run).then(|| later(now, count - 1));
    Ok(Json(WebhookReplay { object: "webhook_replay", endpoint_id, dry_run, count, ends_at }))
}

fn later(start: Timestamp, place: i64) -> Timestamp {
    Timestamp::from_millis(start.millis() + place * SPACING_MS)
}

fn check_kinds(new: &NewReplay) -> Result<()> {
    let ranged = new.since.is_some() || new.until.is_some() || new.status.is_some() || new.types.is_some();
    match (&new.delivery_ids, &new.event_ids, new.since) {
        (Some(_), Some(_), _) => Err(Error::invalid("event_ids", "cannot be combined with `delivery_ids`")),
        (Some(_), ..) | (_, Some(_), _) if ranged => {
            Err(Error::invalid("since", "and the other fields of a range cannot be combined with ids"))
        }
        (None, None, None) => {
            Err(Error::invalid("since", "is required without `delivery_ids` and `event_ids`"))
        }
        _ => Ok(()),
    }
}

fn check_types(catalogue: &Catalogue, types: Option<&[String]>) -> Result<()> {
    for (place, name) in types.unwrap_or_default().iter().enumerate() {
        if catalogue.find(name).is_none() {
            return Err(Error::invalid(format!("types[{place}]"), "is not a type of event"));
        }
    }
    Ok(())
}

fn range(
    new: &NewReplay,
    workspace: WorkspaceId,
    endpoint: WebhookEndpointId,
    now: Timestamp,
) -> Result<Range> {
    let since = new.since.ok_or_else(|| Error::invalid("since", "is needed"))?;
    // What happened in this very millisecond belongs to it.
    let until = new.until.unwrap_or_else(|| now.plus(chrono::Duration::milliseconds(1)));
    if until <= since {
        return Err(Error::invalid("until", "must be after `since`"));
    }
    if until.seconds() - since.seconds() > LONGEST_SECONDS {
        return Err(Error::invalid("since", "must be at most 7 days before `until`"));
    }
    Ok(Range {
        workspace_id: workspace,
        endpoint_id: endpoint,
        since,
        until,
        status: new.status.unwrap_or_default(),
        types: new.types.clone(),
        asked_at: now,
    })
}

fn chosen_deliveries(
    tx: &mut Tx,
    workspace: WorkspaceId,
    endpoint: &WebhookEndpointId,
    ids: &[DeliveryId],
    now: Timestamp,
) -> Result<Vec<(DeliveryRow, Timestamp)>> {
    (0..)
        .zip(ids)
        .map(|(place, id)| {
            let param = || format!("delivery_ids[{place}]");
            let row = deliveries::find(tx, workspace, endpoint, id)
                .map_err(|_| Error::invalid(param(), "is not a delivery of this endpoint"))?;
            if row.ended_at.is_none() {
                return Err(Error::invalid(param(), "is still in progress and is retried automatically"));
            }
            if row.origin == Origin::Test {
                return Err(Error::invalid(param(), "was a test"));
            }
            Ok((row, later(now, place)))
        })
        .collect()
}

fn chosen_events(
    tx: &mut Tx,
    catalogue: &Catalogue,
    subscriber: &Subscriber,
    ids: &[EventId],
) -> Result<Vec<LoggedEvent>> {
    ids.iter()
        .enumerate()
        .map(|(place, id)| {
            let param = || format!("event_ids[{place}]");
            let found = placed_event(tx, subscriber.workspace_id, id)?;
            let event = found.ok_or_else(|| Error::invalid(param(), "is not an event of this workspace"))?;
            let data: Value = event.data.parse()?;
            if !subscriber.wants(catalogue, &event, &data) {
                return Err(Error::invalid(param(), "has a type that the endpoint is not subscribed to"));
            }
            Ok(event)
        })
        .collect()
}

/// The events of a chunk that are delivered redeliver, and the place of the chunk's last event.
fn chunk(
    read: &mut Read,
    catalogue: &Catalogue,
    subscriber: &Subscriber,
    range: &Range,
    after: i64,
) -> Result<(Vec<LoggedEvent>, Option<i64>)> {
    let events = placed_since(read, range.workspace_id, range.since, range.until, after, CHUNK)?;
    let last = events.last().map(|event| event.position);
    let wanted_type =
        |event: &LoggedEvent| range.types.as_ref().is_none_or(|types| types.contains(&event.kind));
    let events: Vec<LoggedEvent> = events.into_iter().filter(wanted_type).collect();
    let ids: Vec<&EventId> = events.iter().map(|event| &event.id).collect();
    let rows: Vec<(EventId, Status, Origin, Timestamp)> = webhook_deliveries::table
        .filter(webhook_deliveries::event_id.eq_any(ids))
        .filter(webhook_deliveries::endpoint_id.eq(&range.endpoint_id))
        .filter(webhook_deliveries::origin.ne(Origin::Test))
        .select((
            webhook_deliveries::event_id,
            webhook_deliveries::status,
            webhook_deliveries::origin,
            webhook_deliveries::created_at,
        ))
        .load(read.connection())?;
    let mut past: HashMap<EventId, Past> = HashMap::new();
    for (event, status, origin, created) in rows {
        let past = past.entry(event).or_default();
        past.lost &= matches!(status, Status::Failed | Status::Skipped);
        past.replayed |= origin == Origin::Manual && created >= range.asked_at;
    }
    let mut chosen = Vec::new();
    for event in events {
        let data: Value = event.data.parse()?;
        let past = past.get(&event.id);
        let is_chosen = match range.status {
            ReplayStatus::Failed => {
                past.is_some_and(|past| past.lost) && subscriber.wants(catalogue, &event, &data)
            }
            ReplayStatus::Missing => past.is_none() && subscriber.wants(catalogue, &event, &data),
            ReplayStatus::Any => subscriber.wants(catalogue, &event, &data),
        };
        // A job that was cut off does not do again what it has done.
        if is_chosen && !past.is_some_and(|past| past.replayed) {
            chosen.push(event);
        }
    }
    Ok((chosen, last))
}

/// What became of an event's deliveries so far.
struct Past {
    /// All of them failed or were skipped.
    lost: bool,
    replayed: bool,
}

impl Default for Past {
    fn default() -> Self {
        Self { lost: true, replayed: false }
    }
}

fn count(read: &mut Read, catalogue: &Catalogue, subscriber: &Subscriber, range: &Range) -> Result<usize> {
    let (mut count, mut after) = (0, 0);
    loop {
        let (chosen, last) = chunk(read, catalogue, subscriber, range, after)?;
        count += chosen.len();
        match last {
            Some(last) => after = last,
            None => return Ok(count),
        }
    }
}

/// Makes deliveries of events, the first due at the `place`th slot after `start`.
fn deliver(
    tx: &mut Tx,
    catalogue: &Catalogue,
    subscriber: &Subscriber,
    events: &[LoggedEvent],
    start: Timestamp,
    place: i64,
) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    store_bodies(tx, events.iter().map(|event| (event, subscriber.payload)))?;
    let mut rows = Vec::with_capacity(events.len());
    for (place, event) in (place..).zip(events) {
        let (data, due) = (event.data.parse()?, later(start, place));
        rows.push(subscriber.delivery(tx, catalogue, event, &data, Origin::Manual, due));
    }
    enqueue(tx, rows)
}

/// The job `webhooks.replay`.
pub(crate) async fn run(engine: Deliveries, job: JobContext) -> std::result::Result<(), JobError> {
    let range: Range = job.payload.parse()?;
    let range = Arc::new(range);
    let (mut after, mut place) = (0, 0);
    loop {
        let (range, catalogue, engine) = (range.clone(), engine.parts.catalogue.clone(), engine.clone());
        let done = job.db.write(move |tx| {
            // One that was deleted or switched off meanwhile gets nothing more.
            let Ok(row) = endpoints::locked(tx, range.workspace_id, &range.endpoint_id) else {
                return Ok(None);
            };
            if !row.is_enabled() {
                return Ok(None);
            }
            hold_bodies(tx)?;
            let subscriber = Subscriber::load(tx, &catalogue, range.workspace_id, &range.endpoint_id)?;
            let (events, last) = chunk(tx, &catalogue, &subscriber, &range, after)?;
            deliver(tx, &catalogue, &subscriber, &events, range.asked_at, place)?;
            engine.wake_after(tx);
            Ok(last.map(|last| (last, i64::try_from(events.len()).unwrap_or(0))))
        });
        match done.await? {
            Some((last, made)) => (after, place) = (last, place + made),
            None => return Ok(()),
        }
        if job.soft.is_cancelled() {
            return Err(JobError::hand_back());
        }
    }
}
