//! What inbound webhooks add to the service.

use crate::receive::flows::WebhooksAsUsers;
use crate::receive::receiver::{Receiver, ReceiverParts};
use crate::receive::size::INBOUND_LOG;
use crate::{InboundWebhooks, jobs, sealed};
use ::jobs::Job;
use model::Result;
use operation::{BaseUrl, Group, Parts, Services};
use ports::ObjectUsers;
use std::sync::Arc;
use std::time::Duration;

/// URLs that receive requests from other systems.
pub const GROUP: Group = Group {
    declare: |declarations| {
        Ok(declarations.area::<InboundWebhooks>().sealed([&sealed::SEALED]).log(INBOUND_LOG))
    },
    start,
};

fn start(services: &Services) -> Result<Parts> {
    let BaseUrl(base_url) = services.cloned()?;
    let receiver = Receiver::new(ReceiverParts {
        db: services.cloned()?,
        seal: services.get()?,
        directory: services.get()?,
        rates: services.get()?,
        base_url,
        tracer: services.cloned()?,
        flows: services.cloned()?,
        people: services.cloned()?,
    });
    Ok(Parts::default()
        .jobs(inbound_jobs(&receiver))
        .raw_route(receiver.clone())
        .service(receiver)
        .one_of::<Arc<dyn ObjectUsers>>(Arc::new(WebhooksAsUsers)))
}

fn inbound_jobs(receiver: &Receiver) -> [Job; 3] {
    let processing = receiver.clone();
    [
        Job::every(
            "inbound.purge",
            Duration::from_secs(3600),
            "deletes the keys that detect duplicates after their time",
            jobs::purge,
        ),
        Job::after(
            jobs::FORGET,
            "an inbound webhook is deleted",
            "deletes its requests in pieces",
            jobs::forget,
        ),
        Job::after(
            jobs::REPROCESS,
            "requests of an inbound webhook are processed again",
            "does it in pieces",
            move |job| jobs::reprocess(job, processing.clone()),
        ),
    ]
}
