//! Sending: what may be said to whom at this moment, and the operations that say it.
//!
//! A send is checked, and then a message is written that waits in the outbox. The network is asked later, by the channel's
//! worker; what cannot change by waiting is known before the answer.

mod bodies;
mod checks;
mod contact;
mod media;
mod operations;
mod operator;
mod ports;
mod recipient;
mod result;
mod retry;
mod said;
mod send;
mod what;

pub(crate) use contact::{SendContactMessage, SendContactTemplate};
pub(crate) use operations::{
    MarkChannelMessageRead, SendChannelInteractive, SendChannelMedia, SendChannelMessage,
    SendChannelReaction, SendChannelTemplate,
};
pub(crate) use operator::SendOperatorMessage;
pub use send::{SendParts, send_template};
pub(crate) use what::message_type_of;
