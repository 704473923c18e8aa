//! What this group adds to the service.

use crate::contact::{SendContactMessage, SendContactTemplate};
use crate::operations::{
    MarkChannelMessageRead, SendChannelInteractive, SendChannelMedia, SendChannelMessage,
    SendChannelReaction, SendChannelTemplate,
};
use crate::operator::SendOperatorMessage;
use crate::quick_replies::{QuickReplies, QuickReplyFiles, QuickReplyVariables};
use crate::send::SendParts;
use conversations::messages::BroadcastRecipients;
use model::Result;
use operation::{Declarations, Domain, Group, Operations, Parts, Services};
use ports::{FileReferences, Messenger, VariableUsers};
use std::sync::Arc;

/// What a team writes to contacts.
pub struct OperatorMessages;

impl Domain for OperatorMessages {
    const AREA: &'static str = "Contacts";
    const ORDER: u16 = 170;
    const DESCRIPTION: &'static str = "";

    fn operations() -> Operations {
        vec![Box::new(SendOperatorMessage)]
    }
}

/// What is sent over channels.
pub struct ChannelSends;

impl Domain for ChannelSends {
    const AREA: &'static str = "Channels";
    const ORDER: u16 = 190;
    const DESCRIPTION: &'static str = "";

    fn operations() -> Operations {
        vec![
            Box::new(SendChannelTemplate),
            Box::new(SendChannelMessage),
            Box::new(SendChannelMedia),
            Box::new(SendChannelInteractive),
            Box::new(SendChannelReaction),
            Box::new(MarkChannelMessageRead),
            Box::new(SendContactMessage),
            Box::new(SendContactTemplate),
        ]
    }
}

/// Sends and quick replies.
pub const GROUP: Group = Group { declare, start };

fn declare(declarations: Declarations) -> Result<Declarations> {
    Ok(declarations.area::<OperatorMessages>().area::<QuickReplies>().area::<ChannelSends>())
}

fn start(services: &Services) -> Result<Parts> {
    let sending = SendParts {
        people: services.cloned()?,
        broadcasts: services.cloned::<Arc<dyn BroadcastRecipients>>()?,
        files: services.get()?,
        network: services.cloned()?,
        notifier: services.cloned()?,
    };
    let parts = Parts::default()
        .service(Messenger(Arc::new(sending.clone())))
        .service(sending)
        .one_of::<Arc<dyn FileReferences>>(Arc::new(QuickReplyFiles))
        .one_of::<Arc<dyn VariableUsers>>(Arc::new(QuickReplyVariables));
    Ok(parts)
}
