//! The events that endpoints tell of themselves. The other endpoints get them.

use super::engine::Health;
use super::model::{DisabledReason, EndpointRow};
use model::{Cause, NewEvent, Result, Timestamp, WebhookEndpointId};
use operation::EventType;
use serde::Serialize;
use store::Tx;
use utoipa::ToSchema;

/// An endpoint has troubles.
#[derive(Serialize, ToSchema)]
struct EndpointTrouble<'a> {
    /// The endpoint.
    endpoint_id: &'a WebhookEndpointId,
    /// Where it is.
    url: &'a str,
    /// Why it was switched off, or `null`: `failing`, `gone` or `scope_lost`.
    reason: Option<&'static str>,
    /// Since when every delivery has failed, or `null`.
    failing_since: Option<Timestamp>,
    /// Failures since the last success.
    failures: i64,
}

pub(crate) fn failing(tx: &mut Tx, row: &EndpointRow, health: &Health) -> Result<()> {
    let data = EndpointTrouble {
        endpoint_id: &row.id,
        url: &row.url,
        reason: None,
        failing_since: health.failing_since,
        failures: health.failures,
    };
    tx.emit(
        row.workspace_id,
        &Cause::system("deliveries"),
        &NewEvent::new("webhook_endpoint.failing", true, &data),
    )
    .map(drop)
}

pub(crate) fn disabled(
    tx: &mut Tx,
    row: &EndpointRow,
    reason: DisabledReason,
    failing_since: Option<Timestamp>,
) -> Result<()> {
    let data = EndpointTrouble {
        endpoint_id: &row.id,
        url: &row.url,
        reason: Some(reason.as_str()),
        failing_since,
        failures: 0,
    };
    tx.emit(
        row.workspace_id,
        &Cause::system("deliveries"),
        &NewEvent::new("webhook_endpoint.disabled", true, &data),
    )
    .map(drop)
}

pub(crate) fn event_types() -> Vec<EventType> {
    let of = |name, description| {
        EventType::of::<EndpointTrouble<'_>>(name, description, "webhooks:manage")
            .about("webhook_endpoint", "endpoint_id")
    };
    vec![
        of("webhook_endpoint.failing", "Every delivery to an endpoint has failed for two and a half days."),
        of(
            "webhook_endpoint.disabled",
            "An endpoint was switched off: it failed for five days, answered 410, or lost the key behind it.",
        ),
    ]
}
