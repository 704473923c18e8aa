//! The processes that the parent starts: the zygote, and the workers that it forks.
//!
//! Nothing here runs in the service's own process.

mod bridge;
mod channel;
mod confine;
mod engine;
mod output;
mod random;
pub(crate) mod report;
mod task;
mod thrown;
mod worker;
mod zygote;

pub use channel::Channel;
pub use worker::serve;
pub use zygote::{Options, zygote, zygote_if_asked};
