//! What this group adds to the service.

use crate::channels::{self, GetChannel, GetChannelHealth, ListChannels};
use crate::conversations::{self, Conversations};
use crate::events::{MessageEvent, TemplateUpdated};
use crate::inbound::{CALLBACK_LOG, Callbacks};
use crate::jobs;
use crate::messages::{BroadcastRecipients, ContactMessages, MessageFiles, MessageReferences, Turns};
use crate::metrics::{OPEN_CALLBACKS, QUEUED_MESSAGES};
use crate::other_areas::OtherAreas;
use crate::retention::{self, Keeping};
use crate::sends;
use crate::templates;
use crate::wakes::Wakes;
use crate::worker::{Uploads, WorkerParts, Workers};
use model::Result;
use operation::{Declarations, Domain, EventType, Group, Operations, Parts, Services};
use ports::{AutoAssignment, ChannelTurns, ContactReferences, FileReferences, Messenger, VariableUsers};
use quick_replies::{QuickReplyFiles, QuickReplyVariables};
use std::sync::Arc;
use store::logs::Retentions;

/// Numbers over which a workspace talks to its contacts, and what is sent over them.
pub struct Channels;

impl Domain for Channels {
    const AREA: &'static str = "Channels";
    const ORDER: u16 = 190;
    const DESCRIPTION: &'static str = "Channels are the numbers over which a workspace talks to its contacts on the chat network. Within 24 hours of \
         a contact's last message anything can be sent to it; afterwards only templates that the network has approved.";

    fn operations() -> Operations {
        vec![
            Box::new(ListChannels),
            Box::new(GetChannel),
            Box::new(GetChannelHealth),
            Box::new(templates::ListMessageTemplates),
            Box::new(templates::CreateMessageTemplate),
            Box::new(templates::GetMessageTemplate),
            Box::new(templates::DeleteMessageTemplate),
            Box::new(sends::SendChannelTemplate),
            Box::new(sends::SendChannelMessage),
            Box::new(sends::SendChannelMedia),
            Box::new(sends::SendChannelInteractive),
            Box::new(sends::SendChannelReaction),
            Box::new(sends::MarkChannelMessageRead),
            Box::new(sends::SendContactMessage),
            Box::new(sends::SendContactTemplate),
        ]
    }

    fn event_types() -> Vec<EventType> {
        let mut all = EventType::of::<MessageEvent>();
        all.extend(EventType::of::<TemplateUpdated>());
        all
    }
}

/// What a team writes to contacts.
pub struct OperatorMessages;

impl Domain for OperatorMessages {
    const AREA: &'static str = "Contacts";
    const ORDER: u16 = 170;
    const DESCRIPTION: &'static str = "";

    fn operations() -> Operations {
        vec![Box::new(sends::SendOperatorMessage)]
    }
}

/// Channels and what is sent and received over them.
pub const GROUP: Group = Group { declare, start };

fn declare(declarations: Declarations) -> Result<Declarations> {
    let members = declarations.services.cloned()?;
    Ok(declarations
        .area::<ContactMessages>()
        .area::<OperatorMessages>()
        .area::<Conversations>()
        .area::<Channels>()
        .sealed([&channels::SEALED])
        .log(CALLBACK_LOG)
        .service(AutoAssignment(Arc::new(conversations::AutoAssigned)))
        .service::<Arc<dyn ChannelTurns>>(Arc::new(Turns(members))))
}

fn start(services: &Services) -> Result<Parts> {
    let worker = worker_parts(services)?;
    let keeping = Keeping {
        days: services.cloned()?,
        file_uses: worker.file_uses.clone(),
        broadcasts: worker.areas.broadcasts.clone(),
    };
    let kept = services.get::<Retentions>()?.of(&CALLBACK_LOG);
    let callbacks =
        Callbacks::new(worker.db.clone(), worker.network.clone(), worker.seal.clone(), worker.wakes.clone());
    let sending = sends::SendParts {
        people: worker.areas.people.clone(),
        broadcasts: worker.areas.broadcasts.clone(),
        files: worker.files.clone(),
        network: worker.network.clone(),
        wakes: worker.wakes.clone(),
    };
    let parts = Parts::default()
        .raw_route(callbacks)
        .service(Messenger(Arc::new(sending.clone())))
        .service(sending)
        .one_of::<Arc<dyn ContactReferences>>(Arc::new(MessageReferences {
            file_uses: keeping.file_uses.clone(),
            broadcasts: keeping.broadcasts.clone(),
        }))
        .jobs(jobs::jobs(&worker, kept))
        .job(retention::job(keeping))
        .job(conversations::job())
        .service(Workers::new(worker))
        .one_of::<Arc<dyn FileReferences>>(Arc::new(QuickReplyFiles))
        .one_of::<Arc<dyn FileReferences>>(Arc::new(MessageFiles))
        .one_of::<Arc<dyn VariableUsers>>(Arc::new(QuickReplyVariables))
        .table_gauge(OPEN_CALLBACKS)
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
        },
        runs: services.cloned()?,
        files: services.get()?,
        file_uses: services.cloned()?,
        transcriber: services.cloned()?,
        uploads: Uploads::default(),
        wakes: Wakes::default(),
    })
}
