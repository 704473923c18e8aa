//! Channels: a business's numbers on a chat network, with their credentials, health and message templates, and the
//! callbacks of the network.
//!
//! A callback is verified and stored before it is acknowledged. Each channel has one worker at a time, the holder of
//! its lease. The workers are in the crate `conversations`; they apply callbacks and send messages.

mod address;
pub mod callbacks;
mod channels;
mod dashboard;
mod group;
mod jobs;
mod metrics;
mod network;
mod operations;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
pub mod templates;
pub mod work;

pub use address::reach;
pub use channels::{
    Channel, ChannelChange, ChannelProvider, ChannelRow, ChannelSettings, ChannelStatus, ChannelSummary,
    ChannelType, ConnectChannel, MessageQueue, NewChannelError, QueueState, SEALED, auto_assigning,
    auto_assigning_workspaces, by_id, connect, disconnect, enabled, first, hold, ids, is_of, list, live,
    lock, note_error, note_inbound, note_quality, set, set_status, share, types,
};
pub use group::GROUP;
pub use network::{Network, refused};
