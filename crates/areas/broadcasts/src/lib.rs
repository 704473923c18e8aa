//! Broadcasts: one message template for many contacts.
//!
//! When a broadcast starts, its audience is frozen into rows of recipients. These rows alone decide who has been sent
//! what. Sending gives each recipient a message in the transaction that marks the row, under a unique key, so that no
//! recipient gets a second message.

mod checks;
mod drafts;
mod group;
mod model;
mod operations;
mod recipients;
mod rows;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod sending;

pub use group::GROUP;
pub use recipients::delivery::Recipients;

use operation::{Domain, EventType, Operations};

/// The area of broadcasts.
pub struct Broadcasts;

impl Domain for Broadcasts {
    const AREA: &'static str = "Broadcasts";
    const ORDER: u16 = 200;
    const DESCRIPTION: &'static str = "Broadcasts send one message template to many contacts. The audience is frozen when a broadcast starts; \
         it can be paused, resumed and cancelled, and every recipient has a status of its own.";

    fn operations() -> Operations {
        vec![
            Box::new(operations::ListBroadcasts),
            Box::new(drafts::draft::CreateBroadcast),
            Box::new(operations::GetBroadcast),
            Box::new(operations::UpdateBroadcast),
            Box::new(operations::ListBroadcastRecipients),
            Box::new(operations::SendBroadcast),
            Box::new(operations::PauseBroadcast),
            Box::new(operations::CancelBroadcast),
        ]
    }

    fn event_types() -> Vec<EventType> {
        EventType::of::<rows::events::BroadcastEvent>()
    }
}
