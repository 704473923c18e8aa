//! Channels, conversations and broadcasts through the front door.

mod broadcasts;
mod callbacks;
mod conversations;
mod outbox;
mod quick_replies;
mod sends;
mod support;
mod talk;
mod templates;
