//! What outbound webhooks add to the service.

use crate::endpoint::sealed;
use crate::engine::{self, Deliveries, OPEN_DELIVERIES};
use crate::sequencer::Sequencer;
use crate::size::DELIVERY_LOG;
use crate::{EventDeliveries, Webhooks, closing, endpoints, purge, replay};
use events::Catalogue;
use jobs::Job;
use model::Result;
use operation::{Group, Parts, Services};
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use telemetry::Tracer;

/// Webhooks to the endpoints of workspaces.
pub const GROUP: Group = Group {
    declare: |declarations| {
        Ok(declarations
            .area::<EventDeliveries>()
            .area::<Webhooks>()
            .sealed([&sealed::SEALED])
            .log(DELIVERY_LOG))
    },
    start,
};

fn start(services: &Services) -> Result<Parts> {
    let (db, catalogue) = (services.get::<Db>()?.with_priority(), services.get::<Catalogue>()?);
    let wake = Arc::new(tokio::sync::Notify::new());
    let sequencer = Sequencer::new(db.clone(), catalogue.clone(), services.get()?, wake.clone());
    let (connector, seal, tracer) = (services.get()?, services.get()?, services.cloned::<Tracer>()?);
    let causes = services.cloned()?;
    let parts = engine::Parts { db, catalogue: catalogue.clone(), connector, seal, tracer, wake, causes };
    let deliveries = Deliveries::new(parts, sequencer)?;
    let parts = Parts::default()
        .jobs(delivery_jobs(&deliveries, &catalogue))
        .metrics(deliveries.collectors())
        .table_gauge(OPEN_DELIVERIES)
        .service(deliveries);
    Ok(parts)
}

fn delivery_jobs(deliveries: &Deliveries, catalogue: &Arc<Catalogue>) -> [Job; 4] {
    let (deliveries, catalogue) = (deliveries.clone(), catalogue.clone());
    [
        Job::every(
            "events.purge",
            Duration::from_secs(3600),
            "deletes the counts of events and deliveries after their time",
            purge::purge,
        ),
        Job::every(
            closing::CHECK,
            closing::CHECK_PERIOD,
            "switches off endpoints that have lost the key behind them",
            move |job| closing::check(job, catalogue.clone()),
        ),
        Job::after(endpoints::SKIP, "an endpoint is disabled", "skips what is pending", purge::skip),
        Job::after(replay::REPLAY, "deliveries are replayed", "sends them again", move |job| {
            replay::run(deliveries.clone(), job)
        }),
    ]
}
