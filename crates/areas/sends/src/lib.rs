//! Sends: what may be sent to whom at this moment, the operations that send it, and quick replies.
//!
//! A send is checked, and then a message is written that waits in the outbox. The network is asked later, by the channel's
//! worker; what cannot change by waiting is known before the answer.

mod bodies;
mod checks;
mod contact;
mod content;
mod group;
mod media;
mod operations;
mod operator;
mod ports;
mod quick_replies;
mod recipient;
mod result;
mod retry;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod send;
mod text_or_reply;

pub use group::GROUP;
pub use send::{SendParts, send_template};
