//! Deliveries: one event to one endpoint, with its attempts.

use super::endpoints;
use super::queues::enqueue;
use super::rows::{DeliveryRow, DeliveryStatus, NewDelivery, Origin, Status};
use super::size;
use crate::Deliveries;
use crate::endpoint::model::EndpointRow;
use crate::schema::{webhook_attempts, webhook_bodies, webhook_deliveries, webhook_endpoints};
use diesel::prelude::*;
use model::{
    Caller, Code, DeliveryId, Error, EventId, JsonText, Result, Timestamp, WebhookEndpointId, WorkspaceId,
};
use operation::{Created, Json, OffsetList, OffsetPage, Path, Query, Resource, State, operation};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use store::{OneRow, Read, Tx};
use utoipa::{IntoParams, ToSchema};

/// An attempt to deliver an event.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "n": 1, "status_code": 200, "duration_ms": 84 }))]
pub struct DeliveryAttempt {
    /// The number of the attempt, from 1.
    n: i64,
    /// When it started.
    at: Timestamp,
    /// The status of the response. `null` if there was none.
    status_code: Option<i64>,
    /// The duration in milliseconds.
    duration_ms: i64,
    /// What failed, or `null`.
    error: Option<String>,
    /// The body of the response, up to 4 KB, or `null`.
    response_body: Option<String>,
}

/// The delivery of one event to one endpoint.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "event_type": "run.completed", "livemode": true, "status": "succeeded", "attempt_count": 1,
    "ended_at": "2026-11-20T09:30:00.084Z",
}))]
pub struct WebhookDelivery {
    /// The id of the delivery.
    pub id: DeliveryId,
    /// Always `webhook_delivery`.
    object: &'static str,
    /// The id of the workspace.
    workspace_id: WorkspaceId,
    /// The id of the endpoint.
    endpoint_id: WebhookEndpointId,
    /// The id of the event. The generated event of a test is not in the event log.
    event_id: EventId,
    /// The type of the event.
    event_type: String,
    /// The `livemode` of the event.
    livemode: bool,
    /// The status.
    status: DeliveryStatus,
    /// The reason for the delivery.
    trigger: Origin,
    /// The number of attempts.
    attempt_count: i64,
    /// The attempts.
    attempts: Vec<DeliveryAttempt>,
    /// When the next attempt is due. `null` if there is none, or while the delivery waits for an earlier one.
    next_attempt_at: Option<Timestamp>,
    /// When the delivery ended, or `null`.
    ended_at: Option<Timestamp>,
    /// When the object was created.
    created_at: Timestamp,
}

/// The request that the service sends.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "method": "POST", "url": "https://example.com/webhooks" }))]
pub struct DeliveryRequest {
    /// Always `POST`.
    method: &'static str,
    /// The URL.
    url: String,
    /// The headers of the last attempt. Values of the endpoint's own headers are not returned. `null` before the first
    /// attempt.
    #[schema(value_type = Option<Object>)]
    headers: Option<JsonText>,
    /// The body, identical for every attempt. `null` when it is no longer kept.
    body: Option<String>,
}

/// The last response.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "status_code": 200 }))]
pub struct DeliveryResponse {
    /// The HTTP status.
    status_code: i64,
    /// The first 32 headers.
    #[schema(value_type = Option<Object>)]
    headers: Option<JsonText>,
    /// The body, up to 4 KB.
    body: Option<String>,
}

/// A delivery with its request and the last response.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WebhookDeliveryDetail {
    /// The delivery.
    #[serde(flatten)]
    delivery: WebhookDelivery,
    /// The request.
    request: DeliveryRequest,
    /// The last response, or `null`.
    response: Option<DeliveryResponse>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = webhook_attempts)]
struct StoredAttempt {
    delivery_id: DeliveryId,
    n: i64,
    attempted_at: Timestamp,
    duration_ms: i64,
    status_code: Option<i64>,
    error: Option<String>,
    request_headers: JsonText,
    response_headers: Option<JsonText>,
    response_body: Option<String>,
}

impl StoredAttempt {
    fn show(&self) -> DeliveryAttempt {
        DeliveryAttempt {
            n: self.n,
            at: self.attempted_at,
            status_code: self.status_code,
            duration_ms: self.duration_ms,
            error: self.error.clone(),
            response_body: self.response_body.clone(),
        }
    }
}

fn attempts(read: &mut Read, ids: &[DeliveryId]) -> Result<HashMap<DeliveryId, Vec<StoredAttempt>>> {
    let rows: Vec<StoredAttempt> = webhook_attempts::table
        .filter(webhook_attempts::delivery_id.eq_any(ids))
        .order((webhook_attempts::delivery_id, webhook_attempts::n))
        .select(StoredAttempt::as_select())
        .load(read.connection())?;
    let mut by_delivery: HashMap<DeliveryId, Vec<StoredAttempt>> = HashMap::new();
    for row in rows {
        by_delivery.entry(row.delivery_id.clone()).or_default().push(row);
    }
    Ok(by_delivery)
}

fn show(row: DeliveryRow, attempts: &[StoredAttempt]) -> WebhookDelivery {
    WebhookDelivery {
        id: row.id,
        object: "webhook_delivery",
        workspace_id: row.workspace_id,
        endpoint_id: row.endpoint_id,
        event_id: row.event_id,
        event_type: row.event_type,
        livemode: row.livemode,
        status: row.status,
        trigger: row.origin,
        attempt_count: row.attempts,
        attempts: attempts.iter().map(StoredAttempt::show).collect(),
        next_attempt_at: row.due_at,
        ended_at: row.ended_at,
        created_at: row.created_at,
    }
}

fn show_all(read: &mut Read, rows: Vec<DeliveryRow>) -> Result<Vec<WebhookDelivery>> {
    let ids: Vec<DeliveryId> = rows.iter().map(|row| row.id.clone()).collect();
    let attempts = attempts(read, &ids)?;
    let shown = rows.into_iter().map(|row| {
        let own = attempts.get(&row.id).map_or(&[][..], Vec::as_slice);
        show(row, own)
    });
    Ok(shown.collect())
}

/// Which deliveries to list.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
pub struct DeliveryQuery {
    /// Only deliveries with this status.
    #[serde(default)]
    status: Option<DeliveryStatus>,
    /// Only deliveries of events of this type.
    #[serde(default)]
    #[param(max_length = 100)]
    event_type: Option<String>,
    /// Only deliveries of this event.
    #[serde(default)]
    event_id: Option<EventId>,
    /// Only deliveries for this reason.
    #[serde(default)]
    trigger: Option<Origin>,
}

impl DeliveryQuery {
    /// Those of one event.
    pub(crate) fn of_event(event: EventId) -> Self {
        Self { event_id: Some(event), ..Self::default() }
    }
}

/// Deliveries and their attempts
///
/// Lists the endpoint's deliveries with their attempts, newest first. Finished deliveries are kept for 30 days by
/// default, or for a shorter time where a workspace has too many of them.
#[operation(get "/webhook-endpoints/{endpointId}/deliveries", scope = "webhooks:manage")]
pub fn list_webhook_deliveries(
    read: &mut Read,
    caller: &Caller,
    Path(endpoint_id): Path<WebhookEndpointId>,
    Query(query): Query<DeliveryQuery>,
    page: OffsetPage,
) -> Result<OffsetList<WebhookDelivery>> {
    EndpointRow::find(read, caller.workspace_id(), &endpoint_id)?;
    self::page(read, caller.workspace_id(), Some(&endpoint_id), &query, page)
}

/// A page of a workspace's deliveries to one endpoint or to all, newest first.
pub(crate) fn page(
    read: &mut Read,
    workspace: WorkspaceId,
    endpoint: Option<&WebhookEndpointId>,
    query: &DeliveryQuery,
    page: OffsetPage,
) -> Result<OffsetList<WebhookDelivery>> {
    let chosen = || {
        let mut rows =
            webhook_deliveries::table.filter(webhook_deliveries::workspace_id.eq(workspace)).into_boxed();
        if let Some(endpoint) = endpoint {
            rows = rows.filter(webhook_deliveries::endpoint_id.eq(endpoint));
        }
        if let Some(event) = &query.event_id {
            rows = rows.filter(webhook_deliveries::event_id.eq(event));
        }
        if let Some(status) = query.status {
            rows = rows.filter(webhook_deliveries::status.eq(status));
        }
        if let Some(kind) = &query.event_type {
            rows = rows.filter(webhook_deliveries::event_type.eq(kind));
        }
        if let Some(trigger) = query.trigger {
            rows = rows.filter(webhook_deliveries::origin.eq(trigger));
        }
        rows
    };
    let total = chosen().count().get_result(read.connection())?;
    let rows: Vec<DeliveryRow> = chosen()
        .order(webhook_deliveries::number.desc())
        .limit(page.limit)
        .offset(page.offset)
        .select(DeliveryRow::as_select())
        .load(read.connection())?;
    Ok(OffsetList::of(page, show_all(read, rows)?, total))
}

/// A delivery of an endpoint of the workspace.
///
/// # Errors
/// `not_found`.
pub(crate) fn find(
    read: &mut Read,
    workspace: WorkspaceId,
    endpoint: &WebhookEndpointId,
    id: &DeliveryId,
) -> Result<DeliveryRow> {
    webhook_deliveries::table
        .filter(webhook_deliveries::id.eq(id))
        .filter(webhook_deliveries::endpoint_id.eq(endpoint))
        .filter(webhook_deliveries::workspace_id.eq(workspace))
        .select(DeliveryRow::as_select())
        .get_result(read.connection())
        .or_not_found("delivery")
}

/// A delivery with its request and the last response.
pub(crate) fn detail(read: &mut Read, row: DeliveryRow) -> Result<WebhookDeliveryDetail> {
    let url = webhook_endpoints::table
        .find(&row.endpoint_id)
        .select(webhook_endpoints::url)
        .get_result(read.connection())?;
    let body = webhook_bodies::table
        .find((row.event_id.as_str(), &row.form))
        .select(webhook_bodies::body)
        .get_result(read.connection())
        .optional()?;
    let attempts = attempts(read, std::slice::from_ref(&row.id))?.remove(&row.id).unwrap_or_default();
    let last = attempts.last();
    let response = last.and_then(|last| {
        Some(DeliveryResponse {
            status_code: last.status_code?,
            headers: last.response_headers.clone(),
            body: last.response_body.clone(),
        })
    });
    let headers = last.map(|last| last.request_headers.clone());
    let request = DeliveryRequest { method: "POST", url, headers, body };
    Ok(WebhookDeliveryDetail { delivery: show(row, &attempts), request, response })
}

/// One delivery with request and response
///
/// Returns the delivery with its attempts, the request as it was sent, and the last response.
#[operation(get "/webhook-endpoints/{endpointId}/deliveries/{deliveryId}", scope = "webhooks:manage")]
pub fn get_webhook_delivery(
    read: &mut Read,
    caller: &Caller,
    Path(endpoint_id): Path<WebhookEndpointId>,
    Path(delivery_id): Path<DeliveryId>,
) -> Result<Json<WebhookDeliveryDetail>> {
    EndpointRow::find(read, caller.workspace_id(), &endpoint_id)?;
    let row = find(read, caller.workspace_id(), &endpoint_id, &delivery_id)?;
    Ok(Json(detail(read, row)?))
}

/// Deliver it again
///
/// Sends the event once more, with an identical body, as a new delivery. Only a finished delivery can be retried. Test
/// deliveries cannot be retried: send a new test.
#[operation(post "/webhook-endpoints/{endpointId}/deliveries/{deliveryId}/retry", scope = "webhooks:manage")]
pub fn retry_webhook_delivery(
    tx: &mut Tx,
    caller: &Caller,
    Path(endpoint_id): Path<WebhookEndpointId>,
    Path(delivery_id): Path<DeliveryId>,
    engine: State<Deliveries>,
) -> Result<Created<WebhookDelivery>> {
    let endpoint = endpoints::locked(tx, caller.workspace_id(), &endpoint_id)?;
    size::hold_bodies(tx)?;
    let row = find(tx, caller.workspace_id(), &endpoint_id, &delivery_id)?;
    refuse_disabled(&endpoint)?;
    if row.ended_at.is_none() {
        return Err(Error::new(
            Code::InvalidState,
            "The delivery is still in progress and is retried automatically.",
        ));
    }
    if row.origin == Origin::Test {
        return Err(Error::new(Code::InvalidState, "A test delivery cannot be retried. Send a new test."));
    }
    let now = tx.now();
    let id =
        redeliver(tx, &[(row, now)])?.pop().ok_or_else(|| Error::internal("a retry made no delivery"))?;
    engine.0.wake_after(tx);
    let made = find(tx, caller.workspace_id(), &endpoint_id, &id)?;
    Ok(Created(show(made, &[])))
}

/// # Errors
/// `invalid_state` for an endpoint that is not delivered to.
pub(crate) fn refuse_disabled(endpoint: &crate::endpoint::model::EndpointRow) -> Result<()> {
    if endpoint.is_enabled() {
        return Ok(());
    }
    Err(Error::new(Code::InvalidState, "The endpoint is disabled. Enable it first."))
}

/// Makes new deliveries of what was delivered before, due at the given times; gives their ids.
pub(crate) fn redeliver(tx: &mut Tx, rows: &[(DeliveryRow, Timestamp)]) -> Result<Vec<DeliveryId>> {
    let (now, random) = (tx.now(), tx.random());
    let made = rows.iter().map(|(row, due)| NewDelivery {
        id: DeliveryId::new(now, &*random),
        workspace_id: row.workspace_id,
        endpoint_id: row.endpoint_id.clone(),
        event_id: row.event_id.clone(),
        form: row.form.clone(),
        event_type: row.event_type.clone(),
        livemode: row.livemode,
        origin: Origin::Manual,
        status: Status::Pending,
        lane: row.lane.clone(),
        due_at: Some(*due),
        attempts: 0,
        created_at: now,
    });
    let made: Vec<NewDelivery> = made.collect();
    let ids = made.iter().map(|row| row.id.clone()).collect();
    enqueue(tx, made)?;
    Ok(ids)
}
