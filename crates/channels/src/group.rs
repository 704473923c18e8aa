//! What this group adds to the service.

use crate::broadcasts::{self, BroadcastFiles, Broadcasts, RecipientReferences};
use crate::channels::{self, GetChannel, GetChannelHealth, ListChannels};
use crate::conversations::{self, Conversations};
use crate::events::{MessageEvent, TemplateUpdated};
use crate::inbound::Callbacks;
use crate::jobs;
use crate::messages::{ContactMessages, MessageFiles, MessageReferences};
use crate::metrics::{OPEN_CALLBACKS, QUEUED_MESSAGES};
use crate::network::Network;
use crate::retention::{self, Keeping};
use crate::sends;
use crate::templates;
use crate::worker::WorkerParts;
use auth::SealedTable;
use model::Result;
use operation::ports::Messenger;
use operation::{Domain, EventType, Group, Operations, Registry};
use quick_replies::{QuickReplyFiles, QuickReplyVariables};
use std::sync::Arc;
use store::logs::Retention;

/// The tables with sealed values.
pub const SEALED: &[&SealedTable] = &[&channels::SEALED];

/// Numbers over which a workspace talks to its contacts, and what is sent over them.
pub struct Channels;

impl Domain for Channels {
    const AREA: &'static str = "Channels";
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
    const DESCRIPTION: &'static str = "";

    fn operations() -> Operations {
        vec![Box::new(sends::SendOperatorMessage)]
    }
}

/// Adds the areas.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn areas(registry: Registry) -> Result<Registry> {
    registry
        .with::<ContactMessages>()?
        .with::<OperatorMessages>()?
        .with::<Conversations>()?
        .with::<Channels>()?
        .with::<Broadcasts>()
}

fn sending(parts: &WorkerParts) -> sends::SendParts {
    sends::SendParts {
        people: parts.people.clone(),
        files: parts.files.clone(),
        network: parts.network.clone(),
        wakes: parts.wakes.clone(),
    }
}

/// Sending to contacts, for other groups.
#[must_use]
pub fn messenger(parts: &WorkerParts) -> Messenger {
    Messenger(Arc::new(sending(parts)))
}

/// What the areas need beside their operations. Callbacks are kept as `kept` says, messages and their files as `keeping`
/// does.
pub fn group(parts: &WorkerParts, kept: Retention, keeping: Keeping) -> Group {
    let callbacks = Callbacks::new(
        parts.db.clone(),
        Network(parts.network.0.clone()),
        parts.seal.clone(),
        parts.wakes.clone(),
    );
    let sending = sending(parts);
    Group::default()
        .raw_route(callbacks)
        .service(parts.network.clone())
        .job(broadcasts::job(&sending))
        .job(broadcasts::count_job())
        .service(sending)
        .contact_references(MessageReferences { file_uses: keeping.file_uses.clone() })
        .contact_references(RecipientReferences)
        .jobs(jobs::jobs(parts, kept))
        .job(retention::job(keeping))
        .job(conversations::job())
        .file_references(QuickReplyFiles)
        .file_references(BroadcastFiles)
        .file_references(MessageFiles)
        .variable_users(QuickReplyVariables)
        .table_gauge(OPEN_CALLBACKS)
        .table_gauge(QUEUED_MESSAGES)
}
