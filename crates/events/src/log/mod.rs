//! The event log: what is kept of an event, in which order, and how it is read.

mod announced;
mod live;
mod model;
mod operations;
mod queries;
mod sequencer;
mod types;

pub use live::Feed;
pub use sequencer::Sequencer;
pub use types::Catalogue;

pub(crate) use announced::announced;
pub(crate) use queries::{placed_between, placed_event, placed_since};
pub(crate) use sequencer::{Place, Placed, hour, last_place};
pub(crate) use types::matches;

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
