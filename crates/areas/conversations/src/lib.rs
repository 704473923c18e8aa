//! Conversations: what contacts and a business say to each other over channels, with the messages, their files and their events.
//!
//! A message that is sent is a row of `messages` and a row of the outbox, written in one transaction. One worker per channel
//! applies the callbacks of the network, answers contacts, hands messages to the network and reads files.

mod conversations;
mod events;
mod group;
mod inbound;
pub mod messages;
mod metrics;
mod other_areas;
pub mod retention;
pub mod sample;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod transcriber;
mod viewers;
mod worker;

pub use conversations::{ConversationState, StateChange, set_state};
pub use group::GROUP;
pub use other_areas::OtherAreas;
pub use transcriber::{OpenAiTranscriber, Transcriber, TranscriberSettings};
pub use worker::{Workers, Working};
