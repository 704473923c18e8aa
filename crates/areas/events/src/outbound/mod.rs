//! Outbound webhooks: subscriptions of HTTPS endpoints, and the engine that delivers to them.
//!
//! An event is committed with the change that caused it. The [sequencer](crate::log) gives it its place in the log and
//! makes a delivery for every endpoint that wants it ([`fanout`]); the [`engine`] sends deliveries and tries again what
//! fails, at least once. The bytes of a body are made once and sent unchanged on every attempt.

mod check;
mod closing;
mod deliveries;
mod endpoints;
mod engine;
mod envelope;
mod events;
mod fanout;
mod filter;
mod metrics;
mod model;
mod operations;
mod purge;
mod queues;
mod replay;
mod rotate;
mod rows;
mod sealed;
pub mod signing;
mod size;
mod test_delivery;

pub(crate) use closing::{CHECK, CHECK_PERIOD, check};
pub(crate) use deliveries::{DeliveryQuery, WebhookDelivery, page as delivery_page};
pub(crate) use endpoints::SKIP;
pub(crate) use engine::Parts;
pub use engine::{Deliveries, Delivering};
pub(crate) use events::EndpointEvent;
pub(crate) use fanout::fan_out;
pub(crate) use metrics::OPEN_DELIVERIES;
pub(crate) use purge::{purge, skip};
pub(crate) use replay::REPLAY;
pub(crate) use replay::run as replay;
pub(crate) use sealed::SEALED;
pub use size::DELIVERY_LOG;

use operation::Operations;

pub(crate) fn operations() -> Operations {
    vec![
        Box::new(operations::ListWebhookEndpoints),
        Box::new(operations::CreateWebhookEndpoint),
        Box::new(operations::ListWebhookEventTypes),
        Box::new(operations::GetWebhookEndpoint),
        Box::new(operations::UpdateWebhookEndpoint),
        Box::new(operations::DeleteWebhookEndpoint),
        Box::new(operations::EnableWebhookEndpoint),
        Box::new(operations::DisableWebhookEndpoint),
        Box::new(rotate::RotateWebhookSecret),
        Box::new(test_delivery::TestWebhookEndpoint),
        Box::new(deliveries::ListWebhookDeliveries),
        Box::new(deliveries::GetWebhookDelivery),
        Box::new(deliveries::RetryWebhookDelivery),
        Box::new(replay::ReplayWebhookEndpoint),
    ]
}
