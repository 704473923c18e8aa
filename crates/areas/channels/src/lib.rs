//! Talking to customers: channels on a chat network, the conversations with contacts over them, and broadcasts.
//!
//! What a contact writes comes as a callback, which is stored before it is acknowledged and then taken apart. What is sent
//! is a message and a row of the outbox, written in one transaction; one worker per channel hands them to the network.

mod channels;
pub mod conversations;
mod events;
mod group;
mod inbound;
mod jobs;
pub mod messages;
mod metrics;
mod network;
mod other_areas;
#[cfg(test)]
mod plans;
pub mod retention;
pub mod sample;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
pub mod sends;
pub mod templates;
mod transcriber;
mod wakes;
mod worker;

pub use channels::{
    Channel, ChannelChange, ChannelProvider, ChannelRow, ChannelSettings, ChannelStatus, ChannelSummary,
    ChannelType, ConnectChannel, SEALED, by_id, connect, disconnect, hold, list, live, set, share,
};
pub use group::GROUP;
pub use network::Network;
pub use other_areas::OtherAreas;
pub use transcriber::{OpenAiTranscriber, Transcriber, TranscriberSettings};
pub use wakes::Wakes;
pub use worker::{Workers, Working};
