//! Inbound webhooks: URLs to which other systems post.
//!
//! A webhook has a URL with a secret in it, a way of checking who sends, a rule for requests that come twice, and a
//! mapping. What its [`Receiver`] takes is a row with an event `webhook.received`, committed before the sender is
//! answered: an answer with 2xx was kept, exactly once. Nothing of a request is read before it is verified but what
//! verifying needs, and nothing that anybody sends is an internal error.

mod answer;
mod body;
mod bucket;
mod dedupe;
mod evaluate;
mod events;
mod handshake;
mod hook;
pub mod jobs;
mod mapping;
mod model;
mod operations;
mod queries;
mod received;
mod receiver;
mod reprocessed;
mod request;
mod requests;
mod rows;
mod sample;
mod scheme;
#[cfg(test)]
mod scheme_tests;
mod sealed;
mod signature;
mod size;
mod source;
mod token;
mod verification;

pub(crate) use events::InboundEvent;
pub use receiver::{Receiver, ReceiverParts};
pub(crate) use sealed::SEALED;
pub use size::INBOUND_LOG;

use operation::Operations;

pub(crate) fn operations() -> Operations {
    vec![
        Box::new(operations::ListInboundWebhooks),
        Box::new(operations::CreateInboundWebhook),
        Box::new(operations::GetInboundWebhook),
        Box::new(operations::UpdateInboundWebhook),
        Box::new(operations::DeleteInboundWebhook),
        Box::new(operations::RotateInboundWebhookToken),
        Box::new(requests::ListInboundWebhookRequests),
    ]
}
