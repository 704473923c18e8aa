//! Channels: a business's numbers on a chat network.

mod connect;
mod errors;
mod model;
mod queries;
mod queue;
mod rating;
mod row;
mod sealed;

pub use connect::{ChannelChange, ConnectChannel, connect, disconnect, list, set};
pub use errors::{NewChannelError, note_error};
pub use model::{Channel, ChannelProvider, ChannelSettings, ChannelStatus, ChannelType};
pub use queries::{
    auto_assigning, auto_assigning_workspaces, enabled, first, ids, is_of, lock, note_inbound, set_status,
    types,
};
pub use queue::{MessageQueue, QueueState};
pub use rating::note_quality;
pub(crate) use rating::{Rating, rate};
pub(crate) use row::Credentials;
pub use row::{ChannelRow, ChannelSummary, by_id, hold, live, share};
pub use sealed::SEALED;
