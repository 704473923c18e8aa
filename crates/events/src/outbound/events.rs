//! Events of endpoints. The other endpoints get them.

use super::engine::Health;
use super::model::{DisabledReason, EndpointRow};
use model::{Cause, Result, Timestamp, WebhookEndpointId};
use operation::Event;
use serde::Serialize;
use store::Tx;
use utoipa::ToSchema;

/// What happened to an endpoint.
#[derive(Event)]
#[event(scope = "webhooks:manage", subject = "webhook_endpoint", id = "endpoint_id")]
pub(crate) enum EndpointEvent<'a> {
    /// Every delivery to an endpoint has failed for two and a half days.
    #[event(name = "webhook_endpoint.failing")]
    Failing(EndpointTrouble<'a>),
    /// An endpoint was switched off: it failed for five days, answered 410, or lost the key behind it.
    #[event(name = "webhook_endpoint.disabled")]
    Disabled(EndpointTrouble<'a>),
}

impl<'a> EndpointEvent<'a> {
    pub(crate) fn failing(row: &'a EndpointRow, health: &Health) -> Self {
        Self::Failing(EndpointTrouble {
            endpoint_id: &row.id,
            url: &row.url,
            reason: None,
            failing_since: health.failing_since,
            failures: health.failures,
        })
    }

    pub(crate) fn disabled(
        row: &'a EndpointRow,
        reason: DisabledReason,
        failing_since: Option<Timestamp>,
    ) -> Self {
        Self::Disabled(EndpointTrouble {
            endpoint_id: &row.id,
            url: &row.url,
            reason: Some(reason.as_str()),
            failing_since,
            failures: 0,
        })
    }

    /// Publishes it for the endpoint's workspace.
    pub(crate) fn emit(&self, tx: &mut Tx, row: &EndpointRow) -> Result<()> {
        tx.emit(row.workspace_id, &Cause::system("deliveries"), true, self).map(drop)
    }
}

/// An endpoint has troubles.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndpointTrouble<'a> {
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
