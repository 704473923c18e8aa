//! What this group adds to the service.

use crate::conversations::{self, Conversations};
use crate::events::MessageEvent;
use crate::inbound;
use crate::messages::{
    BroadcastRecipients, ContactMessages, MessageFiles, MessageReferences, Outbox, Turns, terms,
};
use crate::metrics::QUEUED_MESSAGES;
use crate::other_areas::OtherAreas;
use crate::retention::{self, RetentionParts};
use crate::worker::{WorkerParts, Workers};
use channels::MessageQueue;
use channels::work::Uploads;
use model::Result;
use operation::{Declarations, Domain, EventType, Group, Operations, Parts, Services};
use ports::{AutoAssignment, ChannelTurns, ContactReferences, FileReferences};
use std::sync::Arc;

/// The events of messages, which stand before those of templates.
pub struct MessageEvents;

impl Domain for MessageEvents {
    const AREA: &'static str = "Channels";
    const ORDER: u16 = 185;
    const DESCRIPTION: &'static str = "";

    fn operations() -> Operations {
        Vec::new()
    }

    fn event_types() -> Vec<EventType> {
        EventType::of::<MessageEvent>()
    }
}

/// Conversations, with their messages and the workers of channels.
pub const GROUP: Group = Group { declare, start };

fn declare(declarations: Declarations) -> Result<Declarations> {
    let members = declarations.services.cloned()?;
    Ok(declarations
        .area::<ContactMessages>()
        .area::<Conversations>()
        .area::<MessageEvents>()
        .service::<Arc<dyn MessageQueue>>(Arc::new(Outbox))
        .service(AutoAssignment(Arc::new(conversations::AutoAssigned)))
        .service::<Arc<dyn ChannelTurns>>(Arc::new(Turns(members))))
}

fn start(services: &Services) -> Result<Parts> {
    let worker = worker_parts(services)?;
    let retention_parts = RetentionParts {
        days: services.cloned()?,
        file_uses: worker.file_uses.clone(),
        broadcasts: worker.areas.broadcasts.clone(),
    };
    let parts = Parts::default()
        .one_of::<Arc<dyn ContactReferences>>(Arc::new(MessageReferences {
            file_uses: retention_parts.file_uses.clone(),
            broadcasts: retention_parts.broadcasts.clone(),
        }))
        .job(inbound::job())
        .job(terms::job())
        .job(retention::job(retention_parts))
        .job(conversations::job())
        .service(Workers::new(worker))
        .one_of::<Arc<dyn FileReferences>>(Arc::new(MessageFiles))
        .table_gauge(QUEUED_MESSAGES);
    Ok(parts)
}

fn worker_parts(services: &Services) -> Result<WorkerParts> {
    Ok(WorkerParts {
        db: services.cloned()?,
        network: services.cloned()?,
        seal: services.get()?,
        areas: OtherAreas {
            people: services.cloned()?,
            broadcasts: services.cloned::<Arc<dyn BroadcastRecipients>>()?,
            takers: services.cloned()?,
        },
        runs: services.cloned()?,
        files: services.get()?,
        file_uses: services.cloned()?,
        transcriber: services.cloned()?,
        uploads: Uploads::default(),
        notifier: services.cloned()?,
    })
}
