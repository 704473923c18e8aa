//! Talking to customers: channels on a chat network, the conversations with contacts over them, and broadcasts.
//!
//! What a contact writes comes as a callback, which is stored before it is acknowledged and then taken apart. What is sent
//! is a message and a row of the outbox, written in one transaction; one worker per channel hands them to the network.

pub mod broadcasts;
pub mod channels;
mod group;
pub mod messages;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;

pub use group::{SEALED, areas, group};
