//! What happened, told to whoever wants to know: the event log, webhooks out, and webhooks in.
//!
//! Outbound: an event is committed with the change that caused it, fanned out to the endpoints that subscribed to
//! it, and delivered at least once. Inbound: outside systems post to a URL of ours, and what they post is on the disk
//! before they are answered.

pub mod inbound;
pub mod log;
pub mod outbound;

use operation::{Domain, Operations};

/// The event log.
pub struct Events;

impl Domain for Events {
    const AREA: &'static str = "Events";

    fn operations() -> Operations {
        log::operations()
    }
}

/// Webhooks, out and in.
pub struct Webhooks;

impl Domain for Webhooks {
    const AREA: &'static str = "Webhooks";

    fn operations() -> Operations {
        let mut all = outbound::operations();
        all.extend(inbound::operations());
        all
    }
}
