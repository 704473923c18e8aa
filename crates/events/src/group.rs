//! Group of events and webhooks: its jobs, routes and services.

use crate::inbound::{self, Receiver};
use crate::log::{Catalogue, Feed, Sequencer};
use crate::outbound::{self, Deliveries};
use crate::{Events, Webhooks};
use auth::Seal;
use egress::Connector;
use jobs::Job;
use model::Result;
use operation::{EventType, Group, Registry};
use std::sync::Arc;
use std::time::Duration;
use store::Db;

/// Adds the areas.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn areas(registry: Registry) -> Result<Registry> {
    registry.with::<Events>()?.with::<Webhooks>()
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

    /// Events and webhooks, with what receives webhooks from outside.
    pub fn group(&self, receiver: Receiver) -> Group {
        let (deliveries, catalogue, processing) =
            (self.deliveries.clone(), self.catalogue.clone(), receiver.clone());
        let hourly = Duration::from_secs(3600);
        Group::default()
            .job(Job::every(
                "events.purge",
                hourly,
                "deletes events and deliveries after their time",
                outbound::purge,
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
                "deletes received requests after 14 days, and the keys that detect duplicates after their time",
                inbound::jobs::purge,
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
            .raw_route(receiver.clone())
            .shared_service(self.catalogue.clone())
            .shared_service(self.feed.clone())
            .service(self.deliveries.clone())
            .service(receiver)
    }
}
