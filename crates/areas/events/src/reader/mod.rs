//! Durable readers of the event log: each takes all events of the types that it wants, in their order and exactly once.
//!
//! A reader is a row with a position. A batch of events behind the position is handed to the consumer, which writes in the same
//! transaction in which the position moves: a crash undoes both. One process reads for a consumer at a time, by a lease with an
//! epoch. The transaction locks the row under its epoch, so a process whose lease has passed to another one reads nothing.
//!
//! Positions become visible in their order and without gaps ([`crate::place`]), so no event that commits late is missed.
//! Events that a reader has not read yet are not deleted ([`EVENT_LOG`](crate::EVENT_LOG)).

mod row;
mod serve;
mod turn;

pub(crate) use row::LAG;
pub use row::readers_behind;
pub use serve::{Readers, Reading};
pub use turn::{EventReader, Turn};

use crate::LoggedEvent;
use model::Result;
use store::Tx;

/// Takes events of the log. A group adds it to its parts as one of the services of the type `Arc<dyn EventConsumer>`.
///
/// A consumer that is new begins with the events that are placed after its first start. One that is removed for good needs a
/// migration that deletes its row of `event_readers`: until then no event behind its position is deleted.
pub trait EventConsumer: Send + Sync {
    /// Its name, by which its position is stored.
    fn name(&self) -> &'static str;

    /// Whether it wants events of a type. Others are passed over without being read.
    fn wants(&self, kind: &str) -> bool;

    /// Takes events, in their order. What it writes commits together with the position, or not at all. The transaction may run
    /// again, so it must have no other effects.
    ///
    /// # Errors
    /// What keeps it from taking them: they are tried again, later and one by one. An event that can never be taken must be put
    /// aside by the consumer, because all later ones wait for it.
    fn take(&self, tx: &mut Tx, events: &[LoggedEvent]) -> Result<()>;
}
