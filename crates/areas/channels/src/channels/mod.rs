//! Channels: numbers on a chat network over which a business talks to its contacts.

mod connect;
mod errors;
mod model;
mod operations;
mod rating;
mod row;
mod sealed;

pub use connect::{ChannelChange, ConnectChannel, connect, disconnect, list, set};
pub(crate) use errors::{NewChannelError, note_error};
pub use model::{Channel, ChannelProvider, ChannelSettings, ChannelStatus, ChannelType};
pub(crate) use operations::{GetChannel, GetChannelHealth, ListChannels};
pub(crate) use rating::{Rating, rate};
pub(crate) use row::Credentials;
pub use row::{ChannelRow, ChannelSummary, by_id, hold, live, share};
pub use sealed::SEALED;
