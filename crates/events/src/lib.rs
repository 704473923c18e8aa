//! What happened, told to whoever wants to know: the event log, webhooks out, and webhooks in.
//!
//! Outbound: an event is committed with the change that caused it, fanned out to the endpoints that subscribed to
//! it, and delivered at least once. Inbound: outside systems post to a URL of ours, and what they post is on the disk
//! before they are answered.

pub mod inbound;
pub mod log;
pub mod outbound;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;

pub use log::{Catalogue, Feed, Sequencer};
pub use outbound::{Deliveries, Delivering, signing};

use auth::Seal;
use egress::Connector;
use jobs::Runner;
use operation::{Domain, EventType, Operations, Services};
use std::sync::Arc;
use std::time::Duration;
use store::Db;

/// The event log.
pub struct Events;

impl Domain for Events {
    const AREA: &'static str = "Events";

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

/// What the binary wires together of events: what operations ask for, and what works in the background.
pub struct EventsParts {
    /// The types of all areas.
    pub catalogue: Arc<Catalogue>,
    /// Tells who waits that there are events.
    pub feed: Arc<Feed>,
    /// Places events and delivers.
    pub deliveries: Deliveries,
}

impl EventsParts {
    /// All of it, on this database.
    pub fn new(db: &Db, types: Vec<EventType>, connector: Arc<Connector>, seal: Arc<Seal>) -> Self {
        let (catalogue, feed) = (Arc::new(Catalogue::new(types)), Feed::new());
        let wake = Arc::new(tokio::sync::Notify::new());
        let sequencer = Sequencer::new(db.clone(), catalogue.clone(), feed.clone(), wake.clone());
        let parts = outbound::Parts { db: db.clone(), catalogue: catalogue.clone(), connector, seal, wake };
        Self { catalogue, feed, deliveries: Deliveries::new(parts, sequencer) }
    }

    /// Hands operations what they ask for.
    #[must_use]
    pub fn serve(&self, services: Services) -> Services {
        services
            .with_shared(self.catalogue.clone())
            .with_shared(self.feed.clone())
            .with(self.deliveries.clone())
    }

    /// Adds what happens by itself.
    #[must_use]
    pub fn background(&self, runner: Runner) -> Runner {
        let (deliveries, catalogue) = (self.deliveries.clone(), self.catalogue.clone());
        runner
            .handle(outbound::SKIP, outbound::skip)
            .handle(outbound::REPLAY, move |job| outbound::replay(deliveries.clone(), job))
            .every(outbound::CHECK, outbound::CHECK_PERIOD, move |job| {
                outbound::check(job, catalogue.clone())
            })
            .every("events.purge", Duration::from_secs(3600), outbound::purge)
    }
}
