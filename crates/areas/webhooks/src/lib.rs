//! Outbound webhooks: subscriptions of HTTPS endpoints, and the engine that delivers to them.
//!
//! An event is committed with the change that caused it. The [`sequencer`] gives it its place in the log and makes a
//! delivery for every endpoint that wants it ([`fanout`]); the [`engine`] sends deliveries and tries again what fails, at
//! least once. The bytes of a body are made once and sent unchanged on every attempt.

mod closing;
mod deliveries;
mod endpoint;
mod endpoints;
mod engine;
mod envelope;
mod event_deliveries;
mod events;
mod fanout;
mod group;
mod operations;
mod purge;
mod queues;
mod replay;
mod rotate;
mod rows;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod sending;
mod sequencer;
mod size;
mod test_delivery;

pub use endpoint::signing;
pub use engine::{Deliveries, Delivering};
pub use group::GROUP;

use self::events::EndpointEvent;
use operation::{Domain, EventType, Operations};

/// Webhooks to the endpoints of workspaces.
pub struct Webhooks;

impl Domain for Webhooks {
    const AREA: &'static str = "Webhooks";
    const ORDER: u16 = 220;
    const DESCRIPTION: &'static str = "Outbound webhooks send events to your HTTPS endpoints, signed and with retries. Inbound webhooks are \
         URLs that receive requests from other systems, verify them and publish them as events.";

    fn operations() -> Operations {
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

    fn event_types() -> Vec<EventType> {
        EventType::of::<EndpointEvent<'_>>()
    }
}

/// The deliveries of events.
pub struct EventDeliveries;

impl Domain for EventDeliveries {
    const AREA: &'static str = "Events";
    const ORDER: u16 = 211;
    const DESCRIPTION: &'static str = "";

    fn operations() -> Operations {
        vec![Box::new(event_deliveries::ListEventDeliveries)]
    }
}
