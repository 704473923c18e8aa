//! Broadcasts: one message template for many contacts.
//!
//! When a broadcast starts, its audience is frozen into rows of recipients, which are the only truth about what was sent to
//! whom. Sending gives each a message under a key that no second message can have, in the transaction that marks the row.

mod again;
mod check;
mod clock;
mod contact;
mod counts;
mod delivery;
mod draft;
mod events;
mod group;
mod limit;
mod listed;
mod model;
mod operations;
mod pace;
mod prepare;
mod preview;
mod previewed;
mod progress;
mod references;
mod row;
mod run;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod send;
mod shown;
mod states;
mod template;
mod test_send;
mod time_of_day;
mod withdraw;

pub use delivery::Recipients;
pub use group::GROUP;

use operation::{Domain, EventType, Operations};

/// Broadcasts.
pub struct Broadcasts;

impl Domain for Broadcasts {
    const AREA: &'static str = "Broadcasts";
    const ORDER: u16 = 200;
    const DESCRIPTION: &'static str = "Broadcasts send one message template to many contacts. The audience is frozen when a broadcast starts; \
         it can be paused, resumed and cancelled, and every recipient has a status of its own.";

    fn operations() -> Operations {
        vec![
            Box::new(operations::ListBroadcasts),
            Box::new(draft::CreateBroadcast),
            Box::new(operations::GetBroadcast),
            Box::new(operations::UpdateBroadcast),
            Box::new(operations::ListBroadcastRecipients),
            Box::new(operations::SendBroadcast),
            Box::new(operations::PauseBroadcast),
            Box::new(operations::CancelBroadcast),
        ]
    }

    fn event_types() -> Vec<EventType> {
        EventType::of::<events::BroadcastEvent>()
    }
}
