//! The declaration of this group.

use crate::callbacks::{CALLBACK_LOG, Callbacks};
use crate::channels::SEALED;
use crate::dashboard::{
    CheckChannel, ConnectChannel, DisconnectChannel, GetChannelConnection, UpdateChannel,
};
use crate::jobs;
use crate::metrics::OPEN_CALLBACKS;
use crate::network::Network;
use crate::operations::{GetChannel, GetChannelHealth, ListChannels};
use crate::templates::{
    CreateMessageTemplate, DeleteMessageTemplate, GetMessageTemplate, ListMessageTemplates, TemplateUpdated,
};
use crate::work::WorkNotifier;
use auth::Seal;
use model::Result;
use operation::{Declarations, Domain, EventType, Group, Operations, Parts, Services};

/// The area of channels.
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
            Box::new(ListMessageTemplates),
            Box::new(CreateMessageTemplate),
            Box::new(GetMessageTemplate),
            Box::new(DeleteMessageTemplate),
            Box::new(CheckChannel),
            Box::new(ConnectChannel),
            Box::new(GetChannelConnection),
            Box::new(UpdateChannel),
            Box::new(DisconnectChannel),
        ]
    }

    fn event_types() -> Vec<EventType> {
        EventType::of::<TemplateUpdated>()
    }
}

/// Channels, their templates and their callbacks.
pub const GROUP: Group = Group { declare, start };

fn declare(declarations: Declarations) -> Result<Declarations> {
    Ok(declarations.area::<Channels>().sealed([&SEALED]).log(CALLBACK_LOG))
}

fn start(services: &Services) -> Result<Parts> {
    let (network, seal, notifier) =
        (services.cloned::<Network>()?, services.get::<Seal>()?, WorkNotifier::default());
    let callbacks = Callbacks::new(services.cloned()?, network.clone(), seal.clone(), notifier.clone());
    let parts = Parts::default()
        .raw_route(callbacks)
        .jobs(jobs::jobs(&network, &seal))
        .service(notifier)
        .table_gauge(OPEN_CALLBACKS);
    Ok(parts)
}
