//! Rows of deliveries.

use crate::schema::webhook_deliveries;
use diesel::prelude::*;
use model::{DeliveryId, EventId, Timestamp, WebhookEndpointId, WorkspaceId, text_enum};

text_enum! {
    /// Where a delivery stands. The word on the wire is `status`.
    pub enum DeliveryStatus {
        /// An attempt is to come.
        Pending = "pending",
        /// An attempt is being made.
        Delivering = "delivering",
        /// The endpoint answered 2xx.
        Succeeded = "succeeded",
        /// No attempt succeeded, and none will be made.
        Failed = "failed",
        /// Nothing was sent, because the endpoint was switched off before.
        Skipped = "skipped",
    }
}
pub(crate) use DeliveryStatus as Status;

text_enum! {
    /// Why a delivery is made.
    pub enum Origin {
        /// The event happened.
        Automatic = "automatic",
        /// Somebody asked for it again.
        Manual = "manual",
        /// Somebody tested the endpoint.
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
#[derive(Debug, Clone, Insertable)]
#[diesel(table_name = webhook_deliveries)]
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
