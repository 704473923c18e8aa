//! What contacts write, and what the network says of messages: callbacks are verified, stored and acknowledged ([`route`]),
//! and then taken apart by the channel's worker, each part on its own ([`apply`]).

mod apply;
mod applying;
mod changes;
mod content;
mod identities;
mod kept;
mod message;
mod opt_out;
mod route;
mod status;

pub(crate) use apply::{apply, apply_messages};
pub(crate) use applying::Applying;
pub use kept::CALLBACK_LOG;
pub(crate) use kept::{not_done, pending, purge_old};
pub(crate) use message::cause_of;
pub use route::Callbacks;
pub(crate) use status::{StatusReport, apply_early, rise};
