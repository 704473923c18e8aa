//! Events of endpoints. The other endpoints get them.

use crate::endpoint::model::{DisabledReason, EndpointRow};
use crate::sending::health::Health;
use model::{Cause, Result, Timestamp, WebhookEndpointId};
use operation::Event;
use serde::Serialize;
use store::Tx;
use utoipa::ToSchema;

/// An event of a webhook endpoint.
#[derive(Event)]
#[event(scope = "webhooks:manage", subject = "webhook_endpoint", id = "endpoint_id")]
pub(crate) enum EndpointEvent<'a> {
    /// All deliveries to an endpoint have failed for two and a half days.
    #[event(name = "webhook_endpoint.failing")]
    Failing(EndpointTrouble<'a>),
    /// An endpoint was disabled automatically: it failed for five days, returned 410, or the key of its subscription
    /// lost access.
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
    /// The id of the endpoint.
    endpoint_id: &'a WebhookEndpointId,
    /// The URL.
    url: &'a str,
    /// Why it was disabled, or `null`: `failing`, `gone` or `scope_lost`.
    reason: Option<&'static str>,
    /// Since when all deliveries have failed, or `null`.
    failing_since: Option<Timestamp>,
    /// The number of failures since the last success.
    failures: i64,
}
