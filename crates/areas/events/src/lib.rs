//! Event log: what is stored of an event, in which order, and how it is read.
//!
//! An event is committed with the change that caused it, and gets its place in the log afterwards ([`place`]).

mod announced;
mod feed;
mod group;
mod live;
mod model;
mod operations;
mod placing;
mod queries;
mod reader;
mod rows;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod size;
mod types;

pub use feed::Feed;
pub use group::GROUP;
pub use placing::place;
pub use queries::{placed_between, placed_event, placed_of_kind, placed_of_request, placed_since};
pub use reader::{EventConsumer, EventReader, Readers, Reading, Turn, readers_behind};
pub use rows::{LoggedEvent, NewPosition, hour};
pub use size::{EVENT_LOG, purge_counts};
pub use types::{Catalogue, EventTypeInfo, matches, may_match};

use operation::{Domain, EventType, Operations};

/// The event log.
pub struct Events;

impl Domain for Events {
    const AREA: &'static str = "Events";
    const ORDER: u16 = 210;
    const DESCRIPTION: &'static str = "The log of everything that happened in the workspace, kept for 30 days by default. Read it \
         page by page, or follow it with a long poll.";

    fn operations() -> Operations {
        vec![
            Box::new(operations::ListEvents),
            Box::new(live::ListLiveEvents),
            Box::new(operations::GetEventStats),
            Box::new(operations::ListEventTypes),
            Box::new(operations::GetEvent),
        ]
    }

    fn event_types() -> Vec<EventType> {
        announced::announced()
    }
}
