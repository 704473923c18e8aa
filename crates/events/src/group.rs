//! Group of events and webhooks: its jobs, routes and services.

use crate::inbound::{self, BoundedRequests, Receiver};
use crate::log::{BoundedEvents, Catalogue, Feed, Sequencer};
use crate::outbound::{self, BoundedDeliveries, Deliveries};
use crate::{Events, Webhooks};
use auth::{Seal, SealedTable};
use egress::Connector;
use jobs::Job;
use model::{Result, Tracer};
use operation::{EventType, Group, Registry};
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use store::logs::{BoundedLog, Retention};

/// Adds the areas.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn areas(registry: Registry) -> Result<Registry> {
    registry.with::<Events>()?.with::<Webhooks>()
}

/// The tables with sealed values.
pub const SEALED: &[&SealedTable] = &[&outbound::SEALED, &inbound::SEALED];

/// How long the logs of this group are kept, and up to which size.
#[derive(Debug, Clone, Copy)]
pub struct EventRetention {
    /// Events.
    pub events: Retention,
    /// Deliveries with their attempts and bodies.
    pub deliveries: Retention,
    /// Requests that inbound webhooks received.
    pub inbound_requests: Retention,
}

impl EventRetention {
    /// The logs themselves.
    pub fn logs(self) -> [Arc<dyn BoundedLog>; 3] {
        [
            Arc::new(BoundedEvents(self.events)),
            Arc::new(BoundedDeliveries(self.deliveries)),
            Arc::new(BoundedRequests(self.inbound_requests)),
        ]
    }
}

impl Default for EventRetention {
    fn default() -> Self {
        let of_days = Retention::of_days;
        Self { events: of_days(30), deliveries: of_days(30), inbound_requests: of_days(14) }
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
    ///
    /// # Errors
    /// Never: names and help texts of metrics are constants.
    pub fn new(
        db: &Db,
        types: Vec<EventType>,
        connector: Arc<Connector>,
        seal: Arc<Seal>,
        tracer: Tracer,
    ) -> Result<Self> {
        let (catalogue, feed) = (Arc::new(Catalogue::new(types)), Feed::new());
        let wake = Arc::new(tokio::sync::Notify::new());
        let (db, known) = (db.with_priority(), catalogue.clone());
        let sequencer = Sequencer::new(db.clone(), known.clone(), feed.clone(), wake.clone());
        let parts = outbound::Parts { db, catalogue: known, connector, seal, tracer, wake };
        Ok(Self { catalogue, feed, deliveries: Deliveries::new(parts, sequencer)? })
    }

    /// Events and webhooks, with what receives webhooks from outside.
    pub fn group(&self, receiver: Receiver, kept: EventRetention) -> Group {
        let (deliveries, catalogue, processing) =
            (self.deliveries.clone(), self.catalogue.clone(), receiver.clone());
        let hourly = Duration::from_secs(3600);
        Group::default()
            .job(Job::every(
                "events.purge",
                hourly,
                "deletes events and deliveries after their time",
                move |job| outbound::purge(job, kept.events, kept.deliveries),
            ))
            .job(Job::every(
                outbound::CHECK,
                outbound::CHECK_PERIOD,
                "switches off endpoints that have lost the key behind them",
                move |job| outbound::check(job, catalogue.clone()),
            ))
            .job(Job::after(
                outbound::SKIP,
                "an endpoint is disabled",
                "skips what is pending",
                outbound::skip,
            ))
            .job(Job::after(outbound::REPLAY, "deliveries are replayed", "sends them again", move |job| {
                outbound::replay(deliveries.clone(), job)
            }))
            .job(Job::every(
                "inbound.purge",
                hourly,
                "deletes received requests, and the keys that detect duplicates, after their time",
                move |job| inbound::jobs::purge(job, kept.inbound_requests),
            ))
            .job(Job::after(
                inbound::jobs::FORGET,
                "an inbound webhook is deleted",
                "deletes its requests in pieces",
                inbound::jobs::forget,
            ))
            .job(Job::after(
                inbound::jobs::REPROCESS,
                "requests of an inbound webhook are processed again",
                "does it in pieces",
                move |job| inbound::jobs::reprocess(job, processing.clone()),
            ))
            .metrics(self.deliveries.collectors())
            .table_gauge(outbound::OPEN_DELIVERIES)
            .raw_route(receiver.clone())
            .shared_service(self.catalogue.clone())
            .shared_service(self.feed.clone())
            .service(self.deliveries.clone())
            .service(receiver)
    }
}
