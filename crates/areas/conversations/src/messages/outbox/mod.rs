//! The outbox: messages that wait to be sent, those that are taken out, and those that are put back.

mod queue;
mod requeue;
mod withdraw;

pub(crate) use queue::Outbox;
pub(crate) use requeue::may_come_twice;
pub use requeue::{begin_attempt, requeue};
pub use withdraw::{cancel, withdraw};
