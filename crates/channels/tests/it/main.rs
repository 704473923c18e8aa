//! Channels, conversations and broadcasts through the front door.

mod callbacks;
mod outbox;
mod sends;
mod support;
mod talk;
mod templates;
