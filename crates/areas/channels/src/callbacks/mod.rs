//! Callbacks: requests of the network, which are verified, stored and acknowledged. The crate `conversations` applies
//! them.

mod log;
mod queue;
mod route;

pub use log::CALLBACK_LOG;
pub(crate) use log::not_done;
pub use queue::{channels_with_pending, mark_done, next, put_off};
pub use route::Callbacks;
