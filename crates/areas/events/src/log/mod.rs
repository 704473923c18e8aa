//! Event log: what is stored of an event, in which order, and how it is read.

mod announced;
mod feed;
mod live;
mod model;
mod operations;
mod queries;
mod rows;
mod sequencer;
mod size;
mod types;

pub use feed::Feed;
pub use sequencer::Sequencer;
pub use types::Catalogue;

pub(crate) use announced::announced;
pub(crate) use queries::{placed_between, placed_event, placed_since};
pub(crate) use rows::{LoggedEvent, NewPosition, hour};
pub use size::EVENT_LOG;
pub(crate) use size::purge_old;
pub(crate) use types::{EventTypeInfo, matches};

pub(crate) fn operations() -> operation::Operations {
    vec![
        Box::new(operations::ListEvents),
        Box::new(live::ListLiveEvents),
        Box::new(operations::GetEventStats),
        Box::new(operations::ListEventTypes),
        Box::new(operations::GetEvent),
        Box::new(operations::ListEventDeliveries),
    ]
}
