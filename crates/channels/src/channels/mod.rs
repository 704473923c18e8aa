//! Channels: numbers on a chat network over which a business talks to its contacts.

mod connect;
mod model;
mod row;
mod sealed;

pub use connect::{ConnectChannel, connect, disconnect, list};
pub use model::{Channel, ChannelProvider, ChannelSettings, ChannelStatus, ChannelType};
pub(crate) use row::{ChannelRow, live};
pub use sealed::SEALED;
