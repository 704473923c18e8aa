//! Rows of deliveries.

use crate::schema::webhook_deliveries;
use diesel::prelude::*;
use model::{DeliveryId, EventId, Timestamp, WebhookEndpointId, WorkspaceId, text_enum};

text_enum! {
    /// The status of a delivery.
    pub enum DeliveryStatus {
        /// Waiting for the next attempt.
        Pending = "pending",
        /// An attempt is in progress.
        Delivering = "delivering",
        /// The endpoint returned a 2xx status.
        Succeeded = "succeeded",
        /// All attempts failed.
        Failed = "failed",
        /// Not sent, because the endpoint was disabled.
        Skipped = "skipped",
    }
}
pub(crate) use DeliveryStatus as Status;

text_enum! {
    /// The reason for a delivery.
    pub enum Origin {
        /// The event occurred.
        Automatic = "automatic",
        /// A retry or replay was requested.
        Manual = "manual",
        /// A test was requested.
        Test = "test",
    }
}

/// A row of `webhook_deliveries`.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = webhook_deliveries)]
pub(crate) struct DeliveryRow {
    pub(crate) id: DeliveryId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) endpoint_id: WebhookEndpointId,
    pub(crate) event_id: EventId,
    pub(crate) form: String,
    pub(crate) event_type: String,
    pub(crate) livemode: bool,
    pub(crate) origin: Origin,
    pub(crate) status: Status,
    pub(crate) lane: Option<String>,
    pub(crate) due_at: Option<Timestamp>,
    pub(crate) attempts: i64,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) created_at: Timestamp,
}

/// A delivery to be made. Its number is given by the database, in the order of the rows.
#[derive(Debug, Clone)]
pub(crate) struct NewDelivery {
    pub(crate) id: DeliveryId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) endpoint_id: WebhookEndpointId,
    pub(crate) event_id: EventId,
    pub(crate) form: String,
    pub(crate) event_type: String,
    pub(crate) livemode: bool,
    pub(crate) origin: Origin,
    pub(crate) status: Status,
    pub(crate) lane: Option<String>,
    pub(crate) due_at: Option<Timestamp>,
    pub(crate) attempts: i64,
    pub(crate) created_at: Timestamp,
}
