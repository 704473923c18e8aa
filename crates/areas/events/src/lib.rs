//! Events and webhooks: the event log, webhooks out, and webhooks in.
//!
//! Outbound: an event is committed with the change that caused it, fanned out to the endpoints that subscribed to
//! it, and delivered at least once. Inbound: outside systems post to a URL of ours, and what they post is on the disk
//! before they are answered.

mod group;
pub mod inbound;
pub mod log;
pub mod outbound;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;

pub use group::GROUP;
pub use log::{Catalogue, Feed, Sequencer};
pub use outbound::{Deliveries, Delivering, signing};

use operation::{Domain, EventType, Operations};

/// The event log.
pub struct Events;

impl Domain for Events {
    const AREA: &'static str = "Events";
    const ORDER: u16 = 210;
    const DESCRIPTION: &'static str = "The log of everything that happened in the workspace, kept for 30 days by default. Read it \
         page by page, or follow it with a long poll.";

    fn operations() -> Operations {
        log::operations()
    }

    fn event_types() -> Vec<EventType> {
        log::announced()
    }
}

/// Webhooks, out and in.
pub struct Webhooks;

impl Domain for Webhooks {
    const AREA: &'static str = "Webhooks";
    const ORDER: u16 = 220;
    const DESCRIPTION: &'static str = "Outbound webhooks send events to your HTTPS endpoints, signed and with retries. Inbound webhooks are \
         URLs that receive requests from other systems, verify them and publish them as events.";

    fn operations() -> Operations {
        let mut all = outbound::operations();
        all.extend(inbound::operations());
        all
    }

    fn event_types() -> Vec<EventType> {
        let mut all = EventType::of::<outbound::EndpointEvent<'_>>();
        all.extend(EventType::of::<inbound::InboundEvent>());
        all
    }
}
