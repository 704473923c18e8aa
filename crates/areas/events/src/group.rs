//! What events and webhooks add to the service.

use crate::inbound::{self, INBOUND_LOG, Receiver, ReceiverParts};
use crate::log::{Catalogue, EVENT_LOG, Feed, Sequencer};
use crate::outbound::{self, DELIVERY_LOG, Deliveries};
use crate::{Events, Webhooks};
use jobs::Job;
use model::{Result, Tracer};
use operation::{BaseUrl, Declarations, Group, Parts, Registry, Services};
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use store::logs::{Retention, Retentions};

/// Events, and webhooks out and in.
pub const GROUP: Group = Group { declare, start };

fn declare(declarations: Declarations) -> Result<Declarations> {
    Ok(declarations
        .area::<Events>()
        .area::<Webhooks>()
        .sealed([&outbound::SEALED, &inbound::SEALED])
        .log(EVENT_LOG)
        .log(DELIVERY_LOG)
        .log(INBOUND_LOG))
}

fn start(services: &Services) -> Result<Parts> {
    let catalogue = Arc::new(Catalogue::new(services.get::<Registry>()?.event_types().to_vec()));
    let (db, feed, tracer) =
        (services.get::<Db>()?.with_priority(), Feed::new(), services.cloned::<Tracer>()?);
    let wake = Arc::new(tokio::sync::Notify::new());
    let sequencer = Sequencer::new(db.clone(), catalogue.clone(), feed.clone(), wake.clone());
    let (connector, seal) = (services.get()?, services.get()?);
    let parts =
        outbound::Parts { db, catalogue: catalogue.clone(), connector, seal, tracer: tracer.clone(), wake };
    let deliveries = Deliveries::new(parts, sequencer)?;
    let BaseUrl(base_url) = services.cloned()?;
    let receiver = Receiver::new(ReceiverParts {
        db: services.cloned()?,
        seal: services.get()?,
        directory: services.get()?,
        rates: services.get()?,
        base_url,
        tracer,
    });
    let retentions = services.get::<Retentions>()?;
    let parts = Parts::default()
        .jobs(delivery_jobs(&deliveries, &catalogue, retentions.of(&EVENT_LOG), retentions.of(&DELIVERY_LOG)))
        .jobs(inbound_jobs(&receiver, retentions.of(&INBOUND_LOG)))
        .metrics(deliveries.collectors())
        .table_gauge(outbound::OPEN_DELIVERIES)
        .raw_route(receiver.clone())
        .shared_service(catalogue)
        .shared_service(feed)
        .service(deliveries)
        .service(receiver);
    Ok(parts)
}

const HOURLY: Duration = Duration::from_secs(3600);

fn delivery_jobs(
    deliveries: &Deliveries,
    catalogue: &Arc<Catalogue>,
    events_kept: Retention,
    deliveries_kept: Retention,
) -> [Job; 4] {
    let (deliveries, catalogue) = (deliveries.clone(), catalogue.clone());
    [
        Job::every("events.purge", HOURLY, "deletes events and deliveries after their time", move |job| {
            outbound::purge(job, events_kept, deliveries_kept)
        }),
        Job::every(
            outbound::CHECK,
            outbound::CHECK_PERIOD,
            "switches off endpoints that have lost the key behind them",
            move |job| outbound::check(job, catalogue.clone()),
        ),
        Job::after(outbound::SKIP, "an endpoint is disabled", "skips what is pending", outbound::skip),
        Job::after(outbound::REPLAY, "deliveries are replayed", "sends them again", move |job| {
            outbound::replay(deliveries.clone(), job)
        }),
    ]
}

fn inbound_jobs(receiver: &Receiver, kept: Retention) -> [Job; 3] {
    let processing = receiver.clone();
    [
        Job::every(
            "inbound.purge",
            HOURLY,
            "deletes received requests, and the keys that detect duplicates, after their time",
            move |job| inbound::jobs::purge(job, kept),
        ),
        Job::after(
            inbound::jobs::FORGET,
            "an inbound webhook is deleted",
            "deletes its requests in pieces",
            inbound::jobs::forget,
        ),
        Job::after(
            inbound::jobs::REPROCESS,
            "requests of an inbound webhook are processed again",
            "does it in pieces",
            move |job| inbound::jobs::reprocess(job, processing.clone()),
        ),
    ]
}
