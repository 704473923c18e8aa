//! Messages of contacts, and the network's reports on messages: the channel's worker takes stored callbacks apart and applies
//! each part on its own ([`apply`](mod@apply)).

mod apply;
mod changes;
mod content;
mod context;
mod identities;
mod message;
mod opt_out;
mod purge;
mod status;

pub(crate) use apply::{apply, apply_messages};
pub(crate) use context::UpdateContext;
pub(crate) use message::cause_of;
pub(crate) use purge::job;
pub(crate) use status::{StatusReport, apply_early, rise};
