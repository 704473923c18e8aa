//! Inbound webhooks: URLs to which other systems post.
//!
//! A webhook has a URL with a secret in it, a way of checking who sends, a rule for requests that come twice, and a
//! mapping. What its [`Receiver`] takes is a row with an event `webhook.received`, committed before the sender is
//! answered: an answer with 2xx was kept, exactly once. Nothing of a request is read before it is verified but what
//! verifying needs, and nothing that anybody sends is an internal error.

mod dedupe;
mod events;
mod group;
mod jobs;
mod mapping;
mod model;
mod operations;
mod queries;
mod receive;
mod requests;
mod rows;
mod sample;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod sealed;
mod token;
mod verify;

pub use group::GROUP;
pub use queries::exists;
pub use receive::receiver::Receiver;

use self::events::InboundEvent;
use operation::{Domain, EventType, Operations};

/// Webhooks from other systems.
pub struct InboundWebhooks;

impl Domain for InboundWebhooks {
    const AREA: &'static str = "Webhooks";
    const ORDER: u16 = 221;
    const DESCRIPTION: &'static str = "";

    fn operations() -> Operations {
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

    fn event_types() -> Vec<EventType> {
        EventType::of::<InboundEvent>()
    }
}
